#!/usr/bin/env python3
"""Writes mapped.json, the tokenizer.json of a vocabulary with a character map, and what the library makes of texts.

usage: tools/reference/pocket_mapped.py FOLDER        with mapped.model in it; needs sentencepiece and tokenizers

The normaliser begins with a step Precompiled, as Hugging Face's conversions of such models have it.  Nobody has seen a
published Pocket TTS tokenizer with one; white space is not squeezed here, since the published models keep it.
mapped_ids.json: a list of {"text", "ids", "decoded"}.
"""

from __future__ import annotations

import json
import pathlib
import sys

import sentencepiece
from tokenizers import Tokenizer, normalizers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "checkpoints"))

from pocket_tokenizer import SPACE, to_json  # noqa: E402

TEXTS = ("He said… “hi”, ﬁne.", "½ and ①② and ①", "e\u0301 is é, soft\u00adhyphen", "a\u00a0b  c", "…", "ﬁ\u0301x",
         "“\u0301”", "①\u20dd②", "①\u200d②", "\u00ad", "\u00ad\u00ad x", "plain text", "", "  ", "👩\u200d👩\u200d👧…", "각…각",
         "\r\n…\r\n", "e\u0301\u0301\u0301", "…\u0301\u0301\u0301", "x…\u0300y", "你好…", "½\u0301\u0302½", "🇩🇪🇫🇷…",
         "\u0915\u094d\u0937…", "a\0…b", "…\0b")


def field(message: bytes, wanted: int) -> bytes:
    """The first field of that number in a message of Protocol Buffers, which must be one of bytes."""
    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if byte < 0x80:
                return value, at
    at = 0
    while at < len(message):
        tag, at = varint(at)
        if tag & 7 == 0:
            _, at = varint(at)
            continue
        size, at = varint(at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
        if tag >> 3 == wanted:
            return message[at:at + size]
        at += size
    raise SystemExit(f"no field {wanted}")


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    model = (folder / "mapped.model").read_bytes()
    character_map = field(field(model, 3), 2)  # ModelProto.normalizer_spec.precompiled_charsmap
    tokenizer = Tokenizer.from_str(to_json(model))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(character_map), normalizers.Prepend(SPACE),
                                                 normalizers.Replace(" ", SPACE)])
    (folder / "mapped.json").write_text(tokenizer.to_str(pretty=False), encoding="utf-8")
    results = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        results.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids)})
    (folder / "mapped_ids.json").write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()
    print(f"mapped.json: {pieces} pieces, a map of {len(character_map)} bytes; mapped_ids.json: {len(results)} texts")
    return 0


sys.exit(main())
