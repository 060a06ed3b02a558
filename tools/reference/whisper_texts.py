#!/usr/bin/env python3
"""Texts with the token ids that OpenAI's own tokenizer gives them: tiktoken with Whisper's expression, on the small
vocabulary of tests/data/whisper and on the multilingual one of the openai-whisper package.

  python3 tools/reference/whisper_texts.py tests/data/whisper
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import sys

import tiktoken
import whisper.tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "checkpoints"))
from whisper_tokenizer import SPLIT, TEXT_TOKENS, alphabet  # noqa: E402

TEXTS = (
    "", " ", "  ", "   a", "a ", "a  ", "a  b", "a\n\nb", "a \n b", "\n", "\t\tx", " \u00a0x", "x\u3000y", "\u2028z", "a\x85b",
    "Hello world", " Hello, world!", "Hello  world ", "the theory of them", " the the  the", "don't", "I'll we've she'd",
    "IT'S they'RE 'tis 'S 's 't're'x", "''s", " 's", "' s", "it’s", "3.50 dollars, 1,000,000", "½ x² Ⅷ ① ٣٤ १२३", "12abc34",
    "_under_score_", "a/b\\c", "!?!?...", "… — – “hi” «oui»", "\"quoted\" (and so on) [x] {y} <z> |w|", "♪ ♪♪ ♩♫", "-- --- ->",
    "e\u0301a\u0308", "naïve café Straße", "ﬁre Ǆ ŉ", "Привет, мир!", "Ελληνικά γράμματα", "שלום עולם", "مرحبا بالعالم",
    "你好，世界。", "今日は良い天気です。", "안녕하세요 세계", "สวัสดีชาวโลก", "हिन्दी में", "বাংলা", "தமிழ்", "ქართული", "አማርኛ",
    "😀", " 😀😀 x", "👩‍👩‍👧", "🇩🇪🇫🇷", "👍🏽", "a\u200bb", "\ufeffmark", "\x00\x01\x1f\x7f", "\x1c\x1d", "\u180e", "ẞ", "𝒳𝒴 𐍈",
    "<|endoftext|>", "x <|en|> y", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "." * 70, " " * 70, "ab" * 40, "The" * 30,
)


def drawn(count: int) -> list[str]:
    """Texts of letters, marks, digits, spaces and signs of many scripts in any order."""
    rng = random.Random(5)
    blocks = ((0x20, 0x7F), (0x20, 0x7F), (0x09, 0x0E), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700),
              (0x900, 0x980), (0xE00, 0xE80), (0x2000, 0x2070), (0x2150, 0x2190), (0x2460, 0x24FF), (0x3000, 0x3100),
              (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xFF00, 0xFFF0), (0x1F600, 0x1F650), (0x1D400, 0x1D500))
    texts = []
    for _ in range(count):
        picked = [rng.choice(blocks) for _ in range(rng.randint(1, 3))]
        texts.append("".join(chr(rng.randrange(*rng.choice(picked))) for _ in range(rng.randint(1, 24))))
    return texts


def small(folder: pathlib.Path) -> tiktoken.Encoding:
    vocab = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    byte_of = {letter: byte for byte, letter in enumerate(alphabet())}
    ranks = {bytes(byte_of[c] for c in spelt): i for spelt, i in vocab.items()}
    return tiktoken.Encoding(name="small", pat_str=SPLIT, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": TEXT_TOKENS})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="tests/data/whisper")
    folder = parser.parse_args().folder
    encodings = dict(ids=small(folder), multilingual=whisper.tokenizer.get_encoding("multilingual"))
    rng = random.Random(6)
    rows = []
    for text in [*TEXTS, *drawn(250)]:
        row = dict(text=text) | {name: e.encode(text, disallowed_special=()) for name, e in encodings.items()}
        rows.append(row)
    broken = []
    for _ in range(60):                # ids in any order: bytes that are no UTF-8
        ids = [rng.choice([rng.randrange(94, 256), rng.randrange(TEXT_TOKENS)]) for _ in range(rng.randint(1, 12))]
        broken.append(dict(ids=ids, decoded=encodings["ids"].decode(ids)))
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=True, separators=(",", ":")) for row in rows)
    tail = ",\n".join("  " + json.dumps(row, ensure_ascii=True, separators=(",", ":")) for row in broken)
    (folder / "texts.json").write_text(f'{{"texts":[\n{lines}\n],\n"broken":[\n{tail}\n]}}\n', encoding="utf-8")
    print(f"{len(rows)} texts, {len(broken)} broken ones")


if __name__ == "__main__":
    main()
