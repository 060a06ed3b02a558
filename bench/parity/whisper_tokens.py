#!/usr/bin/env python3
"""Compares the tokens that Syrinx's Whisper gives recordings with those that tools/reference/whisper_tokens.py wrote.

  python3 tools/reference/whisper_tokens.py --weights whisper-base --out reference.json *.wav     # needs openai-whisper
  python3 bench/parity/whisper_tokens.py --weights whisper-base --reference reference.json *.wav

Prints how many files and tokens are equal, and the files that are not; ends with status 1 if there is one in f32.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True, help="folder of the model")
    parser.add_argument("--reference", type=pathlib.Path, required=True, help="JSON file of the reference")
    parser.add_argument("--precisions", default="f32", help="with commas (default f32)")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bench/whisper_tokens", help="the built program")
    parser.add_argument("sounds", nargs="+")
    args = parser.parse_args()
    reference = {row["name"]: row for row in json.loads(args.reference.read_text(encoding="utf-8"))}
    status = 0
    for precision in args.precisions.split(","):
        done = subprocess.run([args.program, args.weights, precision, *args.sounds], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr.strip())
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        others = [row["name"] for row in rows if row["ids"] != reference[row["name"]]["ids"]]
        tokens = sum(len(reference[row["name"]]["ids"]) for row in rows)
        words = sum(len(reference[row["name"]]["text"].split()) for row in rows)
        print(f"{precision}: {len(rows) - len(others)} of {len(rows)} files equal ({tokens} tokens, {words} words)")
        for name in others:
            print(f"  {name}: {reference[name]['text'].strip()}")
        if others and precision == "f32":
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
