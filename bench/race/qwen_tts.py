#!/usr/bin/env python3
"""Races Qwen3-TTS 0.6B against gabriele-mastrapasqua/qwen3-tts, a port in C, on one checkpoint of random numbers, in turns, in one run; and against
qwentts.cpp and llama.cpp's llama-tts, where their built programs and files of the same checkpoint are given.

  python3 bench/race/qwen_tts.py                       # the peer from its mirror, built with `make blas`
  python3 bench/race/qwen_tts.py --peer FOLDER --precisions int8,int4 --threads 1,2 --runs 9
  python3 bench/race/qwen_tts.py --qwentts qwentts.cpp/build/qwen-tts --qwentts-files TALKER.gguf,CODEC.gguf \
      --llama llama.cpp/build/bin/llama-tts --llama-files TALKER.gguf,MMPROJ.gguf --known-as "qwentts.cpp COMMIT; llama.cpp BUILD"
  python3 bench/race/qwen_tts.py ... --racers qwentts.cpp --runs 1 --cold 0 --results FILE     # one racer's run more, and the table of all so far

The peer is a checkout (--peer FOLDER: built there unless qwen_tts is in it), or what --mirror, a git directory, has at --commit.  It needs
a C compiler and OpenBLAS; --make gives its Makefile more, say "EXTRA_CFLAGS=-I... LDLIBS=...".  --model is a folder of CustomVoice that
never ends its speech; without it `syrinx bench qwen3-tts` makes one in its cache, as it does by itself.

All speak so many frames of one text, by one speaker, each run in a process of its own, a run of each racer at a time.  The text is one
piece, with so many words that the peer, which raises the logit of the end behind six frames for each token, does not end it before.
All are held to as many processors as they have threads; the C port's codec runs beside its frames, as it does by default.

Time is from the prompt to the last sample, divided by the sound: prompt, frames and codec.  The peer's is the sum of what it prints, in
whole milliseconds each: prefill, talker, code predictor, embedding, head and sampling, and what its codec still decodes behind the last
frame.  Its "generated in" and "TTFA" are not taken, as they begin before it reads its vocabulary.  Its first sound is that of runs of
one frame (--stream --stream-chunk 1): prefill, head and sampling, code predictor and codec, or its TTFA if that is less.

Not equal are (qwen_peers.py has more of the others):
- a peer's run is the first of its process, ours follows one of a frame of the same text, whose pages and buffers are warm;
- tokens and embeddings of the prompt are made in our time, before the peer's;
- behind the last frame the C port's talker makes a step that nobody needs; ours does not.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

from machine import machine
from measured import figure, run_measured
from qwen_peers import Llama, Qwentts

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Words of the bench's vocabulary; 27 tokens of it, fewer than the first piece of a text may have.
TEXT = ("In a quiet village nestled between rolling hills and dense forests, there lived an old clockmaker who spent his days repairing "
        "timepieces from centuries past.")
WORDS = len(TEXT.split())
MOST_FRAMES = 6 * WORDS  # a word is a token at least
FRAME_S = 0.08
LEAST_FRAMES, LEAST_RUNS = 100, 5
FLAGS = ("avx512_bf16", "avx512bf16"), ("avx512_vnni", "avx512vnni"), ("avx512vl", "avx512")


def run(command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)
    if done.returncode:
        sys.exit(f"'{' '.join(str(word) for word in command)[:200]}' failed: {done.stdout[-1500:]}")
    return done.stdout


def best_simd():
    """The widest of its Makefile's builds that this processor runs."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return next((build for flag, build in FLAGS if flag in flags), "auto")


def unpack(mirror, commit, folder):
    """A mirror may lack its large files: code alone is taken."""
    git = ["git", f"--git-dir={mirror}"]
    names = run([*git, "ls-tree", "--name-only", commit]).split("\n")
    wanted = [name for name in names if re.search(r"\.(c|h)$", name) or name in ("Makefile", "third_party", "vendor")]
    if "Makefile" not in wanted:
        sys.exit(f"{mirror} has no Makefile at {commit}")
    archive = folder / "peer.tar"
    run([*git, "archive", "-o", archive, commit, "--", *wanted])
    run(["tar", "xf", archive, "-C", folder])
    archive.unlink()
    return run([*git, "rev-parse", commit]).strip()


def get_peer(args, folder):
    """Its program, and what it is."""
    if args.peer:
        folder = args.peer
        commit = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    else:
        commit = unpack(args.mirror, args.commit, folder)
    program = folder / "qwen_tts"
    how = "as it was found"
    if not program.is_file():
        how = f"make blas SIMD={args.simd} {args.make}".strip()
        run(["make", "-C", folder, "-j2", "blas", f"SIMD={args.simd}", *shlex.split(args.make)])
    return program.resolve(), f"qwen3-tts (C) {commit[:12] or 'of an unknown commit'}, {how}"


