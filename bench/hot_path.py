#!/usr/bin/env python3
"""The grid of the hot path's six principles in a cache-aware transducer (spec transducer-asr.md, section 5.6): how long
the result of a chunk takes from its last sample on, with each principle and without it, after 0, 1 and 60 s of idleness,
alone and beside a process that goes through memory on every core.

  bench/hot_path.py --model FILE.nemo --out DIR [--quick] [--under COMMAND]

Runs build/release/bench/transducer_latency in slices of at most a minute and a half.  What a slice measured stays in
DIR/raw and is not run again, so that the grid goes on where it was left.  Behind each slice, and with --report alone,
writes DIR/hot_path.md and, with matplotlib, DIR/hot_path.png.  Slices run one at a time, but for those that idle for
60 s: these begin APART_S after one another, so that one sleeps while another loads or works and no two work at once;
those beside a neighbour share one.

Principles 1, 2, 4, 5 and 6: the forms with and without them take turns in the same bursts.  Principle 3 has two rows:
the heartbeat, in bursts of their own with and without it, and the warm-up, for which each figure is the first chunk of a
program that has loaded the model (the packed weights stand in DIR/cache).  Bursts have their chunks as far apart as they
are long, but for those after 0 s, which are back to back.  A percentile that so few chunks do not support is a dash.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import pathlib
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/race"))
from machine import machine  # noqa: E402

IDLE_S = (0, 1, 60)
APART_S = 15  # 60 s later, when the bursts begin (of 13 s at most), nothing is being loaded that loads in 2 s
SUPPORT = {"p50": 1, "p99": 100, "p99.9": 1000}  # chunks that a percentile needs at least
SHARE = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


@dataclasses.dataclass(frozen=True)
class Side:
    """One side of a comparison: the runs that it is measured in, and which of their chunks."""
    run: str
    form: str


# Principle, what it is, with it, without it.
ROWS = (
    ("1", "faults in one word, instead of looked for after every frame", Side("forms", "program"), Side("forms", "each_frame")),
    ("2", "decisions compiled for the kind of head, instead of asking for it", Side("forms", "program"), Side("forms", "ask_kind")),
    ("3", "warm-up: first chunk since loading", Side("warm", "chunk"), Side("cold", "chunk")),
    ("3", "heartbeat", Side("beat", "chunk"), Side("no_beat", "chunk")),
    ("4", "state in one block, instead of scattered (a label a frame)", Side("forms", "one_block"), Side("forms", "scattered")),
    ("5", "targets resolved once, instead of at every call", Side("forms", "program"), Side("forms", "look_up")),
    ("6", "scratch made once, instead of for each chunk", Side("forms", "program"), Side("forms", "new_scratch")),
)

# Slices and the arguments of each, by the kind of run and the seconds of idleness: a whole grid, and a --quick one.
PLAN = {
    "forms": {0: (5, 1, 1600), 1: (11, 6, 160), 60: (50, 1, 160)},
    "beat": {0: (2, 1, 1000), 1: (3, 8, 64), 60: (9, 1, 160)},
    "warm": {0: (24, 1, 1), 1: (12, 1, 1), 60: (3, 1, 1)},
}
QUICK = {
    "forms": {0: (1, 1, 400), 1: (1, 4, 16), 60: (1, 1, 32)},
    "beat": {0: (1, 1, 200), 1: (1, 4, 8), 60: (1, 1, 16)},
    "warm": {0: (4, 1, 1), 1: (2, 1, 1), 60: (1, 1, 1)},
}
LIKE = {"no_beat": "beat", "cold": "warm"}
OPTIONS = {"forms": [], "beat": ["--whole", "--heartbeat"], "no_beat": ["--whole"], "warm": ["--first", "warm"], "cold": ["--first", "cold"]}


@dataclasses.dataclass(frozen=True)
class Slice:
    run: str
    idle_s: int
    neighbour: bool
    number: int
    rounds: int
    burst: int

    @property
    def name(self) -> str:
        return f"{self.run}-{self.idle_s}s{'-neighbour' if self.neighbour else ''}-{self.number}"

    def seconds(self) -> float:
        """About, with chunks of 80 ms: for the progress alone."""
        apart = 0.08 if self.idle_s else 0.025
        return 2 + self.rounds * (self.idle_s + self.burst * apart)


def slices(args: argparse.Namespace) -> list[Slice]:
    """The first of every kind, then the second of every kind: whenever it is left, there is something of each."""
    out = []
    for run in OPTIONS:
        for idle_s in args.idle:
            count, rounds, burst = (QUICK if args.quick else PLAN)[LIKE.get(run, run)][idle_s]
            for number in range(count):
                out += [Slice(run, idle_s, neighbour, number, rounds, burst) for neighbour in (False, True)]
    return sorted(out, key=lambda s: s.number)


def command(args: argparse.Namespace, piece: Slice, to: pathlib.Path) -> list[str]:
    under = shlex.split(args.under) if piece.idle_s < 60 else []
    out = [*under, str(args.build / "bench/transducer_latency"), "--model", str(args.model), "--idle", str(piece.idle_s)]
    out += ["--precision", args.precision, "--threads", str(args.threads), "--cache", str(args.out / "cache"), "--keep", str(to)]
    out += ["--look-ahead", str(args.look_ahead)] if args.look_ahead is not None else []
    out += ["--rounds", str(piece.rounds), "--burst", str(piece.burst), "--begin", str(piece.number + 1), *OPTIONS[piece.run]]
    return out + (["--neighbour"] if piece.neighbour and piece.idle_s < 60 else [])


def keep(args: argparse.Namespace, piece: Slice, ran: subprocess.Popen) -> None:
    output, _ = ran.communicate()
    if ran.returncode:
        sys.exit(f"{shlex.join(ran.args)} failed:\n{output}")
    raw = args.out / "raw"
    (raw / f"{piece.name}.partly").rename(raw / f"{piece.name}.txt")


def start(args: argparse.Namespace, piece: Slice) -> subprocess.Popen:
    partly = args.out / "raw" / f"{piece.name}.partly"
    partly.unlink(missing_ok=True)
    return subprocess.Popen(command(args, piece, partly), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def measure_sleepers(args: argparse.Namespace, pieces: list[Slice]) -> None:
    """Side by side.  The neighbour that they share is that of one more program, whose own chunks nobody counts."""
    noise = None
    if pieces[0].neighbour:
        uncounted = dataclasses.replace(pieces[0], run="no_beat", number=0, rounds=1000, burst=1)
        noise = subprocess.Popen([*command(args, uncounted, args.out / "uncounted"), "--neighbour"], stdout=subprocess.DEVNULL)
    running: list[tuple[Slice, subprocess.Popen]] = []
    try:
        for piece in pieces:
            running.append((piece, start(args, piece)))
            print(f"{piece.name} has begun", flush=True)
            time.sleep(APART_S)
        for piece, ran in running:
            keep(args, piece, ran)
    finally:
        for _, ran in running:
            ran.kill()
        if noise:
            noise.kill()  # and with it its neighbour
            noise.wait()
    report(args)


def measure(args: argparse.Namespace) -> None:
    raw = args.out / "raw"
    for folder in (raw, args.out / "cache"):
        folder.mkdir(parents=True, exist_ok=True)
    wanted = slices(args)
    missing = [piece for piece in wanted if not (raw / f"{piece.name}.txt").exists()]
    # Heartbeats last: they are to be no neighbours of those that sleep without.
    sleepers = sorted((piece for piece in missing if piece.idle_s == 60), key=lambda piece: piece.run == "beat")
    for neighbour in (False, True):
        if pieces := [piece for piece in sleepers if piece.neighbour == neighbour]:
            measure_sleepers(args, pieces)
    missing = [piece for piece in missing if piece not in sleepers]
    left_s = sum(piece.seconds() for piece in missing)
    for done, piece in enumerate(missing, len(wanted) - len(missing) + 1):
        print(f"[{done}/{len(wanted)}] {piece.name}, about {left_s / 60:.0f} min left", flush=True)
        keep(args, piece, start(args, piece))
        left_s -= piece.seconds()
        report(args)


def samples(args: argparse.Namespace, side: Side, idle_s: int, neighbour: bool) -> list[tuple[int, float]]:
    """Each chunk's place in its burst and its microseconds."""
    out = []
    between = "-neighbour" if neighbour else ""
    for path in sorted((args.out / "raw").glob(f"{side.run}-{idle_s}s{between}-[0-9]*.txt")):
        for line in path.read_text().splitlines():
            index, form, us = line.split()
            out += [(int(index), float(us))] if form == side.form else []
    return out


