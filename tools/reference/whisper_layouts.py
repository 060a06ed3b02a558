#!/usr/bin/env python3
"""What transformers and openai-whisper make of Whisper's other layouts: English alone (51,864 tokens), large-v3's 128
mels and 51,866 tokens, of which one is a hundredth language, and turbo's, which is large-v3's with fewer layers in the
decoder than in the encoder. The weights are those of tools/checkpoints/whisper.py's sizes tiny-english, tiny-large-v3
and tiny-turbo; the maker's own tokenizer reads a vocabulary as long as the published ones, of the tokens of
tests/data/whisper/tokenizer.json and words that nobody says.

  python3 tools/reference/whisper_layouts.py tests/data/whisper

With --write OUT: checkpoints of all three in all forms with their vocabulary.txt, for a look with the program.
"""

from __future__ import annotations

import argparse
import base64
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import whisper.decoding
import whisper.tokenizer
import whisper_openai
import whisper_small
import whisper_stages
import whisper_tiny

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "checkpoints"))
import container  # noqa: E402
from whisper_tokenizer import TEXT_TOKENS, alphabet, fillers, times  # noqa: E402

# Of the sound's number, its samples, language (None: found out), task, condition on previous text, times of words.
ROWS = {"english": [(1, 16000, None, "transcribe", True, True), (2, 59999, None, "transcribe", True, False),
                    (6, 80000, "en", "transcribe", False, True)],
        "large-v3": [(2, 59999, None, "transcribe", True, False), (3, 40000, "yue", "translate", False, False),
                     (6, 80000, "yue", "transcribe", True, True), (8, 70000, "de", "transcribe", True, True)],
        "turbo": [(2, 59999, None, "transcribe", True, False), (3, 40000, "de", "translate", False, True),
                  (6, 80000, "yue", "transcribe", True, True), (9, 90000, "en", "transcribe", False, True)]}


def text_tokens(folder: pathlib.Path, multilingual: bool) -> list[bytes]:
    vocab = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    byte_of = {letter: byte for byte, letter in enumerate(alphabet())}
    learnt = [bytes(byte_of[c] for c in spelt) for spelt in vocab]
    tokens = learnt + fillers(50256 - TEXT_TOKENS) + ([b""] if multilingual else [])
    assert len(set(tokens)) == len(tokens)
    return tokens


def install(folder: pathlib.Path, place: pathlib.Path) -> None:
    """The maker's get_encoding() looks for its two files beside its module."""
    (place / "assets").mkdir()
    for name, multilingual in (("gpt2", False), ("multilingual", True)):
        lines = [base64.b64encode(token).decode() or "=" for token in text_tokens(folder, multilingual)]
        (place / "assets" / f"{name}.tiktoken").write_text("".join(f"{line} {i}\n" for i, line in enumerate(lines)))
    whisper.tokenizer.__file__ = str(place / "tokenizer.py")


def specials(model: whisper.model.Whisper) -> dict[str, object]:
    def tokenizer(language: str | None, task: str | None) -> whisper.tokenizer.Tokenizer:
        return whisper.tokenizer.get_tokenizer(model.is_multilingual, num_languages=model.num_languages, language=language,
                                               task=task)

    own = tokenizer(None, None)
    task = whisper.decoding.DecodingTask(model, whisper.decoding.DecodingOptions(language="en", fp16=False))
    prompts = []
    for language, kind in (("en", "transcribe"), ("de", "translate"), *([("yue", "transcribe")] if own.num_languages > 99 else [])):
        of = tokenizer(language, kind)
        prompts.append(dict(language=language, translate=kind == "translate", timed=list(of.sot_sequence),
                            untimed=list(of.sot_sequence_including_notimestamps)))
    return dict(multilingual=model.is_multilingual, mels=model.dims.n_mels, vocabulary=model.dims.n_vocab,
                encoder_layers=model.dims.n_audio_layer, decoder_layers=model.dims.n_text_layer,
                languages=sorted(own.all_language_codes, key=lambda code: own.special_tokens[f"<|{code}|>"]), end_of_text=own.eot, start_of_transcript=own.sot,
                translate=own.translate, transcribe=own.transcribe, start_of_lm=own.sot_lm, start_of_previous=own.sot_prev,
                no_speech=own.no_speech, no_timestamps=own.no_timestamps, first_time=own.timestamp_begin,
                suppressed=sorted(task._get_suppress_tokens()), prompts=prompts)


def stages_to_keep(name: str, stages: set[str]) -> set[str]:
    """What the layout changes."""
    if name == "english":
        return {"tokens", "columns", "best", "logits"}  # its encoder is the small checkpoint's
    return stages - {"sound", "weights"} - ({"mel"} if name == "turbo" else set())  # turbo's is large-v3's


def arrays(name: str, folder: pathlib.Path, vocabulary: int) -> dict[str, np.ndarray]:
    """Stages of transformers' model, with some columns of the logits."""
    tokens = np.concatenate([np.random.default_rng(12).integers(0, vocabulary, 14), vocabulary - np.array([1, 2, 1501, 1502, 1507, 1609])])
    out = whisper_stages.stages(folder, tokens)
    columns = np.r_[0:40, 50240:50380, vocabulary - 20:vocabulary].astype(np.int32)
    out["columns"], out["best"] = columns, out["logits"].argmax(axis=1).astype(np.int32)
    out["logits"] = out["logits"][:, columns]
    return {f"{name}.{stage}": np.ascontiguousarray(out[stage]) for stage in sorted(stages_to_keep(name, set(out)))}


def write_vocabulary(folder: pathlib.Path, to: pathlib.Path, languages: list[str]) -> None:
    letters = alphabet()
    text = ["".join(letters[b] for b in token) for token in text_tokens(folder, len(languages) > 99)]
    names = ["endoftext", "startoftranscript", *languages, "translate", "transcribe", "startoflm", "startofprev",
             "nocaptions", "notimestamps"]
    to.write_text("\n".join([*text, *(f"<|{name}|>" for name in names), *times()]) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="tests/data/whisper")
    parser.add_argument("--write", type=pathlib.Path, metavar="OUT")
    args = parser.parse_args()
    torch.set_num_threads(1)
    whisper_tiny.TokenTimes()
    out, lines = {}, []
    with tempfile.TemporaryDirectory() as scratch:
        place = pathlib.Path(scratch)
        install(args.folder, place)
        for name, asked in ROWS.items():
            forms = (args.write or place) / name
            subprocess.run([sys.executable, ROOT / "tools" / "checkpoints" / "whisper.py", "--size", f"tiny-{name}", "--out", forms],
                           check=True)
            model = whisper_openai.load(forms / "ct2")
            if not out:  # once: it changes the maker's modules
                whisper_tiny.shorten(model)
            told = specials(model)
            if args.write:
                for form in ("ct2", "transformers", "openai"):
                    write_vocabulary(args.folder, forms / form / "vocabulary.txt", told["languages"])
            out |= arrays(name, forms, model.dims.n_vocab)
            rows = [whisper_tiny.heard(model, *row) for row in asked]
            lines.append(f'"{name}":' + json.dumps(told | dict(rows=rows), separators=(",", ":")))
            for row in rows:
                print(name, row["seed"], row["found"], len(row["segments"]), "segments,", sum(len(s["ids"]) for s in row["segments"]), "tokens")
    if args.write:
        return
    container.save(args.folder / "layouts.safetensors", out, {"made_by": "tools/reference/whisper_layouts.py"})
    (args.folder / "layouts.json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
