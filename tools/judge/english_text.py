#!/usr/bin/env python3
"""Judges how the English front end reads texts: the cases of a TSV file (`input`, `expected`, `kind`, and where several
readings are right `also`, separated by " | "), read by one `syrinx speak --dry-run`. Needs `syrinx pull english-g2p`.

Words are compared without case and punctuation, spelled letters are single capitals: "the U S economy". Hyphens count as
spaces. A word that `expected` respells to show its sound ("yooz", "jay son") is compared by its phonemes, which stand in
english_respellings.tsv beside this script; `\\n` in an input is a line break. Ends with status 1 below --bar.

  python3 tools/judge/english_text.py cases.tsv
  python3 tools/judge/english_text.py cases.tsv --kind "all caps" --json
"""

from __future__ import annotations

import argparse
import collections
import csv
import dataclasses
import functools
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import dry_run

TABLE = pathlib.Path(__file__).with_name("english_respellings.tsv")
BRITISH_VOICE = "bf_emma"
MOST_WORDS = 4  # of a respelling, and of what it stands for
PUNCTUATION = ".,;:!?\"“”()…"
SAME_SOUND = str.maketrans({"T": "t", "ɾ": "t", "ʔ": "t", "ᵊ": "ə", "ɐ": "ə", "ᵻ": "ɪ", " ": None})
PRIMARY, SECONDARY = "ˈ", "ˌ"


@dataclasses.dataclass(frozen=True)
class Sound:
    """Phonemes without the shades that speakers differ in, and how many of them stand before the stress."""

    phonemes: str
    stress: int

    @staticmethod
    def of(phonemes: str) -> Sound:
        folded = phonemes.translate(SAME_SOUND)
        mark = PRIMARY if PRIMARY in folded else SECONDARY
        before = folded.partition(mark)[0].replace(SECONDARY, "")
        return Sound(folded.replace(PRIMARY, "").replace(SECONDARY, ""), len(before) if mark in folded else -1)


@dataclasses.dataclass(frozen=True)
class Respelling:
    word: str
    sounds: tuple[Sound, ...]  # empty: the word decides
    needs_stress: bool

    def sounds_like(self, phonemes: str) -> bool:
        said = Sound.of(phonemes)
        return any(said.phonemes == sound.phonemes and (said.stress == sound.stress or not self.needs_stress)
                   for sound in self.sounds)


def read_respellings(path=TABLE) -> dict[str, list[Respelling]]:
    table = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        rows = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t", quoting=csv.QUOTE_NONE)
        for row in rows:
            sounds = tuple(Sound.of(each) for each in row["phonemes"].split("|") if each)
            table[row["respelling"]].append(Respelling(row["word"], sounds, row["stress"] == "yes"))
    return dict(table)


@dataclasses.dataclass
class Said:
    """A word of the reading; those of one unit ("U S" of "US") have their phonemes in common."""

    text: str
    unit: int
    is_first: bool


def is_same(expected: str, said: str, is_start: bool) -> bool:
    if expected.lower() != said.lower():
        return False
    # "a" and the letter A; a sentence begins with a capital in any case.
    return expected.lower() != "a" or is_start or expected == said


