#!/usr/bin/env python3
"""Cost of a beam of 5: whole transcriptions by `syrinx serve` and by faster-whisper, greedily and by the beam, on the same weights.

The clip is the five LibriVox sentences of Debian's pocketsphinx-testdata, one after another (24.7 s). Both keep their defaults otherwise
(Syrinx detects voice activity, faster-whisper does not); both know that the language is English. Runs alternate, a round of all racers
at a time, after one round that does not count; loading is never part of it. Of each run the time on the wall and the processor time of
its process are kept: the second one says more on a machine that others use. With --quiet a round waits until no other program computes at
normal priority, and does not count if one did for a tenth of the time; programs with a nice value do not matter there.

  PYTHON bench/race/whisper_beam.py --model whisper-base --json beam.json        # PYTHON: one with faster-whisper
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
import urllib.request
import wave

from machine import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIPS = pathlib.Path("/usr/share/pocketsphinx/test/data/librivox")
PAUSE_S = 0.4  # the peer's threads spin for a while behind their work
QUIET = 0.1    # share of the time
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def joined_clip() -> bytes:
    clips = [wave.open(str(path)) for path in sorted(CLIPS.glob("*.wav"))]
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams(clips[0].getparams())
        for clip in clips:
            file.writeframes(clip.readframes(clip.getnframes()))
    return out.getvalue()


class Syrinx:
    def __init__(self, args: argparse.Namespace):
        command = [args.syrinx, "serve", "--port", "0", "--speech-model", "", "--recognition-model", args.model, "--recognition-precision",
                   args.precision, "--recognition-threads", args.threads, "--log", "off"]
        self.process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r" at (http://[^ ,]*:\d+)", line):
                self.url = found[1] + "/v1/audio/transcriptions"
                return
        raise SystemExit("syrinx serve did not begin")

    def hear(self, clip: bytes, beam: int) -> str:
        parts = {"file\"; filename=\"clip.wav": clip, "language": b"en", "beam": str(beam).encode(), "response_format": b"text"}
        body = b"".join(b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), content)
                        for name, content in parts.items()) + b"--b--\r\n"
        request = urllib.request.Request(self.url, body, {"Content-Type": "multipart/form-data; boundary=b"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.read().decode()

    def pid(self) -> int:
        return self.process.pid

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


class FasterWhisper:
    def __init__(self, args: argparse.Namespace):
        import faster_whisper

        compute = {"int8": "int8", "f32": "float32"}[args.precision]
        self.model = faster_whisper.WhisperModel(str(args.model), device="cpu", compute_type=compute, cpu_threads=args.threads)

    def hear(self, clip: bytes, beam: int) -> str:
        segments, _ = self.model.transcribe(io.BytesIO(clip), language="en", beam_size=max(beam, 1))
        return "".join(segment.text for segment in segments)

    def pid(self) -> int:
        return os.getpid()

    def close(self) -> None:
        pass


def user_s(pid: int) -> tuple[float, float]:
    """User time of a process, and its user and system time."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) * TICK_S, (int(fields[11]) + int(fields[12])) * TICK_S


def all_user_s() -> float:
    """Processor time of all programs without a nice value."""
    return int(pathlib.Path("/proc/stat").read_text().split()[1]) * TICK_S


def wait_for_quiet() -> None:
    while True:
        before = all_user_s()
        time.sleep(1)
        if all_user_s() - before < QUIET:
            return


def timed(racer, clip: bytes, beam: int) -> dict:
    (own, all_own), all_, start = user_s(racer.pid()), all_user_s(), time.perf_counter()
    text = racer.hear(clip, beam)
    wall_s = time.perf_counter() - start
    own_end, all_own_end = user_s(racer.pid())
    return dict(wall_s=wall_s, processor_s=all_own_end - all_own, others=(all_user_s() - all_ - own_end + own) / wall_s, text=text.strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="folder of Whisper base for CTranslate2")
    parser.add_argument("--syrinx", type=pathlib.Path, default=ROOT / "build/release/syrinx", help="the built binary")
    parser.add_argument("--precision", choices=("int8", "f32"), default="int8", help="of both (default int8)")
    parser.add_argument("--threads", type=int, default=2, help="of both (default 2)")
    parser.add_argument("--beam", type=int, default=5, help="beside greedy (default 5)")
    parser.add_argument("--rounds", type=int, default=9, help="that count (default 9)")
    parser.add_argument("--quiet", action="store_true", help="wait for other programs")
    parser.add_argument("--tries", type=int, default=100, help="rounds at most (default 100)")
    parser.add_argument("--json", type=pathlib.Path, help="write all samples")
    args = parser.parse_args()
    clip, runs = joined_clip(), {}
    racers = {"syrinx": Syrinx(args), "faster-whisper": FasterWhisper(args)}
    counted = 0
    for round_ in range(args.tries + 1):
        if args.quiet:
            wait_for_quiet()
        rows = {}
        for name, racer in racers.items():
            for beam in (0, args.beam):
                rows[f"{name}, {f'beam {beam}' if beam else 'greedy'}"] = timed(racer, clip, beam)
                time.sleep(PAUSE_S)
        is_quiet = not args.quiet or max(row["others"] for row in rows.values()) < QUIET
        print("." if is_quiet else "x", end="", flush=True, file=sys.stderr)
        if round_ == 0 or not is_quiet:
            continue
        for name, row in rows.items():
            runs.setdefault(name, []).append(row)
        counted += 1
        if counted == args.rounds:
            break
    for racer in racers.values():
        racer.close()
    print(f"\n{machine()}\n| racer | wall, ms | processor, ms | n | words |\n| --- | --- | --- | --- | --- |")
    for name, rows in runs.items():
        figures = [[1e3 * row[key] for row in rows] for key in ("wall_s", "processor_s")]
        cells = " | ".join(f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})" for values in figures)
        print(f"| {name} | {cells} | {len(rows)} | {len(rows[-1]['text'].split())} |")
    starts = (("syrinx, beam", "syrinx, greedy"), ("faster-whisper, beam", "syrinx, beam"), ("faster-whisper, greedy", "syrinx, greedy"))
    for over, under in starts:
        one, other = (next(rows for name, rows in runs.items() if name.startswith(start)) for start in (over, under))
        for key in ("wall_s", "processor_s"):
            of_medians = statistics.median(row[key] for row in one) / statistics.median(row[key] for row in other)
            of_pairs = statistics.median(a[key] / b[key] for a, b in zip(one, other))
            print(f"{over} / {under}, {key}: medians {of_medians:.2f}, pairs {of_pairs:.2f}")
    if args.json:
        args.json.write_text(json.dumps(dict(machine=machine(), runs=runs), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
