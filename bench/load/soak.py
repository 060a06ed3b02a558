#!/usr/bin/env python3
"""A server under load for a long time: memory, descriptors and slots are sampled, and must not grow.

  soak.py --minutes 20 --model FOLDER --voice FILE [--streams 4] [--csv soak.csv]
  soak.py --seconds 30 ...

So many listeners hear one text after another, beside clients that leave in the midst of an answer, that send what is no
request, and that connect without a word.  Behind a third of the time, which may fill caches and pools, the process may
grow by `--allow-mb` and by no descriptor; at the end all slots are free, and a text has the samples that it had before
the load.  Fails otherwise, or when a listener is failed.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import http.client
import json
import random
import sys
import time

import listener
from load import ROOT, TEXT, Syrinx, syrinx_arguments

RUDE = [b"G", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01", b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 99\r\n\r\n{",
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"]


def get(server: Syrinx, path: str, body: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.target.port, timeout=60)
    try:
        connection.request("GET" if body is None else "POST", path, body)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def spoken(server: Syrinx) -> bytes:
    status, sound = get(server, "/v1/audio/speech", json.dumps({"input": TEXT, "response_format": "pcm"}))
    if status != 200:
        raise SystemExit(f"a text is answered with {status}: {sound[:300]!r}")
    return sound


def sample(server: Syrinx, begun: float) -> dict:
    figures = {}
    for line in get(server, "/metrics")[1].decode().splitlines():
        name, _, value = line.rpartition(" ")
        figures[name] = value
    return {"second": round(time.monotonic() - begun, 1), "rss_mb": float(figures["process_resident_memory_bytes"]) / 1e6,
            "descriptors": float(figures["process_open_fds"]),
            "busy": sum(float(value) for name, value in figures.items() if name.startswith("syrinx_slots{") and 'state="busy"' in name)}


async def be_rude(server: Syrinx, until: float, dice: random.Random) -> None:
    """Clients that leave: in the midst of an answer, of a request, or of nothing."""
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.target.port)
            if dice.random() < 0.5:
                writer.write(server.target.request(TEXT, "leaver", dice.randrange(1000))[0])
                await reader.read(dice.choice([1, 5000, 50000]))
            else:
                writer.write(dice.choice([b"", *RUDE]))
            if dice.random() < 0.5:
                writer.transport.abort()
            else:
                writer.close()
        except OSError:
            pass
        await asyncio.sleep(0.05)


async def keep_sampling(server: Syrinx, begun: float, until: float, every: float, samples: list[dict]) -> None:
    while time.monotonic() < until or len(samples) < 8:
        samples.append(await asyncio.to_thread(sample, server, begun))
        await asyncio.sleep(every)


async def soak(server: Syrinx, args: argparse.Namespace, samples: list[dict]) -> list[listener.Heard]:
    begun = time.monotonic()
    until = begun + args.seconds
    heard, *_ = await asyncio.gather(listener.listeners(server.target, TEXT, args.streams, args.seconds, 0.0),
                                     be_rude(server, until, random.Random(1)),
                                     keep_sampling(server, begun, until, min(5.0, args.seconds / 20), samples))
    return heard


def ends_idle(server: Syrinx, descriptors: float) -> dict:
    """Once everybody has gone, within a minute."""
    end = time.monotonic() + 60
    while True:
        last = sample(server, 0.0)
        if last["busy"] == 0 and last["descriptors"] <= descriptors or time.monotonic() > end:
            return last
        time.sleep(0.1)


def faults(args: argparse.Namespace, samples: list[dict], heard: list[listener.Heard], before: dict, after: dict, same: bool) -> list[str]:
    third = samples[len(samples) // 3:]
    quarter = max(1, len(third) // 4)
    grown = max(s["rss_mb"] for s in third[-quarter:]) - max(s["rss_mb"] for s in third[:quarter])
    failed = [h for h in heard if h.status != 200 or h.sound == 0]
    found = []
    if len(samples) < 8:
        found.append(f"{len(samples)} samples were taken; eight tell something")
    if not heard or failed:
        found.append(f"{len(failed)} of {len(heard)} texts were not spoken")
    if grown > args.allow_mb:
        found.append(f"the memory has grown by {grown:.1f} MB, and may by {args.allow_mb:g}")
    if after["descriptors"] > before["descriptors"]:
        found.append(f"{after['descriptors']:.0f} descriptors are open, {before['descriptors']:.0f} were before")
    if after["busy"] > 0:
        found.append(f"{after['busy']:.0f} slots are busy though nobody asks")
    if not same:
        found.append("a text has other samples than before")
    print(f"{len(heard)} texts, {sum(h.sound for h in heard):.0f} s of sound, {sum(h.misses for h in heard)} misses; memory {samples[0]['rss_mb']:.1f} MB at first, "
          f"{third[0]['rss_mb']:.1f} after a third, {samples[-1]['rss_mb']:.1f} at the end, grown {grown:+.1f}; descriptors {before['descriptors']:.0f} before, "
          f"{max(s['descriptors'] for s in samples):.0f} at most, {after['descriptors']:.0f} after; slots busy at most {max(s['busy'] for s in samples):.0f}, {after['busy']:.0f} after")
    return found


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
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seconds", type=float, help="in place of minutes")
    parser.add_argument("--allow-mb", type=float, default=8)
    parser.add_argument("--csv")
    args = parser.parse_args()
    args.seconds = args.seconds or 60 * args.minutes
    server = Syrinx(args.syrinx, syrinx_arguments(args), cpus=args.cpus)
    try:
        alone, before, samples = spoken(server), sample(server, 0.0), []
        heard = asyncio.run(soak(server, args, samples))
        after = ends_idle(server, before["descriptors"])
        found = faults(args, samples, heard, before, after, spoken(server) == alone)
    finally:
        server.close()
    if args.csv:
        with open(args.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, list(samples[0]))
            writer.writeheader()
            writer.writerows(samples)
    for fault in found:
        print("error: " + fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
