#!/usr/bin/env python3
"""Writes a small tokenizer.json and vocabulary.txt in the form of Whisper's: 500 tokens of text, five languages, the
specials and 1,501 times. The pairs are learnt here from a few lines of many scripts, so nothing is drawn or fetched.

  python3 tools/checkpoints/whisper_tokenizer.py tests/data/whisper
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import pathlib
import string

import regex

TEXT_TOKENS = 500
LANGUAGES = ("en", "zh", "de", "fr", "ja")
SPLIT = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

CORPUS = """
The quick brown fox jumps over the lazy dog, and the dog doesn't mind it. We're here, they've gone, I'll stay; she'd
said that it's the thing that they think there is. When the wind was in the tree, he heard what her brother thought.
Reading, writing, speaking, listening: the engine hears the words that the speaker said, then it writes them down.
In 1999 there were 12 of them; in 2024 there are 3,500. Der schnelle braune Fuchs springt über den faulen Hund, und
die Straße ist naß. Ich weiß nicht, was soll es bedeuten. Voilà l'été, où les élèves sont à l'école, déjà très
contents. 今日は良い天気です。 今日は良い日です。 你好，世界。 世界很大。 Привет, мир. Добрый день, мир. 😀😀 ♪♪ (music) [noise]
""".replace("\n", " ").strip()


def alphabet() -> list[str]:
    """GPT-2's character for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def learn(text: str, count: int) -> list[bytes]:
    """The bytes and then the most frequent pairs of neighbours; of equals the one that sorts first."""
    pieces = collections.Counter(tuple(bytes([b]) for b in piece.encode()) for piece in regex.findall(SPLIT, text))
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    tokens = [bytes([b]) for b in [*printable, *sorted(set(range(256)) - set(printable))]]
    while len(tokens) < count:
        pairs = collections.Counter()
        for piece, times in pieces.items():
            for pair in zip(piece, piece[1:]):
                pairs[pair] += times
        best = max(pairs.values())
        a, b = min(pair for pair, times in pairs.items() if times == best)
        tokens.append(a + b)
        pieces = collections.Counter({_joined(piece, a, b): times for piece, times in pieces.items()})
    return tokens


def _joined(piece: tuple[bytes, ...], a: bytes, b: bytes) -> tuple[bytes, ...]:
    out, i = [], 0
    while i < len(piece):
        if piece[i:i + 2] == (a, b):
            out.append(a + b)
            i += 2
        else:
            out.append(piece[i])
            i += 1
    return tuple(out)


def specials() -> list[str]:
    names = ["endoftext", "startoftranscript", *LANGUAGES, "translate", "transcribe", "startoflm", "startofprev",
             "nocaptions", "notimestamps"]
    return [f"<|{name}|>" for name in names]


def fillers(count: int) -> list[bytes]:
    """Words that no text has, for the ids between the tokens that are learnt and as many as the published ones have."""
    letters = string.ascii_lowercase
    return [f" Q{''.join(letter)}".encode() for letter in itertools.islice(itertools.product(letters, repeat=4), count)]


def times() -> list[str]:
    return [f"<|{0.02 * i:.2f}|>" for i in range(1501)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="folder to write to")
    out = parser.parse_args().out
    letters = alphabet()
    spelt = ["".join(letters[b] for b in token) for token in learn(CORPUS, TEXT_TOKENS)]
    added = [dict(id=TEXT_TOKENS + i, content=name, special=True) for i, name in enumerate(specials())]
    file = dict(version="1.0", truncation=None, padding=None, added_tokens=added, normalizer=None,
                pre_tokenizer=dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True),
                post_processor=None, decoder=dict(type="ByteLevel", add_prefix_space=True, trim_offsets=True),
                model=dict(type="BPE", dropout=None, unk_token=None, vocab={s: i for i, s in enumerate(spelt)}, merges=[]))
    (out / "tokenizer.json").write_text(json.dumps(file, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "vocabulary.txt").write_text("\n".join([*spelt, *specials(), *times()]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
