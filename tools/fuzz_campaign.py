#!/usr/bin/env python3
"""Fuzzes for long: each target for so many seconds of processor, in slices, two or more targets at a time, at idle priority.

  tools/fuzz_campaign.py --seconds 3600 http_request multipart       an hour each; without names all targets
  tools/fuzz_campaign.py --state DIR --report                         what has been done so far
  tools/fuzz_campaign.py --record                                     adds it to fuzz/campaign.json, which is to be committed

What it has found and done is kept in --state (build/fuzz_campaign), so that it may be ended at any time (Ctrl-C, SIGTERM) and
goes on where it was; what earlier ones, also on other machines, have recorded in fuzz/campaign.json counts as done.  Seeds are random, unlike those of scripts/test.  A target that fails is not run again before its binary has changed; its
input lies in STATE/found/NAME and belongs into fuzz/corpus/NAME with the fix.  Ends with 0 once all have done their time.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = ROOT / "fuzz/campaign.json"
INTERRUPTED = 72  # libFuzzer's status behind SIGINT, which a terminal's Ctrl-C sends it as well
LIMITS = ["-timeout=60", "-rss_limit_mb=2048", "-max_len=65536", "-print_final_stats=1", "-verbosity=0", "-seed=0"]


class Campaign:
    """The account of what has run: NAME -> {cpu_s, runs, recorded, binary, failed}, of which `recorded` is how much of both
    stands in the record, and the record of all campaigns: NAME -> {cpu_s, runs}.  Any thread."""

    def __init__(self, folder: pathlib.Path, binaries: pathlib.Path, names: list[str], seconds: float, slice_s: int):
        self.folder, self.binaries, self.names, self.seconds, self.slice_s = folder, binaries, names, seconds, slice_s
        self.path, self.lock, self.busy = folder / "account.json", threading.Lock(), set()
        self.running: dict[str, subprocess.Popen] = {}
        self.is_ending = False
        self.account = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.record = json.loads(RECORD.read_text()) if RECORD.exists() else {}

    def row(self, name: str) -> dict:
        return self.account.setdefault(name, {"cpu_s": 0.0, "runs": 0, "recorded": [0.0, 0], "binary": "", "failed": False})

    def total(self, name: str) -> tuple[float, int]:
        """Seconds of processor and runs of all campaigns."""
        row, before = self.row(name), self.record.get(name, {"cpu_s": 0, "runs": 0})
        return before["cpu_s"] + row["cpu_s"] - row["recorded"][0], before["runs"] + row["runs"] - row["recorded"][1]

    def write_record(self) -> None:
        for name in self.names:
            seconds, runs = self.total(name)
            if seconds > 0:
                self.record[name] = {"cpu_s": round(seconds), "runs": runs}
            self.row(name)["recorded"] = [self.row(name)["cpu_s"], self.row(name)["runs"]]
        RECORD.write_text("{\n" + ",\n".join(f' "{name}": {json.dumps(self.record[name])}' for name in sorted(self.record)) + "\n}\n")
        self.path.write_text(json.dumps(self.account, indent=1) + "\n")

    def take(self) -> str | None:
        """The target that has run least of those that have to; None: no more."""
        with self.lock:
            open_ones = [n for n in self.names if n not in self.busy and self.total(n)[0] < self.seconds
                         and not (self.row(n)["failed"] and self.row(n)["binary"] == self.digest_or_none(n))]
            if not open_ones or self.is_ending:
                return None
            name = min(open_ones, key=lambda n: self.total(n)[0])
            self.busy.add(name)
            return name

    def digest_or_none(self, name: str) -> str | None:
        return digest(self.binary(name)) if self.binary(name).exists() else None

    def binary(self, name: str) -> pathlib.Path:
        return self.binaries / f"{name}_fuzz"

    def run_slice(self, name: str) -> None:
        corpus, found = self.folder / "corpus" / name, self.folder / "found" / name
        corpus.mkdir(parents=True, exist_ok=True)
        found.mkdir(parents=True, exist_ok=True)
        # A copy, so that a build may go on meanwhile.
        ran = self.folder / f"{name}_fuzz"
        if not ran.exists() or digest(ran) != digest(self.binary(name)):
            shutil.copy2(self.binary(name), ran)
        environment = os.environ | {"LLVM_PROFILE_FILE": os.devnull, "ASAN_OPTIONS": "detect_stack_use_after_return=1",
                                    "ASAN_SYMBOLIZER_PATH": "/usr/bin/llvm-symbolizer-14"}
        command = [ran, *LIMITS, f"-max_total_time={self.slice_s}", f"-artifact_prefix={found}/", corpus, ROOT / "fuzz/corpus" / name]
        with (self.folder / f"{name}.log").open("w+", errors="replace") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, preexec_fn=be_idle)
            self.running[name] = process
            if self.is_ending:
                self.end()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            del self.running[name]
            log.seek(0)
            said = log.read()
            runs = re.search(r"number_of_executed_units: *(\d+)", said)
        with self.lock:
            row = self.row(name)
            row["cpu_s"] += used.ru_utime + used.ru_stime
            row["runs"] += int(runs[1]) if runs else 0
            row["binary"] = digest(ran)
            row["failed"] = process.returncode not in (0, INTERRUPTED, -signal.SIGINT, -signal.SIGUSR1) or "ERROR: " in said
            self.busy.discard(name)
            self.path.write_text(json.dumps(self.account, indent=1) + "\n")
            print(f"{time.strftime('%H:%M:%S')} {self.line(name)}", flush=True)

    def line(self, name: str) -> str:
        seconds, runs = self.total(name)
        return f"{name}: {seconds:.0f} of {self.seconds:.0f} s of processor, {runs} runs" + (", FAILED" if self.row(name)["failed"] else "")

    def work(self) -> None:
        while (name := self.take()) is not None:
            try:
                self.run_slice(name)
            except OSError as error:  # a build that writes the binary
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                with self.lock:
                    self.busy.discard(name)
                time.sleep(10)

    def end(self, *_) -> None:
        self.is_ending = True
        for process in list(self.running.values()):
            with contextlib.suppress(ProcessLookupError):
                # Between two inputs.  send_signal() might take its status, which wait4() waits for.
                os.kill(process.pid, signal.SIGUSR1)

    def has_done(self, name: str) -> bool:
        return self.total(name)[0] >= self.seconds and not self.row(name)["failed"]


def be_idle() -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="targets; all of them by default")
    parser.add_argument("--seconds", type=float, default=3600, help="of processor, of each target (3600)")
    parser.add_argument("--slice", type=int, default=300, help="seconds of the clock that a target runs before another is taken (300)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at a time")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build/asan/fuzz")
    parser.add_argument("--state", type=pathlib.Path, default=ROOT / "build/fuzz_campaign")
    parser.add_argument("--report", action="store_true", help="only says what has been done")
    parser.add_argument("--record", action="store_true", help="only adds what has been done to fuzz/campaign.json")
    args = parser.parse_args()
    known = sorted(path.name.removesuffix("_fuzz.cc") for path in (ROOT / "fuzz").glob("*_fuzz.cc"))
    if unknown := set(args.names) - set(known):
        parser.error(f"there is no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if args.seconds <= 0 or args.slice <= 0 or args.jobs <= 0:
        parser.error("--seconds, --slice and --jobs are above 0")
    args.state.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(args.state, args.binaries, args.names or known, args.seconds, args.slice)
    if args.record:
        campaign.write_record()
    elif not args.report:
        if missing := [name for name in campaign.names if not campaign.binary(name).exists()]:
            parser.error(f"{campaign.binary(missing[0])} is not built: cmake --preset asan && cmake --build --preset asan --target fuzz/all")
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, campaign.end)
        workers = [threading.Thread(target=campaign.work, daemon=True) for _ in range(args.jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    for name in campaign.names:
        print(campaign.line(name))
    return 0 if all(campaign.has_done(name) for name in campaign.names) else 1


if __name__ == "__main__":
    sys.exit(main())
