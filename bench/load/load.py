#!/usr/bin/env python3
"""How many clients a server bears at once.  The server is started here and ended behind the run.

  load.py run --model FOLDER --voice FILE --streams 1,2,4 --json load.json      so many listeners, one count after another
  load.py capacity --model FOLDER --voice FILE --json load.json                 the most without a miss, by bisection; then
                                                                                the gaps between frames at 80 % of it
  load.py sweep --model FOLDER --voice FILE --json load.json                    1 client, and 25, 50, 80 and 100 % of
                                                                      the capacity that the file tells, or of --high
  load.py ... --protocol openai|realtime|wyoming                                how they ask; openai by default
  load.py ... --ahead 4                                        a text is asked for 4 s before the last one has been played
  load.py ... --clip FILE.wav --model MODEL                    of a recogniser, so many speakers
              [--protocol transcriptions|realtime|wyoming|decode|batch]
  load.py ... --cpus 0                                         the server on these CPUs alone, this program on others
  load.py ... --peer 'pocket-tts serve --config C --port 8765' --port 8765      the same of the maker's own server
  load.py ... --clip FILE.wav --peer 'whisper-server -m M --port 8765' --port 8765
  load.py report --json load.json [--csv load.csv] [--plot load.png]            table, and first sound against streams

A listener plays what it hears as soon as it hears it, one text after another, and a moment without anything left to play
is a missed deadline; with --ahead, as who reads a book aloud, so is silence between two texts.  A speaker says a clip
again and again, at the pace of speech in realtime, over Wyoming and in streams of /v2/decode, where words that come
more than --deadline behind its last sample are a miss; recordings (transcriptions, batch) are posted whole, each when
the last one would have been said, and an answer that takes longer than that is the miss.  Their "first sound" is this
answer.  Realtime hears clips of 24 kHz, /v2/decode of 16 kHz, the others any.

Rows are added to the file, so that a long run may be cut into several calls (`capacity --low 8 --high 12`), and `sweep`
measures no count again that the file has of the same server and settings.  For Syrinx each row also has how much of the
first sound is not the engine's own: the listener's clock less the engine's figure for the same request, from the
server's log.  A server has 64 slots at most: where a model bears more, --cpus makes the capacity its own again.  --plot
needs matplotlib, realtime and decode the package websockets.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import math
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time

import listener
import live
import speaker

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench/race"))
from machine import machine  # noqa: E402

NEEDS_CLIP = ("transcriptions", "decode", "batch")
TEXT = "The train to the coast leaves at a quarter past nine from the second platform."


def cpu_set(text: str) -> set[int]:
    """As taskset writes them: 0,2-3."""
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def parted(cpus: str) -> list[str]:
    """What stands before a server's command so that it has these CPUs alone; this program takes the others, if any."""
    if not cpus:
        return []
    if others := os.sched_getaffinity(0) - cpu_set(cpus):
        os.sched_setaffinity(0, others)
    return ["taskset", "-c", cpus]