def cores(threads):
    """As many processors as threads: the peer's codec has a thread of its own."""
    return ["taskset", "-c", f"0-{threads - 1}"]


# Milliseconds of a run that the peer prints.
PEER_PARTS = {"prompt": r"Prefill: (-?\d+) ms", "talker": r"Talker step: (-?\d+) ms", "predictor": r"Code Predictor: (-?\d+) ms",
              "embedding": r"Embed: (-?\d+) ms", "head": r"Codec head\+sampling: (-?\d+) ms", "codec": r"Speech decoder: (-?\d+) ms total",
              "drain": r"\((-?\d+) ms drain"}


def peer_parts(said):
    return {name: figure(pattern, said) for name, pattern in PEER_PARTS.items()}


class Peer:
    def __init__(self, program, args, precision, threads):
        self.name = f"C {precision}"
        self.command = [*cores(threads), program, "-d", args.model, "-t", TEXT, "-s", "ryan", "-l", "english", "-j", threads]
        self.command += [] if precision == "bf16" else [f"--{precision}"]
        self.frames = args.frames

    def speak(self, seed, frames, *more):
        with tempfile.TemporaryDirectory() as folder:
            return run_measured([*self.command, "-m", frames, "--seed", seed, "-o", f"{folder}/out.wav", *more])

    def measure(self, seed):
        said, peak_mb = self.speak(seed, self.frames)
        frames = figure(r"Generated (\d+) frames", said)
        if frames < self.frames:
            return {"frames": frames}
        parts = peer_parts(said)
        making = sum(parts[name] for name in ("talker", "predictor", "embedding", "head"))
        streamed, _ = self.speak(seed, 1, "--stream", "--stream-chunk", "1")
        first = peer_parts(streamed)
        first_ms = sum(first[name] for name in ("prompt", "head", "predictor", "codec"))
        return {"frames": frames, "time / sound": (parts["prompt"] + making + parts["drain"]) / 1e3 / (frames * FRAME_S),
                "frame, ms": making / frames, "talker, ms": parts["talker"] / frames, "codec, ms": parts["codec"] / frames,
                "prompt, ms": parts["prompt"], "first sound, ms": min(first_ms, figure(r"TTFA: (\d+) ms", streamed)), "peak, MB": peak_mb}


class Syrinx:
    def __init__(self, args, precision, threads):
        self.name = f"syrinx {precision}"
        self.command = [*cores(threads), args.syrinx, "bench", "qwen3-tts", "--model", args.model, "--voice", "ryan", "--precision", precision, "--threads", threads,
                        "--brief", "--text", TEXT, "--runs", "1", "--word-seconds", f"{args.frames * FRAME_S / WORDS:.6f}", "--json"]
        self.build = ""

    def measure(self, _seed):
        said, peak_mb = run_measured(self.command)
        printed = json.loads(said.strip().split("\n")[-1])
        self.build = printed["build"]
        text = printed["texts"][0]
        if text["pieces"] != 1:
            sys.exit(f"{self.name} speaks the text in {text['pieces']} pieces: no race; its vocabulary cuts words into too many tokens")
        return {"frames": text["frames"], "time / sound": printed["rtf"], "frame, ms": text["generate_ms"]["median"] / text["frames"],
                "codec, ms": text["decode_ms"]["median"] / text["frames"], "prompt, ms": text["prefill_ms"]["median"],
                "first sound, ms": printed["first_audio_ms"], "peak, MB": peak_mb}


def racers_of(args, program, threads):
    racers = [Peer(program, args, precision, threads) for precision in args.precisions.split(",")] if program else []
    racers += [Qwentts(args, files, threads, cores(threads)) for files in args.qwentts_files]
    racers += [Llama(args, files, threads, cores(threads)) for files in args.llama_files]
    racers += [Syrinx(args, precision, threads) for precision in args.ours.split(",")]
    racers = [racer for racer in racers if any(racer.name.startswith(name) for name in args.racers.split(","))]
    return racers or sys.exit(f"--racers {args.racers}: none of them is there; give its program and files")


def race(args, racers, found):
    """The first runs find cold files, and keep packed weights: they do not count."""
    for seed in range(args.cold + args.runs):
        for racer in racers:
            measured = racer.measure(len(found.get(racer.name, {}).get("frames", [])) + seed + 1)
            if measured["frames"] != args.frames:
                sys.exit(f"{racer.name} made {measured['frames']:.0f} frames, not {args.frames}: no race; give a checkpoint that never ends its speech")
            if seed >= args.cold:
                for name, value in measured.items():
                    found.setdefault(racer.name, {}).setdefault(name, []).append(value)


def cell(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})" if values else "-"


