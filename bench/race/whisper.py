#!/usr/bin/env python3
"""Whisper: Syrinx beside CTranslate2 and whisper.cpp on the same weights and recordings: the spectrum, the encoder and
greedy decoding in English without times, window by window of 30 s.  Loading is never part of it.

Racers: `ct2-int8`, `ct2-float32` (CTranslate2 under faster-whisper's spectrum), `cpp-q8` (whisper.cpp's own program on a
file that tools/convert/whisper_ggml.py and whisper-quantize made; one beam, no fallback, no context, its total time less
loading), `syrinx-int8`, `syrinx-bf16`, `syrinx-f32`.  Runs alternate, a round of all racers at a time, so that all meet
the same state of the machine.  All are held to as many processors as they have threads.

  PYTHON: an interpreter with ctranslate2 and faster-whisper.  --model: a folder with model.bin and tokenizer.json.

  bench/race/whisper.py run --python PYTHON --model BASE --cpp whisper-cli --ggml ggml-base-q8_0.bin \\
      --threads 1 --json race.json --clips CLIP.wav ...
  bench/race/whisper.py report --json race.json

`run` adds its samples to the file, so a long race may be cut into several calls: each cell (recording, threads) is a
median over all of them.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

from machine import machine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STAGES = ("mel_ms", "encode_ms", "decode_ms")


class CTranslate2:
    def __init__(self, name: str, args: argparse.Namespace):
        command = [args.python, HERE / "whisper_peer.py", args.model, name.removeprefix("ct2-"), args.threads]
        self.process = subprocess.Popen(["taskset", "-c", f"0-{args.threads - 1}", *map(str, command)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = json.loads(self.process.stdout.readline())["version"]

    def hear(self, clip: pathlib.Path) -> dict:
        self.process.stdin.write(f"{clip}\n")
        self.process.stdin.flush()
        figures = json.loads(self.process.stdout.readline())
        return figures | {"tokens": len(figures["tokens"])}

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class WhisperCpp:
    def __init__(self, _name: str, args: argparse.Namespace):
        self.command = ["taskset", "-c", f"0-{args.threads - 1}", str(args.cpp), "-m", str(args.ggml), "-t",
                        str(args.threads), *"-l en -nt -bs 1 -bo 1 -nf -mc 0 -sns".split()]
        self.version = f"whisper.cpp, {args.ggml.name}"

    def hear(self, clip: pathlib.Path) -> dict:
        done = subprocess.run([*self.command, "-f", str(clip)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"whisper.cpp ended with status {done.returncode}: {done.stderr[-500:]}")
        times = {key: (float(ms), int(runs or 1)) for key, ms, runs in
                 re.findall(r"(\w+) time =\s+([\d.]+) ms(?: /\s+(\d+) runs)?", done.stderr)}
        decode = sum(times[key][0] for key in ("sample", "decode", "batchd", "prompt"))
        return {"ms": times["total"][0] - times["load"][0], "mel_ms": times["mel"][0], "encode_ms": times["encode"][0],
                "decode_ms": decode, "tokens": times["decode"][1]}

    def close(self) -> None:
        pass


class Syrinx:
    def __init__(self, name: str, args: argparse.Namespace):
        self.command = ["taskset", "-c", f"0-{args.threads - 1}", str(args.syrinx), "bench", "whisper", "--model",
                        str(args.model), "--precision", name.removeprefix("syrinx-"), "--threads", str(args.threads),
                        "--runs", "1", "--json"]
        self.version = "syrinx"

    def hear(self, clip: pathlib.Path) -> dict:
        done = subprocess.run([*self.command, "--recording", str(clip)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"syrinx ended with status {done.returncode}: {done.stderr.strip()}")
        figures = json.loads(done.stdout.splitlines()[-1])
        self.version = f"syrinx {figures['build']}, {figures['target']}"
        return {"ms": figures["run_ms"]["median"], "tokens": len(figures["tokens"]),
                **{key: figures[key] for key in STAGES}}

    def close(self) -> None:
        pass


def make(name: str, args: argparse.Namespace):
    return (CTranslate2 if name.startswith("ct2") else WhisperCpp if name.startswith("cpp") else Syrinx)(name, args)


def run(args: argparse.Namespace) -> None:
    result = json.loads(args.json.read_text()) if args.json.is_file() else {"machine": machine(), "cells": {}}
    racers = {name: make(name, args) for name in args.racers}
    for clip in args.clips:
        cell = result["cells"].setdefault(f"{clip.name}, {args.threads}", {})
        for round_ in range(args.rounds + 1):
            for name, racer in racers.items():
                if round_ == 0 and not name.startswith("ct2"):
                    continue   # only a process that stays has something to warm; syrinx runs once before it counts
                figures = racer.hear(clip)
                samples = cell.setdefault(name, {})
                samples["version"] = racer.version
                if round_ > 0:
                    for key, value in figures.items():
                        samples.setdefault(key, []).append(value)
                time.sleep(0.1)   # threads that spin after their work have parked
            args.json.write_text(json.dumps(result, indent=1) + "\n")
            print(".", end="", flush=True, file=sys.stderr)
    for racer in racers.values():
        racer.close()
    print(file=sys.stderr)


def figure(samples: dict, key: str) -> str:
    values = samples.get(key, [])
    if not values:
        return "-"
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f}, n {len(values)})"


def report(args: argparse.Namespace) -> None:
    result = json.loads(args.json.read_text())
    print(result["machine"])
    for title, cell in result["cells"].items():
        peers = [statistics.median(s["ms"]) for name, s in cell.items() if not name.startswith("syrinx") and s.get("ms")]
        print(f"\n## {title} thread{'s' if not title.endswith(' 1') else ''}\n\n"
              "| racer | ms | over the best peer | spectrum | encoder | decoder | tokens |\n"
              "| --- | --- | --- | --- | --- | --- | --- |")
        for name, samples in cell.items():
            if not samples.get("ms"):
                continue
            ratio = f"{min(peers) / statistics.median(samples['ms']):.2f}x" if peers else "-"
            parts = " | ".join(f"{statistics.median(samples[key]):.0f}" for key in (*STAGES, "tokens"))
            print(f"| {name} | {figure(samples, 'ms')} | {ratio} | {parts} |")
        print("\n" + "\n".join(f"{name}: {samples['version']}" for name, samples in cell.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("--clips", nargs="*", type=pathlib.Path, default=[])
    parser.add_argument("--json", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--cpp", type=pathlib.Path, default=pathlib.Path("whisper-cli"))
    parser.add_argument("--ggml", type=pathlib.Path)
    parser.add_argument("--syrinx", type=pathlib.Path, default=ROOT / "build/release/syrinx")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--racers", nargs="+", default=["ct2-int8", "ct2-float32", "cpp-q8", "syrinx-int8", "syrinx-f32"])
    args = parser.parse_args()
    (run if args.what == "run" else report)(args)


if __name__ == "__main__":
    main()
