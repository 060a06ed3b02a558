"""A client that listens: it asks a server for a text, plays what it hears as soon as it hears it, and notes when it had
nothing left to play.  Python's standard library alone."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import re
import time
import urllib.parse

import live

RATE_HZ = 24000
BYTES_PER_S = 2 * RATE_HZ        # s16, one channel
FRAME_BYTES = BYTES_PER_S * 80 // 1000
WAV_HEADER = 44
LIVE = {"realtime": live.realtime_speech, "wyoming": live.wyoming_speech}


@dataclasses.dataclass
class Target:
    """A server.  `protocol`: openai (POST /v1/audio/speech, pcm), realtime (WS /v1/realtime), wyoming, or pocket-tts (POST
    /tts, a WAV file)."""
    host: str
    port: int
    protocol: str = "openai"

    def request(self, text: str, name: str, seed: int) -> tuple[bytes, int]:
        """What is sent, and how much of the answer stands in front of the sound."""
        if self.protocol == "pocket-tts":
            return self._post("/tts", "application/x-www-form-urlencoded", urllib.parse.urlencode({"text": text}), name), WAV_HEADER
        body = json.dumps({"input": text, "response_format": "pcm", "seed": seed})
        return self._post("/v1/audio/speech", "application/json", body, name), 0

    def _post(self, path: str, kind: str, body: str, name: str) -> bytes:
        return (f"POST {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: {kind}\r\nX-Request-Id: {name}\r\n"
                f"Content-Length: {len(body.encode())}\r\nConnection: close\r\n\r\n{body}").encode()


@dataclasses.dataclass
class Heard:
    """Of one request.  Times in seconds."""
    name: str                 # the request's id
    seed: int = 0
    status: int = 0           # 0: no answer, or one that was broken off; 503: refused
    first: float = 0.0        # from the request to its first sound
    sound: float = 0.0        # how long it lasts
    misses: int = 0           # how often the listener had nothing left to play, and waited
    late: float = 0.0         # the longest of these waits
    gaps: list[float] = dataclasses.field(default_factory=list)  # between the arrivals of frames of 80 ms
    play_end: float = 0.0     # on the clock, when the last of it will have been played
    digest: str = ""          # of all samples
    wait: float = 0.0         # of a refusal: after how long the server has it ask again; 0: it does not say


class _Player:
    """`silent_from`: until when the text before is played, and this one is expected then; 0 for whoever waits for it."""

    def __init__(self, heard: Heard, asked: float, skip: int, silent_from: float):
        self.heard, self.asked, self.skip, self.silent_from = heard, asked, skip, silent_from
        self.bytes, self.begin, self.last_frame = 0, None, 0.0
        self.samples = hashlib.blake2b(digest_size=16)

    def take(self, data: bytes) -> None:
        now = time.monotonic()
        skipped = min(self.skip, len(data))
        self.skip -= skipped
        count = len(data) - skipped
        if count == 0:
            return
        self.samples.update(data[skipped:])
        if self.begin is None:
            self.begin, self.last_frame = self.silent_from or now, now
            self.heard.first = now - self.asked
        late = now - self.begin - self.bytes / BYTES_PER_S
        if late > 0:
            self.heard.misses += 1
            self.heard.late = max(self.heard.late, late)
            self.begin += late  # it goes on from here
        frames = (self.bytes + count) // FRAME_BYTES - self.bytes // FRAME_BYTES
        for _ in range(frames):
            if self.bytes >= FRAME_BYTES or self.heard.gaps:
                self.heard.gaps.append(now - self.last_frame)
            self.last_frame = now
        self.bytes += count

    def end(self) -> None:
        self.heard.sound = self.bytes / BYTES_PER_S
        self.heard.digest = self.samples.hexdigest()
        self.heard.play_end = (self.begin or time.monotonic()) + self.heard.sound


async def _receive(reader: asyncio.StreamReader, heard: Heard, player: _Player) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status = int(head.split(" ", 2)[1])
    if "transfer-encoding: chunked" not in head.lower():
        await reader.read()
        told = re.search(r"\r\nretry-after: *(\d+)\r\n", head, re.IGNORECASE)
        heard.wait = float(told[1]) if told else 0.0
        heard.status = status if status != 200 else 0  # a stream is what is asked for
        return
    while size := int((await reader.readline()).split(b";")[0], 16):
        data = await reader.readexactly(size)
        await reader.readexactly(2)
        player.take(data)
    heard.status = status


async def _listen_live(target: Target, text: str, name: str, seed: int, silent_from: float) -> Heard:
    heard = Heard(name, seed)
    player = _Player(heard, time.monotonic(), 0, silent_from)

    def begin() -> None:
        player.asked = time.monotonic()

    try:
        await LIVE[target.protocol](target.host, target.port, text, seed, begin, player.take)
        heard.status = 200
    except live.Refused as refused:
        heard.status, heard.wait = 503, refused.wait_s
    except (OSError, ValueError, KeyError, asyncio.IncompleteReadError):
        pass
    player.end()
    return heard


async def listen(target: Target, text: str, name: str, seed: int, silent_from: float = 0.0) -> Heard:
    """One request, to its end.  What goes wrong with the connection leaves status 0."""
    if target.protocol in LIVE:
        return await _listen_live(target, text, name, seed, silent_from)
    heard = Heard(name, seed)
    request, skip = target.request(text, name, seed)
    player = _Player(heard, time.monotonic(), skip, silent_from)
    try:
        reader, writer = await asyncio.open_connection(target.host, target.port)
        try:
            writer.write(request)
            await _receive(reader, heard, player)
        finally:
            writer.close()
    except (OSError, ValueError, IndexError, asyncio.IncompleteReadError):
        heard.status = 0
    player.end()
    return heard


async def _one_after_another(target: Target, text: str, who: str, offset: float, until: float, ahead: float, seeds: int,
                             all_heard: list[Heard]) -> None:
    await asyncio.sleep(offset)
    count, silent_from = 0, 0.0
    while count == 0 or time.monotonic() < until:  # one at least, however late it begins
        heard = await listen(target, text, f"{who}.{count}", count % seeds if seeds else count, silent_from)
        all_heard.append(heard)
        count += 1
        silent_from = heard.play_end if ahead > 0 and heard.status == 200 else 0.0
        pause = 0.0 if heard.status == 200 else heard.wait or 0.1
        await asyncio.sleep(max(pause, heard.play_end - ahead - time.monotonic()))


async def listeners(target: Target, text: str, streams: int, seconds: float, period: float, ahead: float = 0.0,
                    seeds: int = 0) -> list[Heard]:
    """So many at once, each hearing one text after another for so long; they begin spread over `period`, the length of
    a text, since in step they would all want their first sounds at the same moments.  Who asks `ahead` seconds before
    the last text has been played wants the next one at its end, and silence between them is a miss.  Each text of a
    listener has the next of so many `seeds`, in turn; 0: its own."""
    all_heard: list[Heard] = []
    run, until = f"{time.time_ns():x}", time.monotonic() + period + seconds
    await asyncio.gather(*(
        _one_after_another(target, text, f"{run}.{i}", period * i / streams, until, ahead, seeds, all_heard)
        for i in range(streams)))
    return all_heard
