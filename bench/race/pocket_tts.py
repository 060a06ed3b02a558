#!/usr/bin/env python3
"""Pocket TTS: Syrinx beside the maker's Python package and the maker's Rust port: the same random checkpoint, a text of
41 tokens, a voice of 125 frames, 100 frames of sound with the end of speech switched off.

Racers: `python` (the package's default, f32), `python-int8` (its --quantize on PyTorch's own kernels), both with -mt: as
many threads inside torch as processors, where the package sets one; `rust` (f32), `rust-q8`, `syrinx-PRECISION`.  Runs
alternate, a round of all racers at a time, so that all meet the same state of the machine.  The peers sit in processes
of their own that stay; Syrinx runs as `syrinx bench pocket-tts`, once a round.  All are held to as many processors as
they have threads.  Loading is never part of time / audio.  The Rust port has no limit of frames: its time is taken when
the last of them arrives.

  PYTHON: an interpreter with pocket-tts 4.0.1 and torch (docs/pocket_tts.md).  --checkpoints: a folder as
  tools/checkpoints/pocket_tts.py --size full makes it, tokenizer.json and tokenizer.model in it.

  bench/race/pocket_tts.py build --target DIR                    the Rust racer, from the registry, for this processor
  bench/race/pocket_tts.py run --python PYTHON --rust DIR --checkpoints FULL --config english --threads 2 --json race.json
  bench/race/pocket_tts.py report --json race.json [--plot race.png]

`run` adds its samples to the file, so a long race may be cut into several calls: each cell (configuration, threads) is
a median over all of them.  --measures chooses out of speech, first, stages, start and voice.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from machine import machine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FRAMES, TOKENS, VOICE_FRAMES, RECORDING_S = 100, 41, 125, 11.0   # as in pocket_peer.py
# Its widths are no multiples of q8's blocks.
NO_Q8 = ("english_2m",)


# ---- racers ----------------------------------------------------------------------------------------------------------


class Worker:
    """A peer's process: a command in, a line of JSON out."""

    def __init__(self, name: str, command: list, threads: int):
        self.name, self.given = name, (name, command, threads)
        command = ["taskset", "-c", f"0-{threads - 1}", *map(str, command)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.hello = self._answer()

    def _answer(self) -> dict:
        while line := self.process.stdout.readline():
            if line.startswith("{"):
                return json.loads(line)
        raise SystemExit(f"{self.name} ended early (status {self.process.wait()})")

    def ask(self, *words) -> dict:
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def round(self, text: str, add) -> None:
        answer = self.ask("run", FRAMES, text)
        add("run_ms", answer["ms"])

    def first(self, text: str, count: int, add) -> None:
        for _ in range(count):
            add("first_ms", self.ask("first", text)["ms"])

    def stages(self, text: str, add) -> None:
        for key, value in self.ask("stages", FRAMES, text).items():
            if key != "tokens":
                add(f"stage {key}", value if key == "text" else statistics.median(value))

    def voice(self, runs: int, clones: bool, add) -> None:
        for _ in range(runs):
            add("prompt_ms", self.ask("prompt")["ms"])
        if clones:
            for ms in self.ask("clone", RECORDING_S)["encode"]:
                add("encode_ms", ms)

    def start(self, text: str, add) -> None:
        """From the start of a process to its first samples; the voice's rows are run through the model on the way."""
        start = time.perf_counter()
        fresh = Worker(*self.given)
        fresh.ask("first", text)
        add("start_ms", 1e3 * (time.perf_counter() - start))
        fresh.close()

    def memory(self, add) -> None:
        for key, value in self.ask("rss").items():
            add(key, value)
        add("load_ms", self.hello["load_ms"])

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Syrinx:
    """One process a round, which measures everything that the round asks for."""

    def __init__(self, name: str, args: argparse.Namespace):
        self.name = name
        self.command = ["taskset", "-c", f"0-{args.threads - 1}", str(args.syrinx), "bench", "pocket-tts", "--model",
                        str(args.checkpoints / args.config), "--precision", name.removeprefix("syrinx-"), "--threads",
                        str(args.threads), "--tokens", str(TOKENS), "--voice-frames", str(VOICE_FRAMES), "--json"]
        self.hello = {"version": self.call(frames=2)["build"]}
        self.speak = [*self.command[:3], str(args.syrinx), "speak", "--model", str(args.checkpoints / args.config),
                      "--precision", name.removeprefix("syrinx-"), "--threads", str(args.threads), "--out", "-",
                      "--format", "pcm"]
        self.voice_file = args.checkpoints / args.config / "race_voice.safetensors"
        self.export = [*self.command[:3], str(args.syrinx), "voices", "export", "--model",
                       str(args.checkpoints / args.config), str(ROOT / "tests/data/pocket_tts/voice.wav"),
                       str(self.voice_file)]

    def call(self, runs: int = 1, frames: int = FRAMES, first_sounds: int = 1, recording: float = 0,
             brief: bool = True) -> dict:
        options = [*(["--brief"] if brief else []), "--runs", runs, "--frames", frames, "--first-sounds", first_sounds,
                   "--recording", recording]
        done = subprocess.run([*self.command, *map(str, options), "--streams", ""], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{self.name} ended with status {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout.splitlines()[-1])

    def round(self, text: str, add) -> None:
        figures = self.call()
        add("run_ms", figures["run_ms"]["median"])
        for key in ("load_ms", "peak_rss_bytes", "rss_bytes"):
            add(key, figures[key])

    def first(self, text: str, count: int, add) -> None:
        for ms in self.call(frames=2, first_sounds=count)["first_sound_ms"]["samples"]:
            add("first_ms", ms)

    def stages(self, text: str, add) -> None:
        figures = self.call(brief=False)
        for key, times in figures["stages_ms"].items():
            add(f"stage {key}", times["median"])
        for key in ("frame_ms", "empty_loop_ms"):
            add(key, figures[key]["median"])
        for key in ("floor_ms", "over_floor"):
            add(key, figures[key])

    def voice(self, runs: int, clones: bool, add) -> None:
        figures = self.call(runs=runs, frames=2, recording=RECORDING_S if clones else 0, brief=False)
        add("prompt_ms", figures["prompt_ms"]["median"])
        if clones:
            add("encode_ms", figures["encode_ms"]["median"])

    def start(self, text: str, add) -> None:
        """As above, with a stored voice; what a first process packs and keeps is there."""
        if not self.voice_file.is_file():
            subprocess.run(self.export, check=True, capture_output=True)
        command = [*self.speak, "--voice", str(self.voice_file), text]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not process.stdout.read(2):
            raise SystemExit(f"{self.name} made no sound: {process.stderr.read().decode().strip()}")
        add("start_ms", 1e3 * (time.perf_counter() - start))
        process.kill()
        process.communicate()

    def memory(self, add) -> None:
        pass   # each round's

    def close(self) -> None:
        pass


def make(name: str, args: argparse.Namespace, folder: pathlib.Path):
    source = (args.checkpoints / args.config).resolve()
    if name.startswith("syrinx-"):
        return Syrinx(name, args)
    if name.startswith("python"):
        torch_threads = args.threads if name.endswith("-mt") else 0
        command = [args.python, HERE / "pocket_peer.py", "speak", source, torch_threads, int("int8" in name)]
        return Worker(name, command, args.threads)
    quant = "q8" if name == "rust-q8" else "f32"
    command = [args.rust / "release" / "ptts_worker", folder / "model.safetensors", folder / "config.json",
               folder / "tokenizer.json", folder / "voice.safetensors", quant, args.threads]
    return Worker(name, command, args.threads)


# ---- the race --------------------------------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> None:
    result = json.loads(args.json.read_text()) if args.json.is_file() else {"machine": machine(), "cells": {}}
    cell = result["cells"].setdefault(f"{args.config}, {args.threads}", {})
    prepared = args.rust / "checkpoints" / args.config if args.rust else None
    if prepared and not (prepared / "voice.safetensors").is_file():
        subprocess.run([args.python, HERE / "pocket_peer.py", "prepare", args.checkpoints / args.config, prepared], check=True)
    racers = [make(name, args, prepared) for name in args.racers]
    text = args.text or next(r for r in racers if r.name.startswith("python")).ask("text")["text"]
    result["text"] = text

    def adder(racer):
        samples = cell.setdefault(racer.name, {"version": racer.hello["version"]})
        return lambda key, value: samples.setdefault(key, []).append(value)

    deadline = time.monotonic() + args.seconds
    dropped = lambda key, value: None  # noqa: E731
    keep = lambda: args.json.write_text(json.dumps(result, indent=1) + "\n")  # noqa: E731
    if "speech" in args.measures:
        for racer in racers:
            racer.first(text, 2, dropped)   # warm
        for _ in range(args.rounds):
            if time.monotonic() > deadline:
                break
            for racer in racers:
                racer.round(text, adder(racer))
                time.sleep(0.1)          # threads that spin after their work have parked
            keep()
            print(".", end="", flush=True, file=sys.stderr)
        for racer in racers:
            racer.memory(adder(racer))   # before anything is cloned
        keep()
    if "first" in args.measures:
        for racer in racers:
            racer.first(text, 2, dropped)
        for _ in range(args.rounds):
            for racer in racers:
                racer.first(text, -(-args.first_sounds // args.rounds), adder(racer))
                time.sleep(0.1)
        keep()
    if "stages" in args.measures:
        for racer in racers:
            racer.stages(text, adder(racer))
        keep()
    if "start" in args.measures:
        for racer in racers:
            racer.start(text, dropped)
        for _ in range(args.rounds):
            for racer in racers:
                racer.start(text, adder(racer))
        keep()
    if "voice" in args.measures:
        for racer in racers:
            clones = not (racer.name.startswith("rust") and (racer.name == "rust-q8" or args.config != "english"))
            racer.voice(args.rounds, clones, adder(racer))
        keep()
    for racer in racers:
        racer.close()
    print(file=sys.stderr)


# ---- what came of it -------------------------------------------------------------------------------------------------


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[max(0, -int(-share * len(values) // 1) - 1)]


def figure(samples: dict, key: str, scale: float = 1.0, digits: int = 1) -> str:
    values = [scale * value for value in samples.get(key, [])]
    if not values:
        return "-"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f}, n {len(values)})"


def best_peer(cell: dict, key: str) -> float | None:
    medians = [statistics.median(samples[key]) for name, samples in cell.items()
               if not name.startswith("syrinx") and samples.get(key)]
    return min(medians, default=None)


def report(args: argparse.Namespace) -> None:
    result = json.loads(args.json.read_text())
    print(f"{result['machine']}\ntext: {result['text']}")
    for title, cell in result["cells"].items():
        print(f"\n## {title} thread{'s' if not title.endswith(' 1') else ''}\n\n"
              "| racer | time / audio | over best peer | first sound p50, ms | p99 | over best peer | load, ms "
              "| peak, resident MB |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
        for name, samples in cell.items():
            ratios = []
            for key in ("run_ms", "first_ms"):
                best = best_peer(cell, key)
                mine = samples.get(key)
                ratios.append(f"{best / statistics.median(mine):.2f}x" if best and mine else "-")
            firsts = samples.get("first_ms", [])
            p50, p99 = ((f"{quantile(firsts, q):.1f}" for q in (0.5, 0.99)) if firsts else ("-", "-"))
            memory = ", ".join(f"{statistics.median(samples[key]) * 1e-6:.0f}" for key in ("peak_rss_bytes", "rss_bytes")
                               if samples.get(key))
            print(f"| {name} | {figure(samples, 'run_ms', 1e-3 / (FRAMES * 0.08), 4)} | {ratios[0]} "
                  f"| {p50} (n {len(firsts)}) | {p99} | {ratios[1]} | {figure(samples, 'load_ms', 1, 0)} | {memory or '-'} |")
        print("\n| racer | start to first sound, ms | voice: prompt | recording: codec | text | language model | head | codec "
              "| sum a frame |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for name, samples in cell.items():
            one = lambda key: f"{statistics.median(samples[key]):.2f}" if samples.get(key) else "-"  # noqa: B023,E731
            parts = [samples[f"stage {k}"] for k in ("flow_lm", "flow_lm_and_head", "head", "codec")
                     if samples.get(f"stage {k}")]
            total = f"{sum(statistics.median(values) for values in parts):.2f}" if parts else "-"
            lm = one("stage flow_lm") if samples.get("stage flow_lm") else one("stage flow_lm_and_head")
            print(f"| {name} | {one('start_ms')} | {one('prompt_ms')} | {one('encode_ms')} | {one('stage text')} | {lm} | {one('stage head')} "
                  f"| {one('stage codec')} | {total} |")
        print("\n" + "\n".join(f"{name}: {samples['version']}" for name, samples in cell.items()))
        for name, samples in cell.items():
            if samples.get("over_floor"):
                print(f"{name}: floor, codec at the f32 peak, {statistics.median(samples['floor_ms']):.2f} ms a frame, "
                      f"{statistics.median(samples['over_floor']):.2f} times that measured")
    if args.plot:
        plot(result, args.plot)


def plot(result: dict, path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(name for cell in result["cells"].values() for name in cell))
    cells = list(result["cells"])
    figure_, axes = pyplot.subplots(2, 1, figsize=(1.5 + 1.8 * len(cells), 8))
    width = 0.8 / len(names)
    for axis, key, scale, label in ((axes[0], "run_ms", 1e-3 / (FRAMES * 0.08), "time / audio"),
                                    (axes[1], "first_ms", 1, "first sound, ms")):
        for i, name in enumerate(names):
            at = [c + (i - (len(names) - 1) / 2) * width for c in range(len(cells))]
            values = [[scale * v for v in result["cells"][cell].get(name, {}).get(key, [])] for cell in cells]
            medians = [statistics.median(v) if v else 0 for v in values]
            spread = [[m - min(v) if v else 0 for m, v in zip(medians, values)],
                      [max(v) - m if v else 0 for m, v in zip(medians, values)]]
            axis.bar(at, medians, width, yerr=spread, capsize=2, label=name)
        axis.set_yscale("log")
        axis.set_xticks(range(len(cells)), [cell.replace(", ", "\n") + " thr." for cell in cells])
        axis.set_ylabel(f"{label} (lower is better)")
    axes[0].legend(fontsize=8)
    axes[0].set_title(f"Pocket TTS, random weights\n{result['machine']}", fontsize=9)
    figure_.tight_layout()
    figure_.savefig(path, dpi=120)
    print(f"\nplot: {path}")


def build(args: argparse.Namespace) -> None:
    env = os.environ | {"RUSTFLAGS": "-C target-cpu=native"}
    manifest = args.manifest or HERE / "ptts_worker" / "Cargo.toml"
    subprocess.run(["cargo", "build", "--release", "--manifest-path", manifest, "--target-dir", args.target], check=True,
                   env=env)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    build_ = commands.add_parser("build", help="build the Rust racer")
    build_.set_defaults(action=build)
    build_.add_argument("--target", type=pathlib.Path, required=True, help="folder for what cargo makes")
    build_.add_argument("--manifest", type=pathlib.Path, help="another Cargo.toml, say with a local copy of the crate")
    run_ = commands.add_parser("run", help="race one cell")
    run_.set_defaults(action=run)
    run_.add_argument("--python", help="interpreter with pocket-tts; without it neither Python nor a text")
    run_.add_argument("--rust", type=pathlib.Path, help="the folder given to build")
    run_.add_argument("--syrinx", type=pathlib.Path, default=ROOT / "build/release/syrinx", help="the built binary")
    run_.add_argument("--checkpoints", type=pathlib.Path, required=True, help="folder of full-size checkpoints")
    run_.add_argument("--config", default="english", help="one of its folders (default english)")
    run_.add_argument("--threads", type=int, default=2, help="threads and processors of each racer (default 2)")
    run_.add_argument("--racers", default="python,python-int8,rust,rust-q8,syrinx-f32", help="with commas")
    run_.add_argument("--measures", default="speech,first,stages,start,voice", help="with commas (default all)")
    run_.add_argument("--rounds", type=int, default=7, help="rounds, 7 or more in all calls together (default 7)")
    run_.add_argument("--seconds", type=float, default=1e9, help="begin no further round after so many")
    run_.add_argument("--first-sounds", type=int, default=100, help="first sounds of each racer (default 100)")
    run_.add_argument("--text", help=f"of {TOKENS} tokens, if no Python racer is there to choose one")
    run_.add_argument("--json", type=pathlib.Path, required=True, help="samples are added to this file")
    report_ = commands.add_parser("report", help="tables of all cells so far")
    report_.set_defaults(action=report)
    report_.add_argument("--json", type=pathlib.Path, required=True)
    report_.add_argument("--plot", type=pathlib.Path, help="write a PNG")
    args = parser.parse_args()
    if args.action is run:
        args.racers = [name for name in args.racers.split(",") if not (name == "rust-q8" and args.config in NO_Q8)]
        args.measures = args.measures.split(",")
        if any(name.startswith(("python", "rust")) for name in args.racers) and not args.python:
            parser.error("--python: the peers need it, the Rust port for its checkpoint")
        if any(name.startswith("rust") for name in args.racers) and not args.rust:
            parser.error("--rust: where `build` put the Rust racer")
        if not args.text and not any(name.startswith("python") for name in args.racers):
            parser.error("--text: without a Python racer the text must be given")
    return args


def main() -> int:
    args = parse()
    args.action(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
