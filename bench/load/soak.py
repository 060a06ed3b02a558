#!/usr/bin/env python3
"""A server under load for a long time: memory, descriptors and slots are sampled, and must not grow.

  soak.py --minutes 20 --model FOLDER --voice FILE [--streams 4] [--csv soak.csv]
  soak.py --seconds 30 ...
  soak.py ... --clip FILE.wav --recognition-model MODEL [--speakers 4] [--compare]
  soak.py ... --most-late 0.005 --most-gap-ms 90
  soak.py ... --live-load 0                       without admission by load

So many listeners hear one text after another, beside clients that leave in the midst of an answer or of a message, that
send what is no request, that connect without a word, and --stalled ones that ask for a long text and do not read it until
the server cuts them (its stalled_reader_s, 30 s).  With --clip so many speakers say it as well, over realtime,
Wyoming, as a recording, and as a stream and a recording of /v2/decode in turn.  Behind a third of the time, which may
fill caches and pools, the process may grow by `--allow-mb` and by no descriptor; at the end all slots are free.  Each
text, under the load and behind it, has the samples that the same seed had before, and each clip the words that the same
protocol had heard.  Fails otherwise, or when a listener or speaker is failed.

Who is refused for want of room, with 503 and the time to ask again, is not failed: it asks again then, and is counted
apart.  Late frames and gaps are those of the texts that were admitted.  --compare has the speakers alone first, and
prints how long behind a clip's end their words came then.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import dataclasses
import http.client
import itertools
import random
import socket
import sys
import time

import listener
import live
import speaker
from load import ROOT, TEXT, Syrinx, percentile, syrinx_arguments

SEEDS = 4
# What hears, and at how many Hz; 0: any.
EARS = {"realtime": 24000, "wyoming": 0, "transcriptions": 0, "decode": live.DECODE_HZ, "batch": live.DECODE_HZ}
RUDE = [b"G", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01", b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 99\r\n\r\n{",
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v2/decode/batch/whisper-1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n"
        b"Content-Length: 99999\r\n\r\n\0\0"]
STREAMS = ["/v2/decode/stream/whisper-1", "/v1/realtime?intent=transcription"]
UPGRADE = ("GET {} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
LONG_TEXT = TEXT * (4000 // len(TEXT))  # more sound than sockets and queues hold
HALF_A_MESSAGE = b"\x82\xfe\x00\xc8\0\0\0\0\1\2\3"  # it says that 200 bytes come


@dataclasses.dataclass
class Alone:
    """What was heard while nobody else asked."""
    sounds: dict[int, str]  # by seed, the samples' digest
    words: dict[str, str]   # by protocol


@dataclasses.dataclass
class Load:
    samples: list[dict]
    heard: list[listener.Heard] = dataclasses.field(default_factory=list)
    said: list[speaker.Said] = dataclasses.field(default_factory=list)
    stalled: list[dict] = dataclasses.field(default_factory=list)  # what the log says of each


async def alone(server: Syrinx, ears: list[speaker.Ear]) -> Alone:
    found = Alone({}, {})
    for seed in range(SEEDS):
        heard = await listener.listen(server.target, TEXT, f"alone.{seed}", seed)
        if heard.status != 200 or heard.sound == 0:
            raise SystemExit(f"a text is not spoken: status {heard.status}")
        found.sounds[seed] = heard.digest
    for ear in ears:
        said = await speaker.say(ear)
        if said.status != 200 or not said.words:
            raise SystemExit(f"the clip is not heard by {ear.protocol}: {said.status} {said.fault or 'no words'}")
        found.words[ear.protocol] = said.words
    return found


def sample(server: Syrinx, begun: float) -> dict:
    connection = http.client.HTTPConnection("127.0.0.1", server.port_of("openai"), timeout=60)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    figures = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        figures[name] = value
    return {"second": round(time.monotonic() - begun, 1), "rss_mb": float(figures["process_resident_memory_bytes"]) / 1e6,
            "descriptors": float(figures["process_open_fds"]),
            "live_load": sum(float(value) for name, value in figures.items() if name.startswith("syrinx_live_load{")),
            "busy": sum(float(value) for name, value in figures.items() if name.startswith("syrinx_slots{") and 'state="busy"' in name)}


async def be_rude(server: Syrinx, until: float, dice: random.Random) -> None:
    """Clients that leave: in the midst of an answer, of a request, or of nothing."""
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.target.port)
            kind = dice.random()
            if kind < 0.4:
                writer.write(server.target.request(TEXT, "leaver", dice.randrange(1000))[0])
                await reader.read(dice.choice([1, 5000, 50000]))
            elif kind < 0.6:
                writer.write(UPGRADE.format(dice.choice(STREAMS)).encode())
                if b" 101 " in await reader.readuntil(b"\r\n\r\n"):  # else it is refused
                    writer.write(HALF_A_MESSAGE)
            else:
                writer.write(dice.choice([b"", *RUDE]))
            if dice.random() < 0.5:
                writer.transport.abort()
            else:
                writer.close()
        except (OSError, asyncio.IncompleteReadError):
            pass
        await asyncio.sleep(0.05)


async def stall(server: Syrinx, number: int, until: float, found: list[dict]) -> None:
    """Reads the first bytes of an answer and no more until the server has given it up; then another one."""
    loop = asyncio.get_running_loop()
    for count in itertools.count():
        name = f"stalled.{number}.{count}"
        with socket.socket() as connection, contextlib.suppress(OSError, asyncio.TimeoutError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setblocking(False)
            await loop.sock_connect(connection, ("127.0.0.1", server.target.port))
            await loop.sock_sendall(connection, server.target.request(LONG_TEXT, name, 0)[0])
            begins = await asyncio.wait_for(loop.sock_recv(connection, 12), max(1.0, until - time.monotonic()))
            if begins.endswith(b" 503"):
                await asyncio.sleep(1)
                continue
            while name not in server.log:
                if time.monotonic() >= until:
                    return
                await asyncio.sleep(0.1)
            found.append(server.log[name])
        if time.monotonic() >= until:
            return
        await asyncio.sleep(0.1)


async def keep_sampling(server: Syrinx, begun: float, until: float, every: float, samples: list[dict]) -> None:
    while time.monotonic() < until or len(samples) < 8:
        samples.append(await asyncio.to_thread(sample, server, begun))
        await asyncio.sleep(every)


async def soak(server: Syrinx, ears: list[speaker.Ear], args: argparse.Namespace) -> Load:
    begun = time.monotonic()
    until, load = begun + args.seconds, Load([])

    async def listen() -> None:
        load.heard = await listener.listeners(server.target, TEXT, args.streams, args.seconds, 0.0, seeds=SEEDS)

    async def speak() -> None:
        if ears:
            load.said = await speaker.speakers(ears, args.speakers, args.seconds)

    await asyncio.gather(listen(), speak(), be_rude(server, until, random.Random(1)),
                         *(stall(server, number, until, load.stalled) for number in range(args.stalled)),
                         keep_sampling(server, begun, until, min(5.0, args.seconds / 20), load.samples))
    return load


def ends_idle(server: Syrinx, descriptors: float) -> dict:
    """Once everybody has gone, within a minute."""
    end = time.monotonic() + 60
    while True:
        last = sample(server, 0.0)
        if last["busy"] == 0 and last["descriptors"] <= descriptors or time.monotonic() > end:
            return last
        time.sleep(0.1)


def print_told(said: list[speaker.Said], phase: str) -> None:
    """How long behind its clip's end, or its request, the words came, by protocol."""
    for protocol in EARS:
        answers = [1e3 * s.answer for s in said if s.protocol == protocol and s.status == 200]
        refused = sum(s.protocol == protocol and s.status == 503 for s in said)
        if answers or refused:
            behind = "the request" if protocol in speaker.WHOLE else "the clip's end"
            print(f"  {phase}, {protocol}: {len(answers)} clips, {refused} refused; words behind {behind} "
                  f"p50 {percentile(answers or [0.0], 50):.0f} ms, p95 {percentile(answers or [0.0], 95):.0f} ms", flush=True)


