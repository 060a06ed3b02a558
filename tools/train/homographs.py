#!/usr/bin/env python3
"""Trains the classifier that tells homographs apart (src/models/g2p/homographs.h) and writes its file.

  homographs.py --dump build/release/bench/g2p_dump --lexicon FOLDER --data FOLDER --out src/models/g2p/homographs.bin
  homographs.py ... --folds 10          accuracy by cross-validation on the training set instead

LEXICON: english-g2p of the store.  DATA: train.tsv and wordids.tsv of google-research-datasets/WikipediaHomographData at
8f008f0 (Apache-2.0; Gorman, Mazovetskiy, Nikolaev 2018, LREC, 1349-1352).  sentences.tsv beside this file are ours, with
the homograph in [brackets]: commands, speech and senses, which an encyclopedia lacks.

A reading is chosen by a multinomial logistic regression: its score is the sum of weights, one a feature of the sentence
for the word's reading and one for the reading's class (verb, noun, ...), which all words share.  A weight lies where the
feature's hash says, in a table of 2^--bits numbers of one byte; what meets there by chance was there in the training too.
"""

from __future__ import annotations

import argparse
import collections
import csv
import itertools
import json
import pathlib
import subprocess

import numpy as np

HERE = pathlib.Path(__file__).parent
MASK = 0xFFFFFFFF
WORD, LETTERS, MARK, PHONEMES = range(4)  # text::TokenKind
START, END = "<s>", "</s>"
NEAR = 10  # tokens on each side whose words count wherever they stand


def fnv(text: str, seed: int = 0x811C9DC5) -> int:
    for byte in text.encode():
        seed = ((seed ^ byte) * 0x01000193) & MASK
    return seed


def at(tokens: list[dict], i: int) -> str:
    if i < 0:
        return START
    if i >= len(tokens):
        return END
    return "#" if tokens[i]["number"] else tokens[i]["text"].lower()


def shape(text: str) -> str:
    if text.isupper() and len(text) > 1:
        return "X"
    return "Xx" if text[:1].isupper() else "x"


def features(tokens: list[dict], i: int) -> list[str]:
    """Of the token i; in the order and by the names of homograph_features() in C++."""
    near = {d: at(tokens, i + d) for d in range(-3, 4) if d}
    out = ["bias", "shape=" + shape(tokens[i]["text"])]
    out += [f"{d}={near[d]}" for d in (-3, -2, -1, 1, 2, 3)]
    for d in (-2, -1, 1, 2):
        out += [f"{d}~{near[d][-n:]}" for n in (2, 3) if len(near[d]) > n]
        if 0 <= i + d < len(tokens):
            out.append(f"{d}^{shape(tokens[i + d]['text'])}")
    out += [f"-2-1={near[-2]} {near[-1]}", f"-1+1={near[-1]} {near[1]}", f"+1+2={near[1]} {near[2]}"]
    for d in range(max(0, i - NEAR), min(len(tokens), i + NEAR + 1)):
        if d != i and tokens[d]["kind"] == WORD and len(tokens[d]["text"]) > 3:
            out.append("near=" + tokens[d]["text"].lower())
    return out


def read(path: pathlib.Path) -> list[dict]:
    return list(csv.DictReader(open(path, encoding="utf-8"), delimiter="\t"))


