#!/usr/bin/env python3
"""Trains a small BPE model as the archives of transducers hold one, by SentencePiece's own trainer, and writes what its package says of it.

  bpe.model   <unk>, a control, pieces of the user's, 256 byte pieces, then learnt ones by falling rank; identity normaliser
  bpe.json    `pieces`: text, score and type (sentencepiece_model.proto) of each; `phrases`: `text` and the `ids` that it is
              encoded to, those alone that learnt pieces spell

The text holds one sentence a line, after a tab anything; lines that begin with # are left out.  Same text and package, same bytes.

  python3 tools/reference/sentencepiece_pieces.py --text tools/judge/sentences.txt --out tests/data/text
"""
import argparse
import importlib.metadata
import io
import json
import pathlib

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as proto

PIECES = 420
NORMAL = 1


def train(lines):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=PIECES, model_type="bpe", byte_fallback=True, unk_id=0,
        bos_id=-1, eos_id=-1, control_symbols=["<|ctl|>"], user_defined_symbols=["<EOU>", "mm-hm", "\u00bf"],
        normalization_rule_name="identity", character_coverage=1.0, num_threads=1, minloglevel=2)
    return out.getvalue()


def phrases(model, pieces, lines):
    """Whole sentences, their first three words, and blanks where none need be."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    for line in lines:
        words = line.split()
        for text in (line, " ".join(words[:3]), "  " + "   ".join(words[-2:]) + " "):
            ids = processor.encode(text)
            if len(text.encode()) <= 256 and all(pieces[i].type == NORMAL for i in ids):
                yield {"text": text, "ids": ids}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write into; must exist")
    args = parser.parse_args()
    lines = [line.split("\t")[0] for line in args.text.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    model = train(lines)
    pieces = proto.ModelProto.FromString(model).pieces
    answer = {"made by": "sentencepiece " + importlib.metadata.version("sentencepiece"),
              "pieces": [[piece.piece, piece.score, piece.type] for piece in pieces],
              "phrases": list(phrases(model, pieces, lines))}
    (args.out / "bpe.model").write_bytes(model)
    (args.out / "bpe.json").write_text(json.dumps(answer, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{len(pieces)} pieces, {len(answer['phrases'])} phrases")


if __name__ == "__main__":
    main()
