#!/usr/bin/env python3
"""Pocket TTS at full size: every stage of Syrinx in f32 beside the maker's package, voice files both ways, and where
the narrow precisions end a chunk.

For each configuration in the folder given: `syrinx voices export` makes a voice of a recording; the package
(tools/reference/pocket_tts.py) writes what it computes from the same recording, and speaks after its own voice file and
after ours; pocket_parity runs all of it through Syrinx and compares.  10 s of a seeded buzz are the recording, unless
one is given.  The references take 100 to 600 MB a configuration in --work, and are made again where they are missing
or our voice file is another one than then.

  PYTHON: an interpreter with pocket-tts 4.0.1 and torch (docs/pocket_tts.md).  --checkpoints: a folder as
  tools/checkpoints/pocket_tts.py makes it.  --build: a build folder with syrinx and pocket_parity.

  bench/parity/pocket_tts.py stages --python PYTHON --checkpoints FULL --work WORK --build build/release
  bench/parity/pocket_tts.py ends --checkpoints FULL --config english --work WORK --build build/release

Exit status 1 where anything differs by more than 1e-4 of the largest value of its stage, or cannot be compared.
"""

from __future__ import annotations

import argparse
import array
import math
import os
import pathlib
import random
import subprocess
import sys
import wave

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATE, SECONDS, STEPS = 16000, 10, 24   # more frames than the window of the codec's transformer has


def write_recording(path: pathlib.Path) -> None:
    """A buzz that glides up and down, with breath and a quiet end: voiced, finite, with energy at all frequencies."""
    rng, phase, samples = random.Random(1), 0.0, array.array("h")
    for i in range(RATE * SECONDS):
        t = i / RATE
        phase += 2 * math.pi * (150 + 60 * math.sin(1.3 * t)) / RATE
        loud = 0.15 * math.sqrt(abs(math.sin(2.5 * t))) * (1 if t < SECONDS - 0.1 else 0.01)
        buzz = sum(math.sin(k * phase) / k for k in range(1, 9)) + 0.05 * rng.gauss(0, 1)
        samples.append(int(32767 * loud * buzz))
    if sys.byteorder == "big":
        samples.byteswap()
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(samples.tobytes())


def run(*command, fails: bool = False) -> int:
    code = subprocess.run([str(word) for word in command], check=False).returncode
    if code and not fails:
        raise SystemExit(f"{pathlib.Path(str(command[0])).name} ended with status {code}")
    return code


def recording_of(args: argparse.Namespace) -> pathlib.Path:
    if args.recording:
        return args.recording
    path = args.work / "recording.wav"
    if not path.exists():
        write_recording(path)
    return path


def stages(args: argparse.Namespace) -> int:
    recording, bad = recording_of(args), 0
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in args.config:
        model, out = args.checkpoints / name, args.work / name
        out.mkdir(exist_ok=True)
        # Our voice file is made by the program that is tested; the package speaks after it again where it has changed.
        ours, now = out / "ours.safetensors", out / "now.safetensors"
        run(args.build / "syrinx", "voices", "export", "--model", model, "--precision", "f32", recording, now)
        changed = not ours.exists() or ours.read_bytes() != now.read_bytes()
        now.replace(ours)
        if changed or not (out / "reference.json").exists():
            (out / "reference.json").unlink(missing_ok=True)  # what ends early leaves none
            run(args.python, ROOT / "tools/reference/pocket_tts.py", "model", model, "--voice", recording, "--out", out,
                "--whole", "--steps", STEPS, "--voice-file", ours.name)
        print(f"\n{name}", flush=True)
        bad |= run(args.build / "bench/pocket_parity", "stages", model, out, recording, fails=True)
    return 1 if bad else 0


def ends(args: argparse.Namespace) -> int:
    recording = recording_of(args)
    for name in args.config:
        print(f"\n{name}", flush=True)
        run(args.build / "bench/pocket_parity", "ends", args.checkpoints / name, recording)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(dest="job", required=True, metavar="stages|ends")
    for name, action in (("stages", stages), ("ends", ends)):
        job = jobs.add_parser(name)
        job.set_defaults(action=action)
        if name == "stages":
            job.add_argument("--python", required=True, help="interpreter that has the maker's package")
        job.add_argument("--checkpoints", type=pathlib.Path, required=True, help="folder of checkpoints")
        job.add_argument("--config", action="append", metavar="NAME", help="which of them; may repeat (default all)")
        job.add_argument("--work", type=pathlib.Path, required=True, help="folder for recording and references")
        job.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release",
                         help="folder of the built programs (default build/release)")
        job.add_argument("--recording", type=pathlib.Path, help="recording of a voice, WAV")
    args = parser.parse_args()
    args.config = args.config or sorted(path.parent.name for path in args.checkpoints.glob("*/config.yaml"))
    folders = [args.checkpoints / name for name in args.config]
    for path in filter(None, (args.work, args.build, args.recording, *folders)):
        if not path.exists():
            parser.error(f"{path} does not exist")
    if not args.config:
        parser.error(f"--checkpoints {args.checkpoints} has no folder with config.yaml")
    return args.action(args)


if __name__ == "__main__":
    sys.exit(main())