def report(found, threads, args):
    print(f"\n{threads} thread{'s' * (threads > 1)}, {args.frames} frames: median (least to most)")
    names = list(dict.fromkeys(name for figures in found.values() for name in figures if name != "frames"))
    print("| racer | n | " + " | ".join(names) + " |\n| --- | --- |" + " --- |" * len(names))
    for racer, figures in found.items():
        cells = [cell(figures.get(name), 2 if name == "time / sound" else 1) for name in names]
        print(f"| {racer} | {len(figures['frames'])} | " + " | ".join(cells) + " |")
    medians = {racer: statistics.median(figures["time / sound"]) for racer, figures in found.items()}
    peers = [racer for racer in medians if not racer.startswith("syrinx")]
    if not peers:
        return
    best = min(peers, key=medians.get)
    for racer in medians:
        if racer.startswith("syrinx"):
            print(f"{racer}: {medians[best] / medians[racer]:.2f} times as fast as {best}, the fastest peer here")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=pathlib.Path, help="a checkout of the peer")
    parser.add_argument("--mirror", type=pathlib.Path, help="git directory of the peer, when there is no --peer")
    parser.add_argument("--commit", default="HEAD", help="of the mirror (default HEAD)")
    parser.add_argument("--simd", default=best_simd(), help="build of the peer's Makefile (default: the widest that runs here)")
    parser.add_argument("--make", default="", help="more for the peer's make")
    parser.add_argument("--qwentts", type=pathlib.Path, help="the built program qwen-tts of qwentts.cpp")
    parser.add_argument("--qwentts-files", action="append", default=[], help="its files of talker and codec, TALKER.gguf,CODEC.gguf; may be given again")
    parser.add_argument("--llama", type=pathlib.Path, help="the built program llama-tts of llama.cpp")
    parser.add_argument("--llama-files", action="append", default=[], help="its files, TALKER.gguf,MMPROJ.gguf; may be given again")
    parser.add_argument("--known-as", default="", help="commits of those two, for the report")
    parser.add_argument("--racers", default="C,qwentts.cpp,llama-tts,syrinx", help="beginnings of the names of those that run, with commas (default all)")
    parser.add_argument("--results", type=pathlib.Path, help="JSON that keeps the figures: runs are added to those it has")
    parser.add_argument("--cold", type=int, default=1, help="first runs that do not count (default 1)")
    parser.add_argument("--syrinx", type=pathlib.Path, default=ROOT / "build/release/syrinx", help="the built binary")
    parser.add_argument("--model", type=pathlib.Path, help="CustomVoice of random numbers")
    parser.add_argument("--precisions", default="int8", help="of the peer, bf16, int8, int4, with commas (default int8)")
    parser.add_argument("--ours", default="int8", help="of Syrinx, f32, bf16, int8, int4, with commas (default int8)")
    parser.add_argument("--threads", default="2", help="with commas (default 2)")
    parser.add_argument("--frames", type=int, default=125, help=f"of each run, {LEAST_FRAMES} to {MOST_FRAMES} (default 125: ten seconds)")
    parser.add_argument("--runs", type=int, default=5, help=f"that count, {LEAST_RUNS} or more (default 5)")
    args = parser.parse_args()
    args.text = TEXT
    if args.frames < LEAST_FRAMES or (args.runs < LEAST_RUNS and not args.results):
        parser.error(f"a race has {LEAST_FRAMES} frames and {LEAST_RUNS} runs at least")
    if args.frames > MOST_FRAMES:
        parser.error(f"--frames {args.frames}: the peer may end the text's {WORDS} words behind {MOST_FRAMES} frames; give no more")
    if args.qwentts_files and not args.qwentts or args.llama_files and not args.llama:
        parser.error("files without a program: give --qwentts or --llama")
    if "C" in args.racers.split(",") and not args.peer and not args.mirror:
        found = sorted((ROOT.parent / ".mirror").glob("gabriele-mastrapasqua+qwen3-tts/*/HEAD"))
        args.mirror = found[0].parent if found else parser.error("give the peer's checkout with --peer, or its git directory with --mirror")
    return args


def main():
    args = parse()
    print(machine())
    if args.model is None:
        command = [args.syrinx, "bench", "qwen3-tts", "--brief", "--texts", "short", "--runs", "1", "--word-seconds", "0.01", "--json"]
        args.model = json.loads(run(command).strip().split("\n")[-1])["checkpoint"]
    found = json.loads(args.results.read_text()) if args.results and args.results.exists() else {}
    builds = set()
    with tempfile.TemporaryDirectory() as folder:
        program, peer = get_peer(args, pathlib.Path(folder)) if "C" in args.racers.split(",") else (None, "")
        print("\n".join(line for line in (peer, args.known_as, f"load average {os.getloadavg()[0]:.1f}") if line), flush=True)
        for threads in (int(each) for each in args.threads.split(",")):
            of_threads = found.setdefault(str(threads), {})
            racers = racers_of(args, program, threads)
            race(args, racers, of_threads)
            report(of_threads, threads, args)
            builds |= {racer.build for racer in racers if isinstance(racer, Syrinx)}
    print(f"{''.join(f'syrinx {build}; ' for build in sorted(builds))}load average {os.getloadavg()[0]:.1f}")
    if args.results:
        args.results.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