def misses_of_bars(args: argparse.Namespace, heard: list[listener.Heard]) -> list[str]:
    """Frames and gaps of the admitted, printed and held against the bars."""
    spoken = [h for h in heard if h.status == 200]
    frames = sum(len(h.gaps) + 1 for h in spoken)
    late = sum(h.misses for h in spoken)
    gap_ms = 1e3 * percentile([gap for h in spoken for gap in h.gaps] or [0.0], 99)
    firsts = [1e3 * h.first for h in spoken] or [0.0]
    share = late / max(1, frames)
    print(f"of {frames} frames of the admitted {late} came late ({100 * share:.2f} %), the worst by "
          f"{1e3 * max((h.late for h in spoken), default=0.0):.0f} ms; gap of frames p99 {gap_ms:.1f} ms; first sound "
          f"p50 {percentile(firsts, 50):.0f} ms, p99 {percentile(firsts, 99):.0f} ms")
    found = []
    if share > args.most_late:
        found.append(f"{100 * share:.2f} % of the frames came late, and {100 * args.most_late:g} % may")
    if gap_ms > args.most_gap_ms:
        found.append(f"the gap of frames has p99 {gap_ms:.1f} ms, and may have {args.most_gap_ms:g}")
    return found


def differences(load: Load, before: Alone, behind: Alone) -> list[str]:
    """Sounds and words that are not those of before."""
    found = []
    spoken = [h for h in load.heard if h.status == 200]
    if others := sum(h.digest != before.sounds[h.seed] for h in spoken):
        found.append(f"{others} of {len(spoken)} texts have other samples under load than before")
    for protocol, words in before.words.items():
        told = [s for s in load.said if s.protocol == protocol and s.status == 200]
        if others := [s.words for s in told if s.words != words]:
            found.append(f"{len(others)} of {len(told)} clips have other words over {protocol}: "
                         f"'{others[0]}', not '{words}'")
    if behind.sounds != before.sounds:
        found.append("a text has other samples than before")
    if behind.words != before.words:
        found.append("a clip has other words than before")
    return found


