#!/usr/bin/env python3
"""Kokoro-82M: Syrinx beside onnxruntime on the same int8 file, the same phonemes and the same voice, in one sitting.

Runs alternate in blocks, so that both meet the same state of the machine; every figure is a median over all runs with
its least and greatest. onnxruntime sits in a process of its own, a fresh one for each piece and number of threads, as
Syrinx does, so that peak memory can be compared. Loading is never part of time / audio.

  python3 bench/race/kokoro.py --model kokoro-v1.0.int8.onnx --voice-file af_heart.bin --plot race.png
  python3 bench/race/kokoro.py --model M --voice-file V --only onnxruntime
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from machine import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "reference"))

PIECES = {
    "2 s": "həlˈO ðˈɛɹ, hˌW ɑɹ ju?",
    "5 s": "plˈiz tˈɜɹn ˈɔf ðə kˈɪʧᵊn lˈIts ænd sˈɛt ɐn əlˈɑɹm fɔɹ hˈæf pˈæst sˈɪks təmˈɑɹO mˈɔɹnɪŋ.",
    "20 s": "ðə tɹˈAn lˈivz ðə stˈAʃən æt nˈun, ænd wi hæv tə ʧˈAnʤ twˈIs bəfˈɔɹ wi ɹˈiʧ ðə kˈOst. mˌI sˈɪstəɹ pˈækt "
            "bɹˈɛd, ʧˈiz ænd ɐ bˈɑTəl ʌv kˈOld tˈi, bəkˈʌz ðə dˈInɪŋ kˈɑɹ ɪz ˈɔlwˌAz fˈʊl. ˌɪf ðə wˈɛðəɹ hˈOldz, wi wɪl "
            "wˈɔk əlˈɔŋ ðə klˈɪfs ˌʌntˈɪl ði ˈivnɪŋ, ænd ðˈɛn lˈʊk fɔɹ ɐ smˈɔl hOtˈɛl nˌɪɹ ði ˈOld lˈIthˌWs. nˈObˌɑdi nˈOz "
            "ðə wˈA, bˌʌt ðæt hæz nˈɛvəɹ stˈɑpt ˌʌs bəfˈɔɹ."}
CLAUSES = "When the rain stopped, we walked down to the harbor, and the boats were already leaving."
CLAUSES_PHONEMES = "wˌɛn ðə ɹˈAn stˈɑpt, wi wˈɔkt dˌWn tə ðə hˈɑɹbəɹ, ænd ðə bˈOts wɜɹ ˌɔlɹˈɛdi lˈivɪŋ."
FIRST_CLAUSE_PHONEMES = "wˌɛn ðə ɹˈAn stˈɑpt,"


# ---- onnxruntime, in a child process ---------------------------------------------------------------------------------


def worker(model: str, voice: str, threads: int) -> None:
    """Answers one JSON line for each line of phonemes; an empty line asks for the peak memory and ends."""
    start = time.perf_counter()
    import resource

    import numpy as np
    import onnxruntime

    import kokoro_phonemes

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    say = lambda **fields: print(json.dumps(fields), flush=True)  # noqa: E731
    say(load_ms=1e3 * (time.perf_counter() - start), version=onnxruntime.__version__)
    for line in sys.stdin:
        phonemes = line.rstrip("\n")
        if not phonemes:
            break
        ids = kokoro_phonemes.ids(phonemes)
        style = kokoro_phonemes.voice_row(pathlib.Path(voice), 256, len(phonemes))
        feeds = {"tokens": np.array([[0, *ids, 0]], np.int64), "style": style[None], "speed": np.ones(1, np.float32)}
        start = time.perf_counter()
        audio = session.run(["audio"], feeds)[0]
        say(ms=1e3 * (time.perf_counter() - start), seconds=audio.size / 24000)
    say(peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


class OnnxRuntime:
    name = "onnxruntime"

    def __init__(self, args: argparse.Namespace, threads: int):
        command = [sys.executable, __file__, "--worker", str(args.model), str(args.voice_file), str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.load_ms = self._answer()["load_ms"]

    def _answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the onnxruntime process ended early (status {self.process.wait()})")
        return json.loads(line)

    def run(self, phonemes: str) -> tuple[float, float]:
        """Milliseconds and seconds of sound."""
        self.process.stdin.write(phonemes + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        return answer["ms"], answer["seconds"]

    def block(self, phonemes: str, runs: int) -> list[float]:
        return [ms / 1e3 / seconds for ms, seconds in (self.run(phonemes) for _ in range(runs))]

    def close(self) -> int:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        peak = self._answer()["peak_rss_bytes"]
        self.process.wait()
        return peak


# ---- Syrinx ----------------------------------------------------------------------------------------------------------


def call(command: list[str]) -> dict:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:3])} ended with status {done.returncode}: {done.stderr.strip()}")
    return json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{")))


class Syrinx:
    name = "syrinx"

    def __init__(self, args: argparse.Namespace, threads: int):
        self.command = [str(args.syrinx), "bench", "kokoro", "--model", str(args.model), "--voice-file",
                        str(args.voice_file), "--threads", str(threads), "--json"]
        if args.precision:
            self.command += ["--precision", args.precision]
        self.through_speak = args.through == "speak"
        self.speak = [str(args.syrinx), "speak", "--model", str(args.speak_model or args.model), "--voice",
                      str(args.voice_file), "--threads", str(threads), "--phonemes", "--json", *args.speak_option]
        if args.precision:
            self.speak += ["--precision", args.precision]
        self.peak = 0
        self.last: dict = {}

    def _speak(self, phonemes: str) -> float:
        """One process for each run: its first piece finds cold buffers, and long text is cut into pieces."""
        with tempfile.TemporaryDirectory() as folder:
            self.last = call([*self.speak, "--out", f"{folder}/out.wav", phonemes])
        self.peak = max(self.peak, self.last["peak_rss_bytes"])
        return self.last["rtf"]

    def block(self, phonemes: str, runs: int) -> list[float]:
        if self.through_speak:
            return [self._speak(phonemes) for _ in range(runs)]
        self.last = call([*self.command, "--phonemes", phonemes, "--runs", str(runs)])
        self.peak = max(self.peak, self.last["peak_rss_bytes"])
        return self.last["rtf_runs"]

    def close(self) -> int:
        return self.peak


# ---- the race --------------------------------------------------------------------------------------------------------


def spread(values: list[float]) -> dict:
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def cell(args: argparse.Namespace, phonemes: str, threads: int, progress) -> dict:
    racers = [kind(args, threads) for kind in args.racers]
    runs = [-(-args.runs // args.blocks)] * args.blocks
    times: dict[str, list[float]] = {r.name: [] for r in racers}
    for r in racers:
        r.block(phonemes, 1)     # warm
    for block in runs:
        for r in racers:
            time.sleep(0.1)      # threads that spin after their work have parked
            times[r.name] += r.block(phonemes, block)
            progress.update(block)
    result = {name: spread(values) for name, values in times.items()}
    for r in racers:
        result[r.name]["peak_rss_bytes"] = r.close()
        if r.name == "syrinx":
            result[r.name]["precision"] = r.last.get("precision")
    return result


def first_sound(args: argparse.Namespace) -> dict:
    """The sentence of three clauses, model loaded, two threads: milliseconds until samples can be played."""
    result: dict[str, dict] = {}
    if OnnxRuntime in args.racers:
        peer = OnnxRuntime(args, 2)
        for label, phonemes in (("onnxruntime", CLAUSES_PHONEMES), ("onnxruntime, cut by hand", FIRST_CLAUSE_PHONEMES)):
            peer.run(phonemes)
            result[label] = spread([peer.run(phonemes)[0] for _ in range(args.runs)])
        peer.close()
    if Syrinx in args.racers:
        with tempfile.TemporaryDirectory() as folder:
            command = [str(args.syrinx), "speak", CLAUSES, "--model", str(args.speak_model or args.model), "--threads", "2",
                       "--out", f"{folder}/out.wav", "--json", *args.speak_option]
            call(command)
            result["syrinx"] = spread([call(command)["first_audio_ms"] for _ in range(args.runs)])
    return result


def start_to_sound(args: argparse.Namespace) -> dict:
    """From the start of a process to its first sample, files in the page cache: the same sentence, two threads."""
    result: dict[str, dict] = {}
    if OnnxRuntime in args.racers:
        times = []
        for _ in range(args.runs):
            start = time.perf_counter()
            peer = OnnxRuntime(args, 2)
            peer.run(CLAUSES_PHONEMES)
            times.append(1e3 * (time.perf_counter() - start))
            peer.close()
        result["onnxruntime (Python)"] = spread(times)
    if Syrinx in args.racers:
        command = [str(args.syrinx), "speak", CLAUSES, "--model", str(args.speak_model or args.model), "--threads", "2",
                   "--out", "-", "--format", "pcm", *args.speak_option]
        times = []
        for _ in range(args.runs + 1):
            start = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            if not process.stdout.read(2):
                raise SystemExit(f"{' '.join(command[:2])} made no sound (status {process.wait()})")
            times.append(1e3 * (time.perf_counter() - start))
            process.stdout.read()
            process.wait()
        result["syrinx"] = spread(times[1:])
    return result


def report(result: dict) -> None:
    print(f"\n{result['machine']}\n\n| piece | threads | time / audio: " + " | ".join(result["racers"])
          + " | times faster | peak MiB |\n| --- | --- |" + " --- |" * (len(result["racers"]) + 2))
    for c in result["cells"]:
        figures = [c[name] for name in result["racers"]]
        columns = [f"{f['median']:.3f} ({f['min']:.3f} to {f['max']:.3f}, n {f['n']})" for f in figures]
        ratio = f"{figures[0]['median'] / figures[1]['median']:.2f}" if len(figures) == 2 else "-"
        memory = ", ".join(f"{f['peak_rss_bytes'] / 2**20:.0f}" for f in figures)
        print(f"| {c['piece']} | {c['threads']} | " + " | ".join(columns) + f" | {ratio} | {memory} |")
    for title in ("first sound, ms", "process start to first sound, ms"):
        print(f"\n{title}:")
        for name, f in result[title].items():
            print(f"  {name:26} {f['median']:7.0f} ({f['min']:.0f} to {f['max']:.0f}, n {f['n']})")


def plot(result: dict, path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    labels = [f"{c['piece']}\n{c['threads']} thread{'s' if c['threads'] > 1 else ''}" for c in result["cells"]]
    width = 0.8 / len(result["racers"])
    for i, name in enumerate(result["racers"]):
        figures = [c[name] for c in result["cells"]]
        medians = [f["median"] for f in figures]
        error = [[f["median"] - f["min"] for f in figures], [f["max"] - f["median"] for f in figures]]
        axes.bar([x + (i - (len(result["racers"]) - 1) / 2) * width for x in range(len(labels))], medians, width,
                 yerr=error, capsize=3, label=name)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_ylabel("time / audio (lower is better)")
    axes.set_title(f"Kokoro-82M, int8 file\n{result['machine']}", fontsize=9)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"\nplot: {path}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="kokoro-v1.0.int8.onnx")
    parser.add_argument("--voice-file", type=pathlib.Path, required=True, help="voice of 510 rows of 256 f32")
    parser.add_argument("--syrinx", type=pathlib.Path, default=ROOT / "build/release/syrinx", help="the built binary")
    parser.add_argument("--only", choices=("onnxruntime", "syrinx"), help="run one side alone")
    parser.add_argument("--threads", default="1,2", help="numbers of threads with commas (default 1,2)")
    parser.add_argument("--pieces", default=",".join(PIECES), help=f"out of {', '.join(PIECES)} (default all)")
    parser.add_argument("--runs", type=int, default=9, help="runs of each cell, 7 or more (default 9)")
    parser.add_argument("--blocks", type=int, default=3, help="blocks in which the runs alternate (default 3)")
    parser.add_argument("--precision", help="given to syrinx bench kokoro")
    parser.add_argument("--through", choices=("bench", "speak"), default="bench",
                        help="time Syrinx by `syrinx bench kokoro` (default) or by a process of `syrinx speak` for each run")
    parser.add_argument("--speak-model", help="model name or path for syrinx speak (default: --model)")
    parser.add_argument("--speak-option", action="append", default=[], metavar="OPTION", help="more for syrinx speak")
    parser.add_argument("--no-first-sound", action="store_true", help="leave out the two measures of first sound")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures")
    parser.add_argument("--plot", type=pathlib.Path, help="write a PNG")
    args = parser.parse_args()
    args.racers = [kind for kind in (OnnxRuntime, Syrinx) if args.only in (None, kind.name)]
    for path in (args.model, args.voice_file, *([args.syrinx] if Syrinx in args.racers else [])):
        if not path.is_file():
            parser.error(f"{path} is not a file")
    if args.runs < 7:
        parser.error("--runs: a median needs 7 runs or more")
    args.pieces = args.pieces.split(",")
    if unknown := [p for p in args.pieces if p not in PIECES]:
        parser.error(f"--pieces: no piece '{unknown[0]}'")
    args.threads = [int(n) for n in args.threads.split(",")]
    return args


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return 0
    args = parse()
    from tqdm import tqdm

    result: dict = {"machine": machine(), "racers": [r.name for r in args.racers], "cells": []}
    each = -(-args.runs // args.blocks) * args.blocks * len(args.racers)
    with tqdm(total=each * len(args.pieces) * len(args.threads), unit="run") as progress:
        for piece in args.pieces:
            for threads in args.threads:
                progress.set_description(f"{piece}, {threads} threads")
                result["cells"].append({"piece": piece, "threads": threads} | cell(args, PIECES[piece], threads, progress))
    result["first sound, ms"] = {} if args.no_first_sound else first_sound(args)
    result["process start to first sound, ms"] = {} if args.no_first_sound else start_to_sound(args)
    report(result)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    if args.plot:
        plot(result, args.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
