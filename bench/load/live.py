"""Clients of the protocols that keep a connection: OpenAI's realtime sessions, streams of /v2/decode (both by the
package `websockets`) and Wyoming.  Each speaks a text, handing on the sound as it arrives, or says a clip at the pace
of speech and gives back its words."""

from __future__ import annotations

import array
import asyncio
import base64
import contextlib
import dataclasses
import json
import re
import time
import wave
from collections.abc import AsyncIterator, Callable

PIECE_S = 0.1  # of a microphone
DECODE_HZ = 16000  # of /v2/decode, which has no field for it
DECODE_END = b"\x00"


@dataclasses.dataclass(frozen=True)
class Clip:
    """A recording of 16 bits, one channel."""
    path: str
    rate_hz: int
    pcm: bytes

    @staticmethod
    def read(path: str) -> Clip:
        with wave.open(path) as file:
            if (file.getnchannels(), file.getsampwidth()) != (1, 2):
                raise SystemExit(f"{path} is no WAV file of 16 bits and one channel")
            return Clip(path, file.getframerate(), file.readframes(file.getnframes()))

    @property
    def seconds(self) -> float:
        return len(self.pcm) / 2 / self.rate_hz

    def at(self, rate_hz: int) -> Clip:
        """By straight lines between samples: good enough for who compares words with words of the same sound."""
        if rate_hz == self.rate_hz:
            return self
        before = array.array("h", self.pcm)
        after = array.array("h")
        for i in range(len(before) * rate_hz // self.rate_hz):
            at, rest = divmod(i * self.rate_hz, rate_hz)
            following = before[min(at + 1, len(before) - 1)]
            after.append(before[at] + (following - before[at]) * rest // rate_hz)
        return Clip(self.path, rate_hz, after.tobytes())

    async def pieces(self) -> AsyncIterator[bytes]:
        """As a microphone gives them: each when its last sample has been said."""
        begun, step = time.monotonic(), 2 * int(PIECE_S * self.rate_hz)
        for at in range(0, len(self.pcm), step):
            piece = self.pcm[at:at + step]
            await asyncio.sleep(begun + (at + len(piece)) / 2 / self.rate_hz - time.monotonic())
            yield piece


class Broken(ValueError):
    """The server's own error, or an answer that is none."""


class Refused(Broken):
    """There is no room for the stream, and the server says when to ask again."""

    def __init__(self, message: str, wait_s: float):
        super().__init__(message)
        self.wait_s = wait_s


def broken(message: str) -> Broken:
    """An error of a protocol without headers, whose text has the wait."""
    told = re.search(r"leave no room for another .* ask again in about (\d+) s", message)
    return Refused(message, float(told[1])) if told else Broken(message)


# ---- realtime --------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _socket(host: str, port: int, path: str):
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus, WebSocketException
    try:
        # Whoever speaks reads later: what waits for him must not keep the answers to pings from being read.
        async with connect(f"ws://{host}:{port}{path}", compression=None, max_size=None, max_queue=None,
                           open_timeout=60) as socket:
            yield socket
    except InvalidStatus as error:
        wait = error.response.headers.get("Retry-After", "")
        if error.response.status_code == 503 and wait.isdecimal():
            raise Refused(str(error), float(wait)) from error
        raise Broken(str(error)) from error
    except WebSocketException as error:
        raise Broken(str(error)) from error


async def _say(socket, kind: str, **fields) -> None:
    await socket.send(json.dumps({"type": kind, **fields}))


async def _until(socket, kind: str, told: Callable[[dict], None] = lambda _: None) -> dict:
    async for message in socket:
        event = json.loads(message)
        if event["type"] == "error":
            raise broken(event["error"]["message"])
        told(event)
        if event["type"] == kind:
            return event
    raise Broken("the session has ended")


async def realtime_speech(host: str, port: int, text: str, seed: int, begin: Callable[[], None],
                          take: Callable[[bytes], None]) -> None:
    async with _socket(host, port, "/v1/realtime?model=gpt-realtime") as socket:
        await _until(socket, "session.created")
        begin()
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        await _say(socket, "response.create", response={"input": [item]})

        def told(event: dict) -> None:
            if event["type"] == "response.output_audio.delta":
                take(base64.b64decode(event["delta"]))

        done = await _until(socket, "response.done", told)
        if done["response"]["status"] != "completed":
            raise Broken(str(done["response"].get("status_details")))


async def realtime_words(host: str, port: int, clip: Clip) -> tuple[str, float]:
    """The words, and the moment at which the last sample had been sent."""
    async with _socket(host, port, "/v1/realtime?intent=transcription") as socket:
        await _until(socket, "session.created")
        await _say(socket, "session.update", session={"type": "transcription", "audio": {"input": {
            "format": {"type": "audio/pcm", "rate": clip.rate_hz}, "turn_detection": None}}})
        await _until(socket, "session.updated")
        async for piece in clip.pieces():
            await _say(socket, "input_audio_buffer.append", audio=base64.b64encode(piece).decode())
        said = time.monotonic()
        await _say(socket, "input_audio_buffer.commit")

        def told(event: dict) -> None:
            if event["type"].endswith("transcription.failed"):
                raise broken(event["error"]["message"])

        return (await _until(socket, "conversation.item.input_audio_transcription.completed", told))["transcript"], said


# ---- /v2/decode ------------------------------------------------------------------------------------------------------


def decode_samples(clip: Clip) -> bytes:
    if clip.rate_hz != DECODE_HZ:
        raise Broken(f"{clip.path} has {clip.rate_hz} Hz, /v2/decode takes {DECODE_HZ}")
    return clip.pcm


async def decode_words(host: str, port: int, clip: Clip) -> tuple[str, float]:
    decode_samples(clip)
    async with _socket(host, port, "/v2/decode/stream/whisper-1") as socket:
        async for piece in clip.pieces():
            await socket.send(piece)
        said = time.monotonic()
        await socket.send(DECODE_END)
        async for message in socket:
            answer = json.loads(message)
            if answer["status"] == "ERROR":
                raise Broken(answer["message"])
            if answer["status"] == "COMPLETE":
                return answer["transcription"], said
    raise Broken("the stream has ended")


# ---- Wyoming ---------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _connection(host: str, port: int):
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield reader, writer
    finally:
        writer.close()


def _event(kind: str, data: dict, payload: bytes = b"") -> bytes:
    return json.dumps({"type": kind, "data": data, "payload_length": len(payload)}).encode() + b"\n" + payload


async def _read_event(reader: asyncio.StreamReader) -> tuple[str, dict, bytes]:
    line = await reader.readline()
    if not line:
        raise Broken("the connection has ended")
    head = json.loads(line)
    data = json.loads(await reader.readexactly(head["data_length"])) if head.get("data_length") else head.get("data") or {}
    payload = await reader.readexactly(head.get("payload_length") or 0)
    if head["type"] == "error":
        raise broken(data.get("text", "error"))
    return head["type"], data, payload


async def wyoming_speech(host: str, port: int, text: str, seed: int, begin: Callable[[], None],
                         take: Callable[[bytes], None]) -> None:
    async with _connection(host, port) as (reader, writer):
        begin()
        writer.write(_event("synthesize", {"text": text}))
        kind = ""
        while kind != "audio-stop":
            kind, _, payload = await _read_event(reader)
            take(payload)


async def wyoming_words(host: str, port: int, clip: Clip) -> tuple[str, float]:
    layout = {"rate": clip.rate_hz, "width": 2, "channels": 1}
    async with _connection(host, port) as (reader, writer):
        writer.write(_event("transcribe", {}) + _event("audio-start", layout))
        async for piece in clip.pieces():
            writer.write(_event("audio-chunk", layout, piece))
            await writer.drain()
        said = time.monotonic()
        writer.write(_event("audio-stop", {}))
        kind, data, _ = await _read_event(reader)
        while kind != "transcript":
            kind, data, _ = await _read_event(reader)
        return data["text"], said
