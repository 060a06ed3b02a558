#!/usr/bin/env python3
"""Pocket TTS as whole programs: `syrinx speak` beside the maker's `pocket-tts generate`, from the start of the process to
the finished WAV file, on one checkpoint, one voice file and one text at a time.

hyperfine runs the racers of a text one after the other, warm-up first.  The end of speech is switched off in both, so
that both speak until the limit that their one rule sets for the text; what each wrote is compared by its length (the
maker's package adds 200 ms of silence), and a race of different lengths is refused.

  CHECKPOINT: config.yaml of a full-size checkpoint (tools/checkpoints/pocket_tts.py --size full).
  VOICE: a .safetensors voice of it (syrinx voices export).
  MAKER: the package's command, pocket-tts 4.0.1 (docs/pocket_tts.md).

  bench/race/whole_program.py --syrinx build/release/syrinx --maker venv/bin/pocket-tts --checkpoint C --voice V
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import wave

from machine import machine

SENTENCE = "The old harbour wakes before the sun does, and when the first boats have left, the nets are mended and somebody tells the old story. "
TEXTS = {2: "Good morning.", 10: "Please leave the parcel with our neighbour on the left.",
         100: SENTENCE * 4}
MAKER_SILENCE_S = 0.2
FRAME_S = 0.08


def seconds(path: pathlib.Path) -> float:
    with wave.open(str(path)) as sound:
        return sound.getnframes() / sound.getframerate()


def racers(a: argparse.Namespace, text: str, folder: pathlib.Path) -> dict[str, tuple[list[str], pathlib.Path]]:
    commands = {}
    for precision in a.precisions:
        out = folder / f"syrinx-{precision}.wav"
        commands[f"syrinx {precision}"] = ([a.syrinx, "speak", "--model", a.checkpoint, "--voice", a.voice, "--precision", precision,
                                            "--eos-threshold", "1e6", "--out", str(out), text], out)
    for name, more in (("pocket-tts", []), ("pocket-tts --quantize", ["--quantize"])):
        out = folder / f"{name.replace(' ', '')}.wav"
        commands[name] = ([a.maker, "generate", "-q", "--config", a.checkpoint, "--voice", a.voice, "--eos-threshold", "1e9",
                           "--text", text, "--output-path", str(out), *more], out)
    return commands


def race(a: argparse.Namespace, text: str) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        commands = racers(a, text, pathlib.Path(folder))
        report = pathlib.Path(folder) / "hyperfine.json"
        command = ["hyperfine", "--warmup", "1", "--runs", str(a.runs), "--export-json", str(report), "--shell", "none", "--style", "none"]
        for name, (words, _) in commands.items():
            command += ["--command-name", name, shlex.join(words)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             cwd=pathlib.Path(a.checkpoint).parent,  # the package takes paths in a config from here
                             env=os.environ | {"HF_HUB_OFFLINE": "1"})
        if ran.returncode != 0:
            raise SystemExit(f"hyperfine failed: {ran.stdout[-2000:]}")
        results = json.loads(report.read_text())["results"]
        for result, (_, out) in zip(results, commands.values()):
            silence = 0 if result["command"].startswith("syrinx") else MAKER_SILENCE_S
            result["audio_s"] = seconds(out) - silence
    lengths = [result["audio_s"] for result in results]
    if max(lengths) - min(lengths) > FRAME_S:
        raise SystemExit(f"the racers spoke for different times, {', '.join(f'{length:.2f} s' for length in lengths)}: no race")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--syrinx", required=True)
    parser.add_argument("--maker", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--voice", required=True)
    parser.add_argument("--precisions", default=["int8"], type=lambda names: names.split(","), help="of Syrinx (default int8, as speak)")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--words", type=int, choices=sorted(TEXTS), action="append", help="only this text (default all three)")
    parser.add_argument("--json", help="write all figures to this file")
    a = parser.parse_args()
    for name in ("syrinx", "maker", "checkpoint", "voice"):
        setattr(a, name, str(pathlib.Path(getattr(a, name)).absolute()))
    version = subprocess.run([a.syrinx, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0]
    print(f"{machine()}\n{version}; n {a.runs}; seconds from the start of the process to its end")
    print(f"{'words':>5}  {'audio':>6}  {'racer':24}{'median':>8}{'min':>8}{'max':>8}  times Syrinx's first")
    figures = {}
    for words in a.words or TEXTS:
        results = race(a, TEXTS[words].strip())
        figures[words] = results
        for result in results:
            ratio = result["median"] / results[0]["median"]
            print(f"{words:5}  {result['audio_s']:5.2f}s  {result['command']:24}{result['median']:8.3f}{result['min']:8.3f}{result['max']:8.3f}  {ratio:5.1f}",
                  flush=True)
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
