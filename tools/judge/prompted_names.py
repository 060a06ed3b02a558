#!/usr/bin/env python3
"""How many of 40 invented names Whisper writes right when its prompt names them: Syrinx beside faster-whisper, with the same weights.

Each sentence of prompted_names.tsv is spoken by Kokoro (odd ones by one voice, even ones by another), and heard alone: without a prompt,
and with one that lists all 40 names. A name counts where the text has it letter by letter, whatever its case. Both sides keep their
defaults otherwise, greedily and by a beam of 5; faster-whisper hears all sound, as it does by default, Syrinx with voice activity and
without.

  PYTHON tools/judge/prompted_names.py --model whisper-base --json names.json      # PYTHON: one with faster-whisper
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SENTENCES = pathlib.Path(__file__).with_suffix(".tsv")
VOICES = ("af_heart", "bm_george")


def sentences() -> list[tuple[str, str]]:
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    return [(name, said) for name, said in (line.split("\t") for line in lines if not line.startswith("#"))]


def prompt() -> str:
    return ", ".join(name for name, _ in sentences()) + "."


def words(text: str) -> set[str]:
    letters = "".join(c if c.isalpha() or c in "'\u2019" else " " for c in text.casefold())
    return {word.split("'")[0].split("\u2019")[0] for word in letters.split()}


def run(command: list, name: str) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} ended with status {done.returncode}: {done.stderr.strip()}")


def speak(args: argparse.Namespace, folder: pathlib.Path) -> list[pathlib.Path]:
    paths = []
    for i, (_, said) in enumerate(sentences()):
        path = folder / f"name_{i:02}.wav"
        if not path.exists():
            voice = VOICES[i % len(VOICES)]
            run([args.syrinx, "speak", said, "--voice", voice, "--threads", args.threads, "--out", path], "syrinx speak")
        paths.append(path)
    return paths


def hear_syrinx(args: argparse.Namespace, paths: list[pathlib.Path], beam: int, told: str, *more: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        run([args.syrinx, "transcribe", "--model", args.model, "--language", "en", "--precision", args.precision, "--beam", beam,
             "--threads", args.threads, "--jobs", 1, "--out-dir", folder, *(["--prompt", told] if told else []), *more, *paths],
            "syrinx transcribe")
        return [(pathlib.Path(folder) / f"{path.stem}.txt").read_text(encoding="utf-8").strip() for path in paths]


def hear_peer(args: argparse.Namespace, paths: list[pathlib.Path], beam: int, told: str) -> list[str]:
    import faster_whisper

    compute = {"int8": "int8", "f32": "float32"}[args.precision]
    model = faster_whisper.WhisperModel(str(args.model), device="cpu", compute_type=compute, cpu_threads=args.threads)
    heard = []
    for path in paths:
        segments, _ = model.transcribe(str(path), language="en", beam_size=max(beam, 1), initial_prompt=told or None)
        heard.append("".join(segment.text for segment in segments).strip())
    return heard


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="folder of Whisper base for CTranslate2")
    parser.add_argument("--syrinx", type=pathlib.Path, default=ROOT / "build/release/syrinx", help="the built binary")
    parser.add_argument("--racers", nargs="+", choices=("syrinx", "syrinx-all-sound", "faster-whisper"),
                        default=("syrinx", "syrinx-all-sound", "faster-whisper"), help="by default all")
    parser.add_argument("--precision", choices=("int8", "f32"), default="int8", help="of both (default int8)")
    parser.add_argument("--threads", type=int, default=2, help="of both (default 2)")
    parser.add_argument("--keep", type=pathlib.Path, help="folder of the spoken sentences; those that are there are not spoken again")
    parser.add_argument("--list", action="store_true", help="list what was heard wrongly")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures and what was heard")
    args = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        place = args.keep or pathlib.Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        paths = speak(args, place)
        for racer in args.racers:
            for beam in (0, 5):
                for told in ("", prompt()):
                    if racer == "faster-whisper":
                        heard = hear_peer(args, paths, beam, told)
                    else:
                        heard = hear_syrinx(args, paths, beam, told, *(["--all-sound"] if racer.endswith("all-sound") else []))
                    wrong = [(said, text) for (name, said), text in zip(sentences(), heard) if name.casefold() not in words(text)]
                    title = f"{racer}, {f'beam {beam}' if beam else 'greedy'}, {'prompt' if told else 'no prompt'}"
                    print(f"{title}: {len(heard) - len(wrong)} of {len(heard)} names", flush=True)
                    for said, text in wrong if args.list and told else []:
                        print(f"  {said} | {text}")
                    figures.append(dict(racer=racer, beam=beam, prompt=bool(told), right=len(heard) - len(wrong), heard=heard))
        if args.json:
            args.json.write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
