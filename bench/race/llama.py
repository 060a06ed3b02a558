#!/usr/bin/env python3
"""Races a language model in a GGUF file against llama.cpp, in turns, in one run.

  python3 bench/race/llama.py MODEL.gguf --runs 5        # needs llama-cpp-python 0.3.36, built for this machine

Prints least, median and most tokens a second: a prompt of 512 tokens, 128 steps behind 16 tokens and behind 512, and those of four
conversations at once, which llama.cpp's Python package cannot do.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

from machine import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPT, SHORT, STEPS = 512, 16, 128


class Peer:
    """llama.cpp with the whole prompt in one batch."""

    def __init__(self, path, threads):
        import llama_cpp
        self.model = llama_cpp.Llama(str(path), n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False, n_batch=512, n_ubatch=512)
        self.ids = list(range(100, 100 + PROMPT))

    def prompt(self):
        self.model.reset()
        begun = time.perf_counter()
        self.model.eval(self.ids)
        return PROMPT / (time.perf_counter() - begun)

    def steps(self, behind):
        self.model.reset()
        self.model.eval(self.ids[:behind])
        begun = time.perf_counter()
        for n in range(STEPS):
            self.model.eval([100 + n])
        return STEPS / (time.perf_counter() - begun)

    def measure(self):
        return {"prompt": self.prompt(), "steps_behind_16": self.steps(SHORT), "steps_behind_512": self.steps(PROMPT)}


def ours(program, model, precision, threads):
    done = subprocess.run([program, model, precision, str(threads), "1"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return {name: value[1] for name, value in json.loads(done.stdout).items() if isinstance(value, list)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="file of GGUF")
    parser.add_argument("--runs", type=int, default=5, help="rounds in which the racers take turns (default 5)")
    parser.add_argument("--threads", default="1,2", help="with commas (default 1,2)")
    parser.add_argument("--precisions", default="int4,int8", help="of ours, with commas (default int4,int8)")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bench/llama_speed", help="the built program")
    args = parser.parse_args()
    print(machine())
    if not args.alone:
        import llama_cpp
        print("llama.cpp:", llama_cpp.llama_print_system_info().decode())
    for threads in (int(each) for each in args.threads.split(",")):
        racers = {precision: lambda precision=precision: ours(args.program, args.model, precision, threads) for precision in args.precisions.split(",")}
        if not args.alone:
            racers["llama.cpp"] = Peer(args.model, threads).measure
        rounds = {name: [] for name in racers}
        for _ in range(args.runs):
            for name, measure in racers.items():
                rounds[name].append(measure())
        for name, rows in rounds.items():
            told = []
            for figure in rows[0]:
                values = [row[figure] for row in rows]
                told.append(f"{figure} {statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})")
            print(f"{threads} threads, {name}, n {args.runs}: " + ", ".join(told), flush=True)


if __name__ == "__main__":
    main()