def percentile(values: list[float], p: float) -> float:
    """Of the nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * p / 100) - 1)]


# ---- servers ---------------------------------------------------------------------------------------------------------


class Syrinx:
    """`syrinx serve`, and what its log says of each request."""
    name = "syrinx"

    def __init__(self, binary: str, arguments: list[str], protocol: str = "openai", cpus: str = "",
                 with_wyoming: bool = True):
        self.log: dict[str, dict] = {}
        command = [*parted(cpus), binary, "serve", "--port", "0", *(["--wyoming-port", "0"] if with_wyoming else []), *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self.ports: dict[str, int] = {}
        for line in self.process.stderr:
            self.lines.append(line)
            if told := re.search(r" at (http|tcp)://127\.0\.0\.1:(\d+)", line):
                self.ports[told[1]] = int(told[2])
            if "http" in self.ports:  # Wyoming's line comes first
                break
        if "http" not in self.ports:
            raise SystemExit("the server did not start: " + "".join(self.lines))
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        self.target = listener.Target("127.0.0.1", self.port_of(protocol), protocol)

    def port_of(self, protocol: str) -> int:
        return self.ports["tcp" if protocol == "wyoming" else "http"]

    def _read(self) -> None:
        for line in self.process.stderr:
            if line.startswith("{") and (entry := json.loads(line))["event"] == "speech":
                self.log[entry["id"]] = entry

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()


class Peer:
    """Any command that serves the maker's own protocol on that port."""

    def __init__(self, command: str, port: int, protocol: str, cpus: str = ""):
        self.name, self.log = pathlib.Path(shlex.split(command)[0]).name, {}
        self.target = listener.Target("127.0.0.1", port, protocol)
        self.process = subprocess.Popen([*parted(cpus), *shlex.split(command)], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        self.process.terminate()
        raise SystemExit(f"nothing answers at port {port}: {command}")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def hearing_arguments(args: argparse.Namespace) -> list[str]:
    arguments = ["--recognition-model", args.model, "--speech-model", "", "--recognition-slots", str(args.slots),
                 "--recognition-threads", str(args.threads)]
    return arguments + (["--recognition-precision", args.precision] if args.precision else [])


def syrinx_arguments(args: argparse.Namespace) -> list[str]:
    arguments = ["--speech-model", args.model, "--speech-slots", str(args.slots), "--threads", str(args.threads)]
    if args.precision:
        arguments += ["--precision", args.precision]
    return arguments + (["--voices", f"race={args.voice}", "--voice", "race"] if args.voice else [])


def start(args: argparse.Namespace) -> Syrinx | Peer:
    if args.peer:
        return Peer(args.peer, args.port, "whisper.cpp" if args.clip else "pocket-tts", args.cpus)
    arguments = hearing_arguments(args) if args.clip else [*syrinx_arguments(args), "--recognition-model", ""]
    # What it bears is measured here, and not what it would admit; binaries before that have no such setting.
    if "--live-load" in subprocess.run([args.syrinx, "serve", "--help"], capture_output=True, text=True, check=True).stdout:
        arguments += ["--live-load", "0"]
    return Syrinx(args.syrinx, arguments, args.protocol, args.cpus)


# ---- measuring -------------------------------------------------------------------------------------------------------


def spread(values: list[float]) -> dict:
    if not values:
        return {}
    return {"p50": percentile(values, 50), "p95": percentile(values, 95), "p99": percentile(values, 99), "min": min(values), "max": max(values)}


def row_name(server: Syrinx | Peer, args: argparse.Namespace) -> str:
    name = server.name if isinstance(server, Peer) or args.protocol == "openai" else f"{server.name} {args.protocol}"
    return args.name or name + (" ahead" if args.ahead else "")


def probe(server: Syrinx | Peer, streams: int, args: argparse.Namespace, period: float) -> dict:
    heard = asyncio.run(listener.listeners(server.target, args.text, streams, args.seconds, period, args.ahead))
    good = [h for h in heard if h.status == 200 and h.sound > 0]
    # The log's lines follow the answers; only HTTP's bear the names that were asked with.
    end = time.monotonic() + (60 if isinstance(server, Syrinx) and args.protocol == "openai" else 0)
    while any(h.name not in server.log for h in good) and time.monotonic() < end:
        time.sleep(0.02)
    logged = [(h, server.log[h.name]) for h in good if h.name in server.log]
    row = {"server": row_name(server, args), "streams": streams, "seconds": args.seconds, "texts": len(heard),
           "failed": len(heard) - len(good), "misses": sum(h.misses for h in good),
           "late_ms": 1e3 * max([h.late for h in good], default=0.0), "sound_s": sum(h.sound for h in good),
           "first_ms": spread([1e3 * h.first for h in good]), "gap_ms": spread([1e3 * g for h in good for g in h.gaps]),
           "above_engine_ms": spread([1e3 * h.first - entry["engine_first_audio_ms"] for h, entry in logged]),
           "of_it_in_server_ms": spread([entry["first_audio_ms"] - entry["engine_first_audio_ms"] for _, entry in logged])}
    print(f"{row['server']}: {streams} streams, {len(heard)} texts, {row['failed']} failed, {row['misses']} misses (worst {row['late_ms']:.0f} ms), "
          f"first sound p50 {row['first_ms'].get('p50', 0):.1f} p99 {row['first_ms'].get('p99', 0):.1f} ms, "
          f"gap p99 {row['gap_ms'].get('p99', 0):.1f} ms", flush=True)
    return row


def ear(server: Syrinx | Peer, args: argparse.Namespace) -> speaker.Ear:
    return speaker.Ear(server.target.protocol, server.target.host, server.target.port, args.clip)


def probe_hearing(server: Syrinx | Peer, streams: int, args: argparse.Namespace) -> dict:
    said = asyncio.run(speaker.speakers([ear(server, args)], streams, args.seconds))
    good = [s for s in said if s.status == 200 and s.words]
    allowed = args.clip.seconds if server.target.protocol in speaker.WHOLE else args.deadline
    late = [s.answer - allowed for s in good if s.answer > allowed]
    row = {"server": row_name(server, args), "streams": streams, "seconds": args.seconds, "texts": len(said), "failed": len(said) - len(good),
           "misses": len(late), "late_ms": 1e3 * max(late, default=0.0), "sound_s": len(good) * args.clip.seconds,
           "first_ms": spread([1e3 * s.answer for s in good]), "gap_ms": {}, "above_engine_ms": {}, "of_it_in_server_ms": {}}
    print(f"{row['server']}: {streams} speakers, {len(said)} clips, {row['failed']} failed, {row['misses']} late (worst by {row['late_ms']:.0f} ms), "
          f"words p50 {row['first_ms'].get('p50', 0):.0f} p99 {row['first_ms'].get('p99', 0):.0f} ms behind the sound", flush=True)
    for fault in dict.fromkeys(s.fault for s in said if s.fault):
        print(f"  {fault}", flush=True)
    return row


def is_borne(row: dict) -> bool:
    return row["failed"] == 0 and row["misses"] == 0 and row["texts"] > 0


def find_capacity(bears, low: int, high: int | None) -> int:
    """Doubles from `low` (borne, or 0) until a count fails, and halves what lies between."""
    while high is None or high - low > 1:
        count = max(1, 2 * low) if high is None else (low + high) // 2
        if bears(count):
            low = count
        else:
            high = count
    return low


def warm(server: Syrinx | Peer, args: argparse.Namespace) -> float:
    """One text or clip, and its seconds."""
    if args.clip:
        said = asyncio.run(speaker.say(ear(server, args)))
        if said.status != 200 or not said.words:
            raise SystemExit(f"the clip is not heard: status {said.status}, {said.fault or 'no words'}")
        print(f"heard: {said.words}")
        return args.clip.seconds
    first = asyncio.run(listener.listen(server.target, args.text, "warm.0", 0))
    if first.status != 200 or first.sound == 0:
        raise SystemExit(f"a text is not spoken: status {first.status}")
    return first.sound


def saved_rows(path: pathlib.Path) -> list[dict]:
    return json.loads(path.read_text())["rows"] if path.exists() else []


class Measurement:
    """What is measured of one server, into the file."""

    def __init__(self, server: Syrinx | Peer, args: argparse.Namespace):
        self.server, self.args, self.period = server, args, warm(server, args)
        build = subprocess.run([args.syrinx, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
        self.about = {"machine": machine(), "model": pathlib.Path(args.model or "").name, "precision": args.precision,
                      "text_sound_s": self.period, "threads": args.threads, "cpus": args.cpus, "slots": args.slots,
                      "ahead": args.ahead, "deadline": args.deadline, "protocol": server.target.protocol,
                      "voice": args.voice, "text": "" if args.clip else args.text,
                      "clip": args.clip.path if args.clip else "", "peer": args.peer or "", "build": build}
        self.row: dict = {}

    def bears(self, streams: int, **more) -> bool:
        args = self.args
        row = probe_hearing(self.server, streams, args) if args.clip else probe(self.server, streams, args, self.period)
        self.row = row | more | {"about": self.about}
        args.json.write_text(json.dumps({"rows": [*saved_rows(args.json), self.row]}, indent=1) + "\n")
        return is_borne(row)

    def alike(self) -> list[dict]:
        """The file's rows of this server with these settings."""
        def settings(about: dict) -> dict:
            return {key: value for key, value in about.items() if key != "text_sound_s"}  # a peer draws it anew

        wanted = (row_name(self.server, self.args), self.args.seconds, settings(self.about))
        return [row for row in saved_rows(self.args.json)
                if (row["server"], row["seconds"], settings(row["about"])) == wanted]

    def find(self) -> None:
        refused = []

        def bears(streams: int) -> bool:
            if self.bears(streams):
                return True
            if self.row["misses"] == 0:
                refused.append(streams)
            return False

        capacity = find_capacity(bears, self.args.low, self.args.high)
        note = f"; of {capacity + 1} some failed, and none was late" if capacity + 1 in refused else ""
        print(f"capacity: {capacity} streams{note}", flush=True)
        if capacity > 0:
            self.bears(max(1, capacity * 4 // 5), capacity=capacity)

    def sweep(self) -> None:
        known = self.alike()
        high = self.args.high or next((row["capacity"] for row in reversed(known) if "capacity" in row), 0)
        if high == 0:
            raise SystemExit(f"{self.args.json} tells no capacity of this server with these settings: say --high")
        for streams in sweep_counts(high):
            if any(row["streams"] == streams for row in known):
                print(f"{streams} streams: measured before", flush=True)
            else:
                self.bears(streams)


def sweep_counts(high: int) -> list[int]:
    return sorted({1, *(max(1, high * percent // 100) for percent in (25, 50, 80, 100))})


def measure(args: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the server is ended
    server = start(args)
    try:
        measurement = Measurement(server, args)
        if args.command == "capacity":
            measurement.find()
        elif args.command == "sweep":
            measurement.sweep()
        else:
            for streams in args.streams:
                measurement.bears(streams)
    finally:
        server.close()


# ---- report ----------------------------------------------------------------------------------------------------------


COLUMNS = [("server", "server"), ("streams", "streams"), ("texts", "texts"), ("failed", "failed"), ("misses", "misses"), ("late_ms", "worst wait, ms"),
           ("first_ms.p50", "first sound p50"), ("first_ms.p95", "p95"), ("first_ms.p99", "p99"), ("first_ms.min", "min"), ("first_ms.max", "max"),
           ("gap_ms.p99", "gap p99"), ("above_engine_ms.p50", "above the engine p50"), ("above_engine_ms.p99", "p99"), ("above_engine_ms.max", "max"),
           ("of_it_in_server_ms.p50", "of it in the server p50")]


def cell(row: dict, column: str) -> str:
    value = row
    for key in column.split("."):
        value = value.get(key, "") if isinstance(value, dict) else ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def chart(rows: list[dict], width: int = 60) -> list[str]:
    """Text: for each server and count p50, p95 and p99 as rows of '#' as long as their logarithm, on one scale."""
    rows = [row for row in rows if row["first_ms"]]
    values = [max(1e-3, row["first_ms"][p]) for row in rows for p in ("p50", "p99")]
    if not values:
        return []
    low = math.floor(math.log10(min(values)))
    decades = max(1, math.ceil(math.log10(max(values))) - low)
    marks = "".join(f"{f'|{10.0 ** (low + i):g}':<{width // decades}}" for i in range(decades + 1))
    lines = []
    for name in dict.fromkeys(row["server"] for row in rows):
        lines += ["", f"{name}: first sound, or words behind the sound, ms", f"{'clients':>8}     {marks.rstrip()}"]
        points = {row["streams"]: row for row in rows if row["server"] == name}
        for streams, row in sorted(points.items()):
            fault = "" if is_borne(row) else f", {row['misses']} misses, {row['failed']} failed"
            for p in ("p50", "p95", "p99"):
                value = max(1e-3, row["first_ms"][p])
                bar = "#" * round(width // decades * (math.log10(value) - low))
                lines.append(f"{streams if p == 'p50' else '':>8} {p} |{bar} {value:.1f}{fault if p == 'p99' else ''}")
    return lines


def plot(rows: list[dict], path: pathlib.Path) -> None:
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # letters, not their outlines
    from matplotlib import pyplot, ticker
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for color, name in zip(pyplot.cm.tab10.colors, dict.fromkeys(row["server"] for row in rows)):
        points = sorted({row["streams"]: row for row in rows if row["server"] == name and row["first_ms"]}.items())
        for style, p in (("-", "p50"), ("--", "p95"), (":", "p99")):
            axes.plot([n for n, _ in points], [row["first_ms"][p] for _, row in points], style, color=color, label=f"{name} {p}")
        missed = [(n, row["first_ms"]["p50"]) for n, row in points if not is_borne(row)]
        if missed:
            axes.plot([n for n, _ in missed], [y for _, y in missed], "x", color=color, label=f"{name}: late or refused")
    axes.set(xlabel="clients at once", ylabel="first sound, or words behind the sound, ms", yscale="log", title=rows[0]["about"]["machine"])
    axes.title.set_fontsize(8)
    axes.yaxis.set_major_formatter(ticker.ScalarFormatter())
    axes.yaxis.set_minor_formatter(ticker.LogFormatter(labelOnlyBase=False, minor_thresholds=(3, 0.5)))
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1))
    figure.savefig(path, dpi=120, bbox_inches="tight")


def report(args: argparse.Namespace) -> None:
    rows = saved_rows(args.json)
    rows.sort(key=lambda row: (row["server"], row["streams"]))
    print("| " + " | ".join(title for _, title in COLUMNS) + " |\n|" + " --- |" * len(COLUMNS))
    for row in rows:
        print("| " + " | ".join(cell(row, column) for column, _ in COLUMNS) + " |")
    for row in rows:
        if "capacity" in row:
            gaps = f"; at {row['streams']} the gap between frames has p99 {row['gap_ms']['p99']:.1f} ms" if row["gap_ms"] else ""
            print(f"{row['server']}: capacity {row['capacity']} streams{gaps}")
    print("\n".join(chart(rows)))
    for about in {json.dumps(row["about"], sort_keys=True) for row in rows}:
        print(about)
    if args.csv:
        with args.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([column for column, _ in COLUMNS])
            writer.writerows([cell(row, column) for column, _ in COLUMNS] for row in rows)
    if args.plot:
        plot(rows, args.plot)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "capacity", "sweep"):
        command = commands.add_parser(name)
        command.add_argument("--syrinx", default=str(ROOT / "build/release/syrinx"))
        command.add_argument("--model", default="", help="folder of a model of Pocket TTS, or any other that serves; with --clip a recogniser's")
        command.add_argument("--voice", help="voice's file")
        command.add_argument("--precision", default="")
        command.add_argument("--threads", type=int, help="as many as the server has CPUs otherwise")
        command.add_argument("--slots", type=int, default=64, help="of the server, which has 64 at most")
        command.add_argument("--cpus", default="", help="of the server, as taskset writes them")
        command.add_argument("--peer", help="command of another server")
        command.add_argument("--port", type=int, default=8000, help="where that one listens")
        command.add_argument("--name", help="in the table; the server's otherwise")
        command.add_argument("--protocol", help="of Syrinx",
                             choices=("openai", "realtime", "wyoming", *NEEDS_CLIP))
        command.add_argument("--text", default=TEXT)
        command.add_argument("--ahead", type=float, default=0.0, help="seconds before a text's end in which the next is asked for")
        command.add_argument("--clip", type=live.Clip.read, help="WAV file, 16 bits, one channel: --model recognises it")
        command.add_argument("--deadline", type=float, default=1.0, help="seconds from a clip's end to its words")
        command.add_argument("--seconds", type=float, default=12.0, help="of each count of listeners")
        command.add_argument("--json", type=pathlib.Path, required=True)
    commands.choices["run"].add_argument("--streams", type=lambda text: [int(n) for n in text.split(",")], default=[1])
    commands.choices["capacity"].add_argument("--low", type=int, default=0, help="known to be borne")
    commands.choices["capacity"].add_argument("--high", type=int, help="known not to be")
    commands.choices["sweep"].add_argument("--high", type=int, help="its last count")
    shown = commands.add_parser("report")
    shown.add_argument("--json", type=pathlib.Path, required=True)
    shown.add_argument("--csv", type=pathlib.Path)
    shown.add_argument("--plot", type=pathlib.Path)
    args = parser.parse_args()
    if args.command != "report":
        args.protocol = args.protocol or ("transcriptions" if args.clip else "openai")
        args.threads = args.threads or len(cpu_set(args.cpus) if args.cpus else os.sched_getaffinity(0))
        if args.protocol in NEEDS_CLIP and not args.clip or args.protocol == "openai" and args.clip:
            parser.error("--protocol transcriptions, decode or batch needs --clip, openai is without it")
        if args.ahead and args.clip:
            parser.error("--ahead is of listeners, --clip of speakers")
    report(args) if args.command == "report" else measure(args)


if __name__ == "__main__":
    main()
