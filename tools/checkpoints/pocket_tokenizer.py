#!/usr/bin/env python3
"""Trains a tokenizer such as Pocket TTS has: SentencePiece unigram with byte fallback, in both published forms.

  NAME.model   SentencePiece: <unk> <s> </s> <pad>, 256 byte pieces, then learnt pieces by falling score; identity
               normaliser, dummy prefix, white space kept
  NAME.json    the same vocabulary for Hugging Face tokenizers, as configs with `tokenizer: tokenizers` want it

The text is any plain text, one sentence or line of prose a line; tests/data/pocket_tts uses the novels of Debian's
r-cran-janeaustenr, as tools/judge/austen.py prints them.  They hardly know ellipses, digits and accents, so a few lines
with those are mixed in.  Same text, same bytes.

  python3 tools/checkpoints/pocket_tokenizer.py --text austen.txt --pieces 400 --out tests/data/pocket_tts
  python3 tools/checkpoints/pocket_tokenizer.py --text austen.txt --pieces 4000 --out DIR
  python3 tools/checkpoints/pocket_tokenizer.py --from-model tokenizer.model --out DIR      only writes the .json
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import pathlib
import sys
import tempfile

import sentencepiece
from tokenizers import Tokenizer, decoders, models, normalizers

SPACE = "\u2581"
# Mixed in with the text, often enough for their characters and `...` to become pieces.
_EXTRA = (
    "Wait... what? So... you... came... back... No! Well... yes...",
    "It costs 3.50 dollars; the other one, 1,250.75: too much!",
    "In 1980, 1976 and 2026 it was 4 o'clock; 5, 6, 7, 8, 9 and 0.",
    'Café, naïve, señor, über: "words" (with marks) [of their own]...',
)
# For the test of a tokenizer with a character map of its own: from and to, as code points in hexadecimal.
_RULES = {"\u2026": "...", "\u201c": '"', "\u201d": '"', "\ufb01": "fi", "\u00bd": "1/2", "e\u0301": "é", "\u00ad": "",
          "\u00a0": " ", "\u2460\u2461": "12", "\u2460": "1"}


def sentences(paths: list[pathlib.Path]) -> list[str]:
    """Paragraphs of the text as lines: the novels are broken in the middle of sentences."""
    lines, paragraph = [], []
    for path in paths:
        for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
            if line.strip():
                paragraph.append(line.strip())
            elif paragraph:
                lines.append(" ".join(paragraph))
                paragraph = []
    if not lines:
        raise SystemExit(f"{', '.join(map(str, paths))}: no text")
    return lines + list(_EXTRA) * (len(lines) // 12 + 1)


@contextlib.contextmanager
def character_map(wanted: bool):
    """Options of the normaliser.  A map is read from a file whose name goes into the model, so it gets a plain one."""
    if not wanted:
        yield dict(normalization_rule_name="identity", remove_extra_whitespaces=False)
        return
    code = lambda text: " ".join(f"{ord(c):X}" for c in text)  # noqa: E731
    before = pathlib.Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            pathlib.Path("rules.tsv").write_text("".join(f"{code(a)}\t{code(b)}\n" for a, b in _RULES.items()))
            yield dict(normalization_rule_tsv="rules.tsv", remove_extra_whitespaces=True)
        finally:
            os.chdir(before)


def train(lines: list[str], pieces: int, mapped: bool) -> bytes:
    out = io.BytesIO()
    with character_map(mapped) as options:
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines), model_writer=out, vocab_size=pieces, model_type="unigram",
                byte_fallback=True, unk_id=0, bos_id=1, eos_id=2, pad_id=3, add_dummy_prefix=True,
                max_sentencepiece_length=6, character_coverage=0.9998, num_threads=1, minloglevel=2,
                max_sentence_length=1 << 16, **options)
        except RuntimeError as error:
            raise SystemExit(f"--pieces {pieces}: {error}") from error
    return out.getvalue()


def to_json(model: bytes) -> str:
    """Only for models without a character map, which these normalisers do not express."""
    m = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocabulary = [(m.id_to_piece(i), m.get_score(i)) for i in range(m.vocab_size())]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=m.unk_id(), byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return tokenizer.to_str(pretty=False)


def write(path: pathlib.Path, data: bytes) -> None:
    path.write_bytes(data)
    print(f"{path}: {len(data):,} bytes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, action="append", default=[],
                        help="plain text to learn from; may repeat")
    parser.add_argument("--from-model", type=pathlib.Path, help="a .model to write as .json, in place of learning one")
    parser.add_argument("--pieces", type=int, default=4000, help="size of the vocabulary (default 4000)")
    parser.add_argument("--mapped", action="store_true",
                        help="with a character map and white space squeezed, as no published file has it; no .json")
    parser.add_argument("--name", default="tokenizer", help="name of the files (default tokenizer)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write into; must exist")
    args = parser.parse_args()
    if bool(args.text) == bool(args.from_model):
        parser.error("give either --text or --from-model")
    if not args.out.is_dir():
        parser.error(f"--out {args.out} is not a folder: make it first")
    for path in (*args.text, *filter(None, [args.from_model])):
        if not path.is_file():
            parser.error(f"{path} is not a file")
    if args.from_model:
        model = args.from_model.read_bytes()
    else:
        model = train(sentences(args.text), args.pieces, args.mapped)
        write(args.out / f"{args.name}.model", model)
    if not args.mapped:
        write(args.out / f"{args.name}.json", to_json(model).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