def faults(args: argparse.Namespace, load: Load, before: dict, after: dict) -> list[str]:
    samples, heard = load.samples, load.heard
    third = samples[len(samples) // 3:]
    quarter = max(1, len(third) // 4)
    grown = max(s["rss_mb"] for s in third[-quarter:]) - max(s["rss_mb"] for s in third[:quarter])
    refused = [h for h in heard if h.status == 503] + [s for s in load.said if s.status == 503]
    untold = [r for r in refused if r.wait < 1]
    failed = [h for h in heard if h.status not in (200, 503) or h.status == 200 and h.sound == 0]
    unheard = [s for s in load.said if s.status not in (200, 503)]
    unread = [s["id"] for s in load.stalled if s.get("stopped") != "cancelled"]
    found = misses_of_bars(args, heard)
    waits = [r.wait for r in refused] or [0.0]
    print(f"{len(refused)} were refused, {len(refused) - len(untold)} of them told when to ask again (after "
          f"{percentile(waits, 50):.0f} s, p95 {percentile(waits, 95):.0f} s)")
    print_told(load.said, "beside listeners")
    if untold:
        found.append(f"{len(untold)} of {len(refused)} refusals do not say when to ask again")
    if len(samples) < 8:
        found.append(f"{len(samples)} samples were taken; eight tell something")
    if all(h.status != 200 for h in heard):
        found.append("no text was spoken")
    if failed:
        found.append(f"{len(failed)} of {len(heard)} texts were not spoken")
    if unheard:
        kinds = dict.fromkeys(f"{s.protocol}: {s.status} {s.fault}" for s in unheard)
        found.append(f"{len(unheard)} of {len(load.said)} clips were not heard: {'; '.join(kinds)}")
    if unread:
        found.append(f"{len(unread)} of {len(load.stalled)} texts that nobody read were not cut")
    if grown > args.allow_mb:
        found.append(f"the memory has grown by {grown:.1f} MB, and may by {args.allow_mb:g}")
    if after["descriptors"] > before["descriptors"]:
        found.append(f"{after['descriptors']:.0f} descriptors are open, {before['descriptors']:.0f} were before")
    if after["busy"] > 0:
        found.append(f"{after['busy']:.0f} slots are busy though nobody asks")
    spoken = [h for h in heard if h.status == 200]
    print(f"{len(spoken)} texts, {sum(h.sound for h in spoken):.0f} s of sound; live load "
          f"{max(s['live_load'] for s in samples):.2f} at most; {len(load.said)} clips; {len(load.stalled)} stalled readers were cut; memory {samples[0]['rss_mb']:.1f} MB at first, "
          f"{third[0]['rss_mb']:.1f} after a third, {samples[-1]['rss_mb']:.1f} at the end, grown {grown:+.1f}; descriptors {before['descriptors']:.0f} before, "
          f"{max(s['descriptors'] for s in samples):.0f} at most, {after['descriptors']:.0f} after; slots busy at most {max(s['busy'] for s in samples):.0f}, {after['busy']:.0f} after")
    return found


def server_arguments(args: argparse.Namespace) -> list[str]:
    return [*syrinx_arguments(args), "--recognition-model", args.recognition_model, "--recognition-slots",
            str(args.slots), "--recognition-threads", str(args.threads),
            *(["--live-load", str(args.live_load)] if args.live_load is not None else [])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--syrinx", default=str(ROOT / "build/release/syrinx"))
    parser.add_argument("--model", required=True)
    parser.add_argument("--voice")
    parser.add_argument("--precision", default="")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--cpus", default="", help="of the server, as taskset writes them")
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--clip", type=live.Clip.read, help="WAV file, 16 bits, one channel")
    parser.add_argument("--recognition-model", default="")
    parser.add_argument("--speakers", type=int, default=4)
    parser.add_argument("--stalled", type=int, default=2, help="clients that do not read what they asked for (2)")
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seconds", type=float, help="in place of minutes")
    parser.add_argument("--allow-mb", type=float, default=8)
    parser.add_argument("--live-load", type=float, help="the server's live_load")
    parser.add_argument("--compare", action="store_true", help="a quarter of the time without listeners first")
    parser.add_argument("--most-late", type=float, default=1.0, help="share of the frames that may come late")
    parser.add_argument("--most-gap-ms", type=float, default=float("inf"), help="p99 of the gaps between frames")
    parser.add_argument("--csv")
    args = parser.parse_args()
    args.seconds = args.seconds or 60 * args.minutes
    if (args.clip is None) != (args.recognition_model == ""):
        parser.error("--clip and --recognition-model go together")
    server = Syrinx(args.syrinx, server_arguments(args), cpus=args.cpus)
    try:
        ears = [speaker.Ear(protocol, "127.0.0.1", server.port_of(protocol), args.clip.at(rate_hz or args.clip.rate_hz))
                for protocol, rate_hz in EARS.items()] if args.clip else []
        first, before = asyncio.run(alone(server, ears)), sample(server, 0.0)
        if args.compare and ears:
            print_told(asyncio.run(speaker.speakers(ears, args.speakers, args.seconds / 4)), "without listeners")
        load = asyncio.run(soak(server, ears, args))
        after = ends_idle(server, before["descriptors"])
        found = faults(args, load, before, after) + differences(load, first, asyncio.run(alone(server, ears)))
    finally:
        server.close()
    if args.csv:
        with open(args.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, list(load.samples[0]))
            writer.writeheader()
            writer.writerows(load.samples)
    for fault in found:
        print("error: " + fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
