#!/usr/bin/env python3
"""Trains the classifier that tells homographs apart (src/models/g2p/homographs.h) and writes its file.

  homographs.py --data FOLDER --masc FOLDER --out src/models/g2p/homographs.bin --expected tests/data/g2p/homographs.tsv
  homographs.py --data FOLDER --masc FOLDER --folds 5     accuracy by cross-validation on the training set instead

Needs numpy, scipy, `syrinx pull english-g2p` and the build's g2p_dump.  DATA: train.tsv and wordids.tsv of
google-research-datasets/WikipediaHomographData at 8f008f0 (Apache-2.0; Gorman, Mazovetskiy, Nikolaev 2018, LREC,
1349-1352).  MASC: word_classes.py.  sentences.tsv beside this file are ours, with the homograph in [brackets]: commands,
speech and senses, which an encyclopedia lacks.

A reading's score is a sum of weights: those of the sentence's features for this reading of this word, and for the classes
(verb, noun, ...) that it shares with readings of other words.  The weights minimise the logistic loss with an L2 penalty;
the --weights largest are kept and fitted once more.
"""

from __future__ import annotations

import argparse
import collections
import csv
import itertools
import json
import os
import pathlib
import subprocess

import numpy as np
from scipy import optimize, sparse

import word_classes
from homograph_features import Neighbours, features, fnv

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
HASH_BITS_DROPPED = 4  # a table holds hashes of 28 bits
BAGS = ("near=", "l=", "r=", "lc=", "rc=")
BAG_SCALE, CLASS_SCALE, VERB_SCALE = 0.5, 0.5, 0.7  # of the penalty's width, by cross-validation
OURS = 2.0  # how often one of our sentences counts


def read(path: pathlib.Path, quoting: int = csv.QUOTE_MINIMAL) -> list[dict]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=quoting))


def marked(path: pathlib.Path) -> list[dict]:
    """Rows whose homograph is in brackets, with the byte at which it starts."""
    rows = []
    for row in read(path, csv.QUOTE_NONE):
        start = len(row["sentence"].split("[")[0].encode())
        rows.append(row | {"sentence": row["sentence"].replace("[", "").replace("]", ""), "start": str(start), "bracketed": row["sentence"]})
    return rows


def dumped(args: argparse.Namespace, sentences: list[str]) -> list[dict]:
    text = "\n".join(" ".join(s.split("\n")) for s in sentences) + "\n"
    command = [args.dump, args.lexicon, "--words"]
    out = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def find_token(said: dict, word: str, begin: int) -> tuple[list[dict], int] | None:
    """The tokens and which of them starts at a byte of the sentence; a part between hyphens becomes one of its own."""
    source = next((w for w in said["words"] if w["begin"] <= begin < w["begin"] + len(w["source"].encode())), None)
    if source is None:
        return None
    same = [w["begin"] for w in said["words"] if w["source"] == source["source"]]
    tokens = [i for i, t in enumerate(said["tokens"]) if t["text"] == source["source"]]
    if len(tokens) != len(same):
        return None
    i = tokens[same.index(source["begin"])]
    whole, offset = source["source"], begin - source["begin"]
    if not whole.isascii() or whole[offset : offset + len(word)].lower() != word:
        return None
    before, after = whole[:offset], whole[offset + len(word) :]
    if (before and before[-1] != "-") or (after and after[0] != "-"):
        return None
    pieces = ([before[:-1].split("-")[-1]] if before else []) + [whole[offset : offset + len(word)]] + ([after[1:].split("-")[0]] if after else [])
    inside = [said["tokens"][i] | {"text": piece} for piece in pieces]
    return said["tokens"][:i] + inside + said["tokens"][i + 1 :], i + bool(before)