def percentile(values: list[float], name: str) -> float | None:
    """The smallest value that so great a share of them does not exceed; nothing where they are too few."""
    if len(values) < SUPPORT[name]:
        return None
    return sorted(values)[min(len(values), max(1, math.ceil(SHARE[name] * len(values)))) - 1]


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def grid(args: argparse.Namespace) -> list[dict]:
    out = []
    for principle, about, with_it, without_it in ROWS:
        for idle_s in args.idle:
            for neighbour in (False, True):
                for has, side in ((True, with_it), (False, without_it)):
                    chunks = samples(args, side, idle_s, neighbour)
                    us = [value for _, value in chunks]
                    first = [value for index, value in chunks if index == 0]
                    row = {"principle": principle, "about": about, "idle_s": idle_s, "neighbour": neighbour, "with": has, "n": len(us)}
                    row |= {name: percentile(us, name) for name in SUPPORT}
                    out.append(row | {"first": percentile(first, "p50"), "first_n": len(first)})
    return out


def about(args: argparse.Namespace) -> str:
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return f"{args.model.name}, {args.precision}, {args.threads} threads, commit {commit}, {machine()}"


def table(args: argparse.Namespace, rows: list[dict]) -> str:
    lines = [about(args), "", "us from a chunk's last sample to its result.", ""]
    lines += ["| principle | after | beside | | p50 | p99 | p99.9 | n | first of a burst, p50 | n |", "|" + " --- |" * 10]
    for row in rows:
        cells = [f"{row['principle']} {row['about']}", f"{row['idle_s']} s", "a neighbour" if row["neighbour"] else "",
                 "with" if row["with"] else "without", *(shown(row[name]) for name in SUPPORT), str(row["n"]),
                 shown(row["first"]), str(row["first_n"])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def plot(args: argparse.Namespace, rows: list[dict], path: pathlib.Path) -> None:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(2, 4, figsize=(18, 8))
    cells = [(idle_s, neighbour) for neighbour in (False, True) for idle_s in args.idle]
    names = [f"{idle_s} s" + ("\nneighbour" if neighbour else "") for idle_s, neighbour in cells]
    for axis, (principle, what, _, _) in zip(axes.flat, ROWS):
        for has, color in ((True, "tab:blue"), (False, "tab:orange")):
            own = {(r["idle_s"], r["neighbour"]): r for r in rows if (r["principle"], r["about"], r["with"]) == (principle, what, has)}
            for name, marker in (("p50", "o"), ("p99", "^"), ("p99.9", "*")):
                at = [i + (-0.1 if has else 0.1) for i, cell in enumerate(cells) if own[cell][name] is not None]
                ms = [own[cell][name] / 1000 for cell in cells if own[cell][name] is not None]
                axis.plot(at, ms, marker, color=color, label=f"{'with' if has else 'without'}, {name}")
        axis.set(yscale="log", ylabel="ms")
        axis.set_title(f"{principle} {what}", fontsize=8, wrap=True)
        axis.set_xticks(range(len(cells)), names, fontsize=7)
        axis.grid(True, which="both", alpha=0.3)
    axes.flat[0].legend(fontsize=7)
    axes.flat[-1].axis("off")
    figure.suptitle(about(args), fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def report(args: argparse.Namespace) -> None:
    rows = grid(args)
    (args.out / "hot_path.json").write_text(json.dumps({"about": about(args), "rows": rows}, indent=1) + "\n")
    (args.out / "hot_path.md").write_text(table(args, rows))
    try:
        plot(args, rows, args.out / "hot_path.png")
    except ImportError:
        return  # the table says it all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="checkpoint of a cache-aware transducer")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--look-ahead", type=int, help="frames, one of the model's own; 0 with chunks of 80 ms")
    parser.add_argument("--idle", type=int, nargs="+", choices=IDLE_S, default=IDLE_S)
    parser.add_argument("--under", default="", help="a command that runs each slice but the sleepers of 60 s, one that keeps the machine quiet say")
    parser.add_argument("--quick", action="store_true", help="few chunks: whether it runs, no figures")
    parser.add_argument("--report", action="store_true", help="runs nothing")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.report:
        started = time.monotonic()
        measure(args)
        print(f"done in {(time.monotonic() - started) / 60:.1f} min")
    report(args)
    print((args.out / "hot_path.md").read_text())


if __name__ == "__main__":
    main()
