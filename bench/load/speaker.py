"""A client that speaks: it says a clip to a server, one time after another, and notes how long behind its last sample
the words come.  Whole recordings are posted, each when the last one would have been said."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time

import live

PROTOCOLS = ("transcriptions", "realtime", "wyoming", "whisper.cpp")  # that hear
WHOLE = {"transcriptions": "/v1/audio/transcriptions", "whisper.cpp": "/inference"}  # by a form


@dataclasses.dataclass
class Said:
    """Of one clip.  Times in seconds."""
    status: int = 0        # 200, an HTTP status, or 0: no answer, or an error
    answer: float = 0.0    # from the last sample to the words; of a recording that is posted whole, from its request
    words: str = ""
    fault: str = ""


def form(clip: live.Clip) -> tuple[bytes, str]:
    """The clip's file in multipart/form-data, and its type."""
    boundary = "clip-of-the-load-generator"
    with open(clip.path, "rb") as file:
        sound = file.read()
    fields = b"".join(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
                      for name, value in (("model", "whisper-1"), ("response_format", "json"), ("temperature", "0.0")))
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="clip.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    return fields + head.encode() + sound + f"\r\n--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


async def _post(host: str, port: int, path: str, clip: live.Clip, said: Said) -> None:
    body, kind = form(clip)
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode())
        writer.write(body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        answer = await reader.read()
    finally:
        writer.close()
    said.answer = time.monotonic() - begun
    status = int(head.split(" ", 2)[1])
    if status == 200:
        said.words = json.loads(answer)["text"].strip()
    else:
        said.fault = answer[:300].decode(errors="replace")
    said.status = status


async def say(protocol: str, host: str, port: int, clip: live.Clip) -> Said:
    """One clip, to its words.  What goes wrong leaves a status that is not 200, and the fault."""
    said = Said()
    try:
        if protocol in WHOLE:
            await _post(host, port, WHOLE[protocol], clip, said)
        else:
            hear = live.realtime_words if protocol == "realtime" else live.wyoming_words
            words, last = await hear(host, port, clip)
            said.answer, said.words, said.status = time.monotonic() - last, words.strip(), 200
    except (OSError, ValueError, KeyError, IndexError, asyncio.IncompleteReadError) as error:
        said.status, said.fault = 0, str(error)
    return said


async def _one_after_another(protocol: str, host: str, port: int, clip: live.Clip, offset: float, until: float, all_said: list[Said]) -> None:
    await asyncio.sleep(offset)
    begun, is_first = time.monotonic(), True
    while is_first or begun < until:  # one at least, however late it begins
        said = await say(protocol, host, port, clip)
        all_said.append(said)
        await asyncio.sleep(max(0.0 if said.status == 200 else 0.1, begun + clip.seconds - time.monotonic()))
        begun, is_first = time.monotonic(), False


async def speakers(protocol: str, host: str, port: int, clip: live.Clip, streams: int, seconds: float) -> list[Said]:
    """So many at once, each saying the clip again and again for so long; they begin spread over its length."""
    all_said: list[Said] = []
    until = time.monotonic() + clip.seconds + seconds
    await asyncio.gather(*(_one_after_another(protocol, host, port, clip, clip.seconds * i / streams, until, all_said) for i in range(streams)))
    return all_said