class Readings:
    """The readings of each word, and the keys that their weights go by."""

    def __init__(self, path: pathlib.Path) -> None:
        self.of, self.labels = collections.defaultdict(list), {}
        for row in read(path):
            self.of[row["homograph"]].append(row["wordid"])
            self.labels[row["wordid"]] = {"analyze": "verb", "analysis": "noun"}.get(row["label"], row["label"])

    def keys(self, word: str) -> list[dict[str, float]]:
        """For each reading its keys with the scales of their weights; the first has no weights of its own."""
        names = self.of[word]
        verbs = [name for name in names if "verb" in self.labels[name] and "noun" not in self.labels[name]]
        keys = []
        for k, name in enumerate(names):
            keys.append({"class:" + self.labels[name].replace(" ", "_"): CLASS_SCALE} | ({name: 1.0} if k else {}))
            if [name] == verbs and len(names) == 2:
                keys[-1]["verb"] = VERB_SCALE
        return keys


class Examples:
    def __init__(self, args: argparse.Namespace, rows: list[dict], readings: Readings, classes: dict[str, str]) -> None:
        self.rows, self.words, self.truth, self.features, self.lost = [], [], [], [], 0
        for row, said in zip(rows, dumped(args, [r["sentence"] for r in rows])):
            found = find_token(said, row["homograph"], int(row["start"]))
            if found is None:
                self.lost += 1
                continue
            self.rows.append(row)
            self.words.append(row["homograph"])
            self.truth.append(readings.of[row["homograph"]].index(row["wordid"]))
            self.features.append(sorted(set(features(Neighbours(*found, classes)))))
        self.truth = np.array(self.truth)
        self.ours = np.array(["bracketed" in row for row in self.rows])
        self.opens = self.ours & np.array([row.get("bracketed", "").startswith("[") for row in self.rows])


class Matrix:
    """A row a reading of an example, a column a weight.  `places` holds the hash of each column."""

    def __init__(self, examples: Examples, readings: Readings) -> None:
        own, shared = collections.Counter(), collections.Counter()
        for word, found in zip(examples.words, examples.features):
            own.update((word, f) for f in found)
            shared.update(found)
        columns, rows, places, values, self.starts = {}, [], [], [], [0]
        keys = {word: [[(k, s, fnv(k), k in readings.labels) for k, s in one.items()] for one in readings.keys(word)] for word in set(examples.words)}
        hashes = {f: fnv(f) for f in shared}
        row = 0
        for word, found in zip(examples.words, examples.features):
            for reading in keys[word]:
                for key, scale, code, is_own in reading:
                    for f in found:
                        if (own[word, f] if is_own else shared[f]) < 2:
                            continue
                        place = (hashes[f] ^ code) >> HASH_BITS_DROPPED
                        rows.append(row)
                        places.append(columns.setdefault(place, len(columns)))
                        values.append(scale * (BAG_SCALE if f.startswith(BAGS) else 1.0))
                row += 1
            self.starts.append(row)
        shape = (row, len(columns))
        self.x = sparse.csr_matrix((np.array(values, np.float32), (rows, places)), shape=shape)
        self.counts = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, places)), shape=shape)  # without scales
        self.places = np.array(list(columns), np.int64)
        self.starts = np.array(self.starts)

    def rows_of(self, chosen: np.ndarray) -> tuple[sparse.csr_matrix, np.ndarray]:
        rows = np.concatenate([np.arange(self.starts[n], self.starts[n + 1]) for n in chosen])
        return self.x[rows], np.concatenate([[0], np.cumsum(self.starts[chosen + 1] - self.starts[chosen])])


def fit(x: sparse.csr_matrix, starts: np.ndarray, truth: np.ndarray, counts: np.ndarray, penalty: float, begin: np.ndarray, steps: int) -> np.ndarray:
    """`counts`: how often each example counts."""
    first, right = starts[:-1], starts[:-1] + truth
    example = np.repeat(np.arange(len(truth)), np.diff(starts))
    across = x.T.tocsr()

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        scores = x @ w.astype(np.float32)
        most = np.maximum.reduceat(scores, first)
        e = np.exp(scores - most[example])
        total = np.add.reduceat(e, first)
        slope = e / total[example]
        slope[right] -= 1
        slope *= counts[example]
        value = float((counts * (np.log(total) + most - scores[right])).sum()) + 0.5 * penalty * float(w @ w)
        return value, (across @ slope).astype(np.float64) + penalty * w

    return optimize.minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x


