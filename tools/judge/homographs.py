#!/usr/bin/env python3
"""How well the English front end tells homographs apart, on labelled sentences: a folder with `train.tsv` and `eval.tsv`
(columns `homograph`, `wordid`, `sentence`, and `start`, the byte at which the homograph begins), such as Wikipedia Homograph
Data (Gorman, Mazovetskiy and Nikolaev 2018). Needs `syrinx pull english-g2p`.

Each distinct pronunciation that `syrinx speak --dry-run` gives a homograph counts as the reading that it meets most often
in train.tsv; eval.tsv then judges. With --marked another file judges (`homograph`, `wordid`, `sentence` with the homograph
in [brackets]), and the sentences of tools/train, which know readings that train.tsv lacks, count besides. Prints the accuracy, that of always taking the commonest reading, and the worst words.
Ends with status 1 below --bar.

  python3 tools/judge/homographs.py FOLDER
  python3 tools/judge/homographs.py FOLDER --marked tests/data/text/english_openings.tsv
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import dry_run

SENTENCES = pathlib.Path(__file__).resolve().parents[1] / "train" / "sentences.tsv"


def read_rows(path: pathlib.Path) -> list[dict]:
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    missing = {"homograph", "wordid", "sentence", "start"} - set(rows[0] if rows else ())
    if missing:
        sys.exit(f"{path} has no column {sorted(missing)[0]}")
    return rows


def read_marked(path: pathlib.Path) -> list[dict]:
    rows = []
    for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        before, bracket, rest = line["sentence"].partition("[")
        if not bracket:
            sys.exit(f"{path} has a sentence without [brackets]: {line['sentence']}")
        rows.append({**line, "sentence": before + rest.replace("]", "", 1), "start": len(before.encode())})
    return rows


def phonemes_at(reading: dry_run.Reading, start: int) -> str | None:
    """Of the word that holds this byte; nothing where the reading leaves it out."""
    return next((word["phonemes"] for word in reading.words if word["begin"] <= start < word["end"]), None)


def pronounced(options, rows: list[dict]) -> list[str | None]:
    readings = dry_run.read_all(options, [row["sentence"].replace("\n", " ") for row in rows])
    return [phonemes_at(reading, int(row["start"])) for row, reading in zip(rows, readings)]


def judge(train: list[tuple], test: list[tuple]) -> dict:
    """Tuples of homograph, label and pronunciation."""
    votes, labels = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for homograph, label, phonemes in train:
        votes[homograph, phonemes][label] += 1
        labels[homograph][label] += 1
    right, commonest, words = 0, 0, collections.defaultdict(lambda: [0, 0])
    for homograph, label, phonemes in test:
        met = votes.get((homograph, phonemes))
        is_right = met is not None and met.most_common(1)[0][0] == label
        right += is_right
        commonest += homograph in labels and labels[homograph].most_common(1)[0][0] == label
        words[homograph][0] += not is_right
        words[homograph][1] += 1
    worst = sorted(((word, wrong, of) for word, (wrong, of) in words.items() if wrong), key=lambda each: -each[1])
    return {"right": right, "commonest": commonest, "of": len(test), "worst": worst}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="with train.tsv and eval.tsv")
    parser.add_argument("--marked", type=pathlib.Path, help="judge by this file instead of eval.tsv")
    parser.add_argument("--worst", type=int, default=25, help="how many words are listed")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--bar", type=float, default=0, help="the least accuracy, in percent")
    dry_run.add_arguments(parser)
    options = parser.parse_args()
    train, test = read_rows(options.folder / "train.tsv"), None
    if options.marked:
        train, test = train + read_marked(SENTENCES), read_marked(options.marked)
    labelled = []
    for rows in (train, test or read_rows(options.folder / "eval.tsv")):
        said = pronounced(options, rows)
        labelled.append([(row["homograph"], row["wordid"], phonemes) for row, phonemes in zip(rows, said)])
    result = judge(*labelled)
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        percent = 100 / max(result["of"], 1)
        print(f"{result['right']} of {result['of']} right = {result['right'] * percent:.1f} %; commonest reading "
              f"{result['commonest'] * percent:.1f} %")
        print("worst:", ", ".join(f"{word} {wrong}/{of}" for word, wrong, of in result["worst"][:options.worst]))
    sys.exit(0 if 100 * result["right"] >= options.bar * result["of"] else 1)


if __name__ == "__main__":
    main()