class Matcher:
    """Whether a reading is the expected one."""

    def __init__(self, respellings, expected: str, units: list[tuple[str, str]]):
        """`units`: words, as read out, and their phonemes."""
        self.respellings = respellings
        self.expected = [word for word in (each.strip(PUNCTUATION) for each in expected.split()) if word]
        self.units = units
        self.said = [Said(text, i, k == 0) for i, (word, _) in enumerate(units)
                     for k, text in enumerate(word.replace("-", " ").split())]
        self.sounded = [row for begin in range(len(self.expected)) for row, _ in self.rows(begin) if row.sounds]
        self.match = functools.cache(self.match)

    def rows(self, begin: int):
        for words in range(1, MOST_WORDS + 1):
            if begin + words <= len(self.expected):
                key = " ".join(self.expected[begin:begin + words])
                for row in self.respellings.get(key) or self.respellings.get(key.lower(), ()):
                    yield row, words

    def match(self, i: int = 0, j: int = 0) -> bool:
        """From the expected word i and the said word j on."""
        if i == len(self.expected):
            return j == len(self.said)
        words = self.expected[i].replace("-", " ").split()
        if self.is_written(words, i, j) and self.match(i + 1, j + len(words)):
            return True
        return any(self.match(i + used, end) for row, used in self.rows(i) for end in self.ends(row, j))

    def is_written(self, words: list[str], i: int, j: int) -> bool:
        said = self.said[j:j + len(words)]
        if len(said) < len(words):
            return False
        if not all(is_same(a.strip("'"), b.text.strip("'"), i == 0) for a, b in zip(words, said)):
            return False
        # Beside "pole-ish", "polish" is the other one.
        return not any(row.word.lower() == words[0].lower() and row.sounds_like(self.units[said[0].unit][1])
                       for row in self.sounded)

    def ends(self, row: Respelling, j: int):
        """The said words behind which what begins with word j may end, if the respelling stands for it."""
        if not row.sounds:
            for word in row.word.split("|"):
                parts = word.split()
                if [each.text for each in self.said[j:j + len(parts)]] == parts:
                    yield j + len(parts)
            return
        if j >= len(self.said) or not self.said[j].is_first:
            return
        first = self.said[j].unit
        for last in range(first + 1, min(first + MOST_WORDS, len(self.units)) + 1):
            if row.sounds_like("".join(phonemes for _, phonemes in self.units[first:last])):
                yield sum(1 for each in self.said if each.unit < last)


def is_right(respellings, expected: str, units: list[tuple[str, str]]) -> bool:
    return Matcher(respellings, expected, units).match()


def judge(cases: list[dict], readings: list[dry_run.Reading], respellings) -> dict:
    kinds = collections.defaultdict(lambda: [0, 0])
    misses = []
    for case, reading in zip(cases, readings):
        units = [(word["word"], word["phonemes"]) for word in reading.words]
        answers = [case["expected"], *(each for each in (case.get("also") or "").split(" | ") if each.strip())]
        right = any(is_right(respellings, answer, units) for answer in answers)
        kinds[case["kind"]][0] += right
        kinds[case["kind"]][1] += 1
        if not right:
            misses.append({**{key: case[key] for key in ("input", "expected", "kind")}, "said": reading.spoken(),
                           "phonemes": reading.phonemes})
    return {"right": len(cases) - len(misses), "of": len(cases), "kinds": dict(kinds), "misses": misses}


def read_cases(path: str, kind: str | None) -> list[dict]:
    with open(path, encoding="utf-8", newline="") as file:
        cases = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, case in enumerate(cases, 2):
        if any(not case.get(key) for key in ("input", "expected", "kind")):
            sys.exit(f"{path}, line {number}: a case has the columns input, expected and kind")
    return [case for case in cases if kind in (None, case["kind"])]


def read(options, cases: list[dict]) -> list[dry_run.Reading]:
    """Kinds that begin with "british" are read by a British voice, unless --voice names one for all."""
    readings = [None] * len(cases)
    for is_british in (False, True):
        places = [i for i, case in enumerate(cases) if case["kind"].startswith("british") == is_british]
        if not places:
            continue
        chosen = argparse.Namespace(**vars(options))
        if is_british and not chosen.voice:
            chosen.voice = BRITISH_VOICE
        texts = [cases[i]["input"].replace("\\n", "\n") for i in places]
        for i, reading in zip(places, dry_run.read_all(chosen, texts)):
            readings[i] = reading
    return readings


def print_result(result: dict) -> None:
    for miss in result["misses"]:
        print(f"{miss['kind']}: {miss['input']}\n    expected  {miss['expected']}\n    said      {miss['said']}\n"
              f"    phonemes  {miss['phonemes']}")
    print()
    for kind, (right, of) in sorted(result["kinds"].items()):
        print(f"{right:4} of {of:4}  {kind}")
    print(f"{result['right']:4} of {result['of']:4}  = {100 * result['right'] / max(result['of'], 1):.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", help="a TSV file")
    parser.add_argument("--kind", help="only the cases of this kind")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--bar", type=float, default=0, help="the least share that must be right, in percent")
    dry_run.add_arguments(parser)
    options = parser.parse_args()
    cases = read_cases(options.cases, options.kind)
    if not cases:
        sys.exit(f"{options.cases} has no such cases")
    readings = read(options, cases)
    result = judge(cases, readings, read_respellings())
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        print_result(result)
    sys.exit(0 if 100 * result["right"] >= options.bar * result["of"] else 1)


if __name__ == "__main__":
    main()