def train(matrix: Matrix, chosen: np.ndarray, examples: Examples, args: argparse.Namespace) -> np.ndarray:
    """Whole weights from -127 to 127, one a column, all but --weights of them 0."""
    x, starts = matrix.rows_of(chosen)
    truth, counts = examples.truth[chosen], np.where(examples.ours[chosen], OURS, 1.0).astype(np.float32)
    scale = np.asarray(abs(x).max(axis=0).todense()).ravel()  # each column's values are one number or 0
    weights = fit(x, starts, truth, counts, args.penalty, np.zeros(x.shape[1]), 60)
    kept = np.sort(np.argsort(-np.abs(weights * scale))[: args.weights])
    again = fit(x[:, kept].tocsr(), starts, truth, counts, args.penalty, weights[kept], 30)
    whole = np.zeros(x.shape[1])
    whole[kept] = again * scale[kept]
    return np.round(whole * 127 / np.abs(whole).max())


def scores_of(matrix: Matrix, weights: np.ndarray) -> np.ndarray:
    return matrix.counts @ weights.astype(np.float32)


def judge(examples: Examples, matrix: Matrix, weights: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, collections.Counter]:
    """Right or not, for each of the chosen; wrong ones by word."""
    scores = scores_of(matrix, weights)
    right = np.array([np.argmax(scores[matrix.starts[n] : matrix.starts[n + 1]]) == examples.truth[n] for n in chosen])
    return right, collections.Counter(examples.words[n] for n, is_right in zip(chosen, right) if not is_right)


def cross_validate(examples: Examples, matrix: Matrix, args: argparse.Namespace) -> None:
    order, wrong = np.random.default_rng(0).permutation(len(examples.words)), collections.Counter()
    right = np.zeros(len(order), bool)
    tried = np.zeros(len(order), bool)
    for fold in range(args.folds)[: args.tried]:
        held = np.sort(order[fold :: args.folds])
        weights = train(matrix, np.setdiff1d(order, held), examples, args)
        right[held], missed = judge(examples, matrix, weights, held)
        tried[held] = True
        wrong += missed
    sets = {"the encyclopedia's": ~examples.ours, "ours": examples.ours, "ours that open a sentence": examples.opens}
    for name, which in ((name, which & tried) for name, which in sets.items()):
        print(f"{name}: {100 * right[which].mean():.2f} % of {which.sum()}")
    print("most often wrong:", ", ".join(f"{w} {n}" for w, n in wrong.most_common(25)))


TAGS = {"verb": ("VERB", "VBD", "DEFAULT"), "noun": ("NOUN", "DEFAULT"), "adjective": ("ADJ", "DEFAULT"),
        "adjective-noun": ("ADJ", "DEFAULT", "NOUN")}  # fmt: skip
OTHER_TAGS = ("DEFAULT", "ADJ", "NOUN", "VERB", "VBD")  # of readings told apart by sense


def tags_of(names: list[str], labels: dict[str, str], entry: object) -> list[str] | None:
    """A variant of the lexicon for each reading, all of them different; None: the lexicon does not have so many."""
    if not isinstance(entry, dict):
        return None
    offers = [[t for t in TAGS.get(labels[r], OTHER_TAGS) if t in entry] for r in names]
    for tags in itertools.product(*offers):
        if len({entry[t] for t in tags}) == len(names):
            return list(tags)
    return None