def dumped(args: argparse.Namespace, sentences: list[str]) -> list[dict]:
    text = "\n".join(" ".join(s.split("\n")) for s in sentences) + "\n"
    out = subprocess.run([args.dump, args.lexicon, "--words"], input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def find_token(said: dict, word: str, begin: int) -> int | None:
    """The token that starts at a byte of the sentence."""
    tokens = [i for i, t in enumerate(said["tokens"]) if t["text"].lower() == word]
    words = [w["begin"] for w in said["words"] if w["source"].lower() == word]
    if len(tokens) != len(words) or begin not in words:
        return tokens[0] if len(tokens) == 1 else None
    return tokens[words.index(begin)]


def marked(path: pathlib.Path) -> list[dict]:
    """Rows whose homograph is in brackets, with where it starts."""
    rows = []
    for row in read(path):
        start = len(row["sentence"].split("[")[0].encode())
        rows.append(row | {"sentence": row["sentence"].replace("[", "").replace("]", ""), "start": str(start)})
    return rows


class Examples:
    """Features of each example, hashed; the readings that its word has."""

    def __init__(self, args: argparse.Namespace, rows: list[dict], readings: dict[str, list[str]]) -> None:
        self.words, self.truth, self.features, self.lost = [], [], [], 0
        for row, said in zip(rows, dumped(args, [r["sentence"] for r in rows])):
            i = find_token(said, row["homograph"], int(row["start"]))
            if i is None:
                self.lost += 1
                continue
            self.words.append(row["homograph"])
            self.truth.append(readings[row["homograph"]].index(row["wordid"]))
            self.features.append(np.array(sorted({fnv(f) for f in features(said["tokens"], i)}), dtype=np.uint64))


def slots(feature: np.ndarray, key: int, bits: int) -> np.ndarray:
    """Where the weights of the features lie for a reading or a class."""
    mixed = ((feature ^ np.uint64(key)) * np.uint64(0x9E3779B1)) & np.uint64(MASK)
    return (mixed >> np.uint64(32 - bits)).astype(np.int64)


def keys_of(word: str, readings: list[str], labels: dict[str, str]) -> list[tuple[int, int]]:
    return [(fnv(reading), fnv("class " + labels[reading])) for reading in readings]


def train(examples: Examples, chosen: list[int], readings: dict, labels: dict, args: argparse.Namespace) -> np.ndarray:
    """AdaGrad on the logistic loss, weights drawn to zero."""
    table, squares = np.zeros(1 << args.bits, np.float32), np.full(1 << args.bits, 1e-2, np.float32)
    cached = [[np.concatenate([slots(examples.features[n], k, args.bits) for k in keys])
               for keys in keys_of(examples.words[n], readings[examples.words[n]], labels)] for n in chosen]
    random = np.random.default_rng(args.seed)
    for epoch in range(args.epochs):
        for m in random.permutation(len(chosen)):
            rows, truth = cached[m], examples.truth[chosen[m]]
            scores = np.array([table[r].sum() for r in rows])
            p = np.exp(scores - scores.max())
            p /= p.sum()
            for k, r in enumerate(rows):
                slope = p[k] - (k == truth)
                if abs(slope) < 1e-3:
                    continue
                g = slope + args.decay * table[r]
                squares[r] += g * g
                table[r] -= args.rate * g / np.sqrt(squares[r])
    return table


def accuracy(examples: Examples, chosen: list[int], table: np.ndarray, readings: dict, labels: dict, bits: int) -> tuple[float, collections.Counter]:
    right, wrong = 0, collections.Counter()
    for n in chosen:
        word = examples.words[n]
        scores = [sum(table[slots(examples.features[n], k, bits)].sum() for k in keys) for keys in keys_of(word, readings[word], labels)]
        if int(np.argmax(scores)) == examples.truth[n]:
            right += 1
        else:
            wrong[word] += 1
    return right / max(len(chosen), 1), wrong


TAGS = {"verb": ("VERB", "VBD", "DEFAULT"), "noun": ("NOUN", "DEFAULT"), "adjective": ("ADJ", "DEFAULT")}
OTHER_TAGS = ("DEFAULT", "ADJ", "NOUN", "VERB", "VBD")


def tags_of(readings: list[str], labels: dict[str, str], entry: object) -> list[str] | None:
    """A variant of the lexicon for each reading, all of them different; None: the lexicon does not have so many."""
    if not isinstance(entry, dict):
        return None
    offers = [[t for t in dict.fromkeys(TAGS.get(labels[r], ()) + OTHER_TAGS) if t in entry] for r in readings]
    for tags in itertools.product(*offers):
        if len({entry[t] for t in tags}) == len(readings):
            return list(tags)
    return None


def header(args: argparse.Namespace, readings: dict, labels: dict) -> str:
    lexicon = json.loads((pathlib.Path(args.lexicon) / "us_gold.json").read_text(encoding="utf-8"))
    own = {row["reading"]: row for row in read(HERE / "homograph_phonemes.tsv")}
    lines = [f"syrinx homographs 1 {args.bits}"]
    for word, names in readings.items():
        tags = tags_of(names, labels, lexicon.get(word)) if names[0] not in own else None
        for k, name in enumerate(names):
            if tags is None and name not in own:
                raise SystemExit(f"the lexicon does not tell the readings of '{word}' apart: add them to homograph_phonemes.tsv")
            said = ["", ""] if tags else [own[name]["american"], own[name]["british"]]
            lines.append("\t".join([word, name, labels[name], tags[k] if tags else "", *said]))
    return "\n".join(lines) + "\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", required=True)
    parser.add_argument("--lexicon", required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--bits", type=int, default=18)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--decay", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folds", type=int, default=0)
    args = parser.parse_args()
    wordids = read(args.data / "wordids.tsv")
    readings, labels = collections.defaultdict(list), {}
    for row in wordids:
        readings[row["homograph"]].append(row["wordid"])
        labels[row["wordid"]] = row["label"]
    examples = Examples(args, read(args.data / "train.tsv") + marked(HERE / "sentences.tsv"), readings)
    print(f"{len(examples.words)} examples, {examples.lost} not found among the tokens")
    everything = list(range(len(examples.words)))
    if args.folds:
        order = np.random.default_rng(0).permutation(everything)
        scores, wrong = [], collections.Counter()
        for fold in range(args.folds):
            held = [int(n) for n in order[fold::args.folds]]
            kept = sorted(set(everything) - set(held))
            score, missed = accuracy(examples, held, train(examples, kept, readings, labels, args), readings, labels, args.bits)
            scores.append(score)
            wrong += missed
            print(f"fold {fold}: {100 * score:.2f} %", flush=True)
        print(f"mean {100 * np.mean(scores):.2f} %; worst:", ", ".join(f"{w} {n}" for w, n in wrong.most_common(25)))
        return
    table = train(examples, everything, readings, labels, args)
    if args.out:
        whole = np.clip(np.round(table * 127 / np.abs(table).max()), -127, 127).astype(np.int8)
        args.out.write_bytes(header(args, readings, labels).encode() + whole.tobytes())
        table = whole.astype(np.float32)
    print(f"on the training set: {100 * accuracy(examples, everything, table, readings, labels, args.bits)[0]:.2f} %")


if __name__ == "__main__":
    main()
