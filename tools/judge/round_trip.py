#!/usr/bin/env python3
"""Word errors of Syrinx listening to itself: speaks sentences (tools/judge/sentences.txt) with the built-in voice,
transcribes the sound with the built-in recogniser, and counts the words that came back wrong after both sides are
normalised. Needs nothing but the binary, `syrinx pull kokoro whisper-base` and Python. Ends with status 1 above --bar.

  python3 tools/judge/round_trip.py
  python3 tools/judge/round_trip.py --voice bf_emma --precision f32 --list
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "judge"))

import words  # noqa: E402


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:2])} ended with status {done.returncode}: {done.stderr.strip()}")


def errors(want: list[str], got: list[str]) -> int:
    """Substitutions, deletions and insertions (Levenshtein)."""
    row = list(range(len(got) + 1))
    for i, a in enumerate(want, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(got, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=pathlib.Path, default=ROOT / "tools/judge/sentences.txt", help="file to speak")
    parser.add_argument("--count", type=int, default=50, help="sentences of it (default 50)")
    parser.add_argument("--voice", default="af_heart", help="voice (default af_heart)")
    parser.add_argument("--syrinx", type=pathlib.Path, default=ROOT / "build/release/syrinx", help="the built binary")
    parser.add_argument("--model", help="recogniser (default: the built-in one)")
    parser.add_argument("--precision", help="of the recogniser (default: its own)")
    parser.add_argument("--bar", type=float, default=5.0, help="per cent of words wrong that are too many (default 5)")
    parser.add_argument("--keep", type=pathlib.Path, help="folder to keep the sound files in")
    parser.add_argument("--list", action="store_true", help="list every sentence, not the wrong ones only")
    args = parser.parse_args()
    sentences = words.read_sentences(args.sentences)[:args.count]
    if not sentences:
        parser.error(f"{args.sentences} holds no sentence")
    options = [f"--{name}={value}" for name in ("model", "precision") if (value := getattr(args, name))]
    wrong = total = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / f"{i:02d}.wav" for i in range(len(sentences))]
        for path, (written, _) in zip(files, sentences):
            run([str(args.syrinx), "speak", "--voice", args.voice, "--out", str(path), "--", written])
        heard_in = pathlib.Path(scratch) / "heard"
        run([str(args.syrinx), "transcribe", "--format", "json", "--language", "en", "--out-dir", str(heard_in), *options,
             *map(str, files)])
        for path, (written, spoken) in zip(files, sentences):
            heard = json.loads((heard_in / f"{path.stem}.json").read_text(encoding="utf-8"))["text"]
            want, got = words.normalise(spoken), words.normalise(heard)
            count = errors(want, got)
            wrong, total = wrong + count, total + len(want)
            if count or args.list:
                print(f"{count}  {written}\n   {heard}")
    percent = 100 * wrong / total
    print(f"{len(sentences)} sentences, {args.voice}: {wrong} of {total} words wrong, {percent:.2f} % (at most {args.bar:g} %)")
    return 0 if percent <= args.bar else 1


if __name__ == "__main__":
    sys.exit(main())