def header(args: argparse.Namespace, readings: Readings) -> str:
    lexicon = json.loads((pathlib.Path(args.lexicon) / "us_gold.json").read_text(encoding="utf-8"))
    own = {row["reading"]: row for row in read(HERE / "homograph_phonemes.tsv")}
    lines = []
    for word, names in readings.of.items():
        tags = tags_of(names, readings.labels, lexicon.get(word)) if names[0] not in own else None
        for k, (name, keys) in enumerate(zip(names, readings.keys(word))):
            if tags is None and name not in own:
                raise SystemExit(f"the lexicon does not tell the readings of '{word}' apart: add them to homograph_phonemes.tsv")
            said = ["", ""] if tags else [own[name]["american"], own[name]["british"]]
            lines.append("\t".join([word, name, " ".join(keys), tags[k] if tags else "", *said]))
    return "\n".join(lines) + "\n\n"


def table(entries: dict[int, int]) -> bytes:
    """For each hash, ascending, the gap to the one before (7 bits a byte, the low ones first; the top bit: more), a byte."""
    out, last = bytearray(), 0
    for place in sorted(entries):
        gap, last = place - last, place
        while gap > 127:
            out.append(gap & 127 | 128)
            gap >>= 7
        out += bytes([gap, entries[place] & 255])
    return bytes(out)


def file_of(args: argparse.Namespace, readings: Readings, classes: dict[str, str], matrix: Matrix, weights: np.ndarray) -> bytes:
    names = sorted(set(classes.values()))
    words = {fnv(word) >> HASH_BITS_DROPPED: names.index(name) for word, name in classes.items()}
    kept = {int(place): int(w) for place, w in zip(matrix.places, weights) if w}
    text = f"syrinx homographs 1 {len(words)} {len(kept)}\n{' '.join(names)}\n" + header(args, readings)
    return text.encode() + table(words) + table(kept)


def expected(examples: Examples, matrix: Matrix, weights: np.ndarray, readings: Readings, every: int) -> str:
    """Scores of some of our sentences as the file gives them, hashes that meet by chance included: for the test of the C++."""
    lines, kept = ["reading\tscores\tsentence"], {int(place): int(w) for place, w in zip(matrix.places, weights) if w}
    for n in np.flatnonzero(examples.ours)[::every]:
        word, found = examples.words[n], [fnv(f) for f in examples.features[n]]
        scores = [sum(kept.get((f ^ fnv(key)) >> HASH_BITS_DROPPED, 0) for key in keys for f in found) for keys in readings.keys(word)]
        reading = readings.of[word][scores.index(max(scores))]
        lines.append(f"{reading}\t{' '.join(map(str, scores))}\t{examples.rows[n]['bracketed']}")
    return "\n".join(lines) + "\n"


def arguments() -> argparse.Namespace:
    store = pathlib.Path(os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local" / "share") / "syrinx" / "models"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--masc", type=pathlib.Path, required=True, help="the folder masc_tagged")
    parser.add_argument("--dump", default=str(ROOT / "build" / "release" / "bench" / "g2p_dump"))
    parser.add_argument("--lexicon", default=str(store / "english-g2p"))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--expected", type=pathlib.Path, help="scores of some sentences, for a test")
    parser.add_argument("--weights", type=int, default=110000, help="how many are kept")
    parser.add_argument("--penalty", type=float, default=1.0)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--tried", type=int, help="only that many of the folds")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    readings, classes = Readings(args.data / "wordids.tsv"), word_classes.count(args.masc)
    rows = read(args.data / "train.tsv") + marked(HERE / "sentences.tsv")
    examples = Examples(args, rows, readings, classes)
    matrix = Matrix(examples, readings)
    print(f"{len(examples.words)} examples, {examples.lost} not found among the tokens, {matrix.x.shape[1]} weights", flush=True)
    if args.folds:
        cross_validate(examples, matrix, args)
        return
    everything = np.arange(len(examples.words))
    weights = train(matrix, everything, examples, args)
    print(f"on the training set: {100 * judge(examples, matrix, weights, everything)[0].mean():.2f} %")
    if args.out:
        args.out.write_bytes(file_of(args, readings, classes, matrix, weights))
    if args.expected:
        args.expected.write_text(expected(examples, matrix, weights, readings, 40), encoding="utf-8")


if __name__ == "__main__":
    main()
