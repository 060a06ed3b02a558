#!/usr/bin/env python3
"""The tokens that openai-whisper gives recordings at temperature 0 in f32, greedily or by a beam, with the weights of a CTranslate2
model.bin.

WAV files of 16 kHz, 16 bit and one channel, or the same as .raw; the language is English. The file that is written maps
each name to the tokens of its segments, with their times.

  cd /usr/share/pocketsphinx/test/data; python3 .../tools/reference/whisper_tokens.py --words --weights whisper-base \\
      --out real_tokens.json librivox/*.wav cards/*.wav goforward.raw numbers.raw something.raw

real_beams.json is the same without --words and with --beam 5.
"""

from __future__ import annotations

import argparse
import json
import pathlib

import numpy as np
import torch
import whisper
import whisper_openai
from speech_wav import read_speech, samples


def read(path: pathlib.Path) -> np.ndarray:
    return samples(path.read_bytes()) if path.suffix == ".raw" else read_speech(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=pathlib.Path, required=True, help="folder of model.bin and config.json")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="JSON file to write")
    parser.add_argument("--words", action="store_true", help="also times of words")
    parser.add_argument("--beam", type=int, help="hypotheses of a beam search (default: none)")
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch (default 2)")
    parser.add_argument("sounds", type=pathlib.Path, nargs="+")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = whisper_openai.load(args.weights)
    lines = []
    for path in args.sounds:
        result = whisper.transcribe(model, read(path), language="en", temperature=0.0, fp16=False, word_timestamps=args.words,
                                    beam_size=args.beam)
        row = dict(name=path.name, ids=[t for s in result["segments"] for t in s["tokens"]], text=result["text"])
        if args.words:
            row["words"] = [[w["word"], w["start"], w["end"]] for s in result["segments"] for w in s["words"]]
        lines.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
        print(path.name, result["text"], flush=True)
    args.out.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
