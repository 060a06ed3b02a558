"""A client that speaks: it says a clip to a server, one time after another, and notes how long behind its last sample
the words come.  Whole recordings are posted, each when the last one would have been said."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import time

import live

# Recordings that are posted whole: where, and what the words are called in the answer.
WHOLE = {"transcriptions": ("/v1/audio/transcriptions", "text"), "whisper.cpp": ("/inference", "text"),
         "batch": ("/v2/decode/batch/whisper-1", "transcription")}
LIVE = {"realtime": live.realtime_words, "wyoming": live.wyoming_words, "decode": live.decode_words}


@dataclasses.dataclass(frozen=True)
class Ear:
    """Who hears which clip.  `protocol`: a name of WHOLE or LIVE."""
    protocol: str
    host: str
    port: int
    clip: live.Clip


@dataclasses.dataclass
class Said:
    """Of one clip.  Times in seconds."""
    protocol: str
    status: int = 0        # 200, an HTTP status, or 0: no answer, or an error; 503: refused
    answer: float = 0.0    # from the last sample to the words; of a recording that is posted whole, from its request
    words: str = ""
    fault: str = ""
    wait: float = 0.0      # of a refusal: after how long the server has it ask again; 0: it does not say


def form(clip: live.Clip) -> tuple[bytes, str]:
    """The clip's file in multipart/form-data, and its type."""
    boundary = "clip-of-the-load-generator"
    with open(clip.path, "rb") as file:
        sound = file.read()
    fields = b"".join(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
                      for name, value in (("model", "whisper-1"), ("response_format", "json"), ("temperature", "0.0")))
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="clip.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    return fields + head.encode() + sound + f"\r\n--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


async def _post(ear: Ear, said: Said) -> None:
    path, words = WHOLE[ear.protocol]
    if ear.protocol == "batch":
        body, kind = live.decode_samples(ear.clip), "application/octet-stream"
    else:
        body, kind = form(ear.clip)
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection(ear.host, ear.port)
    try:
        writer.write(f"POST {path} HTTP/1.1\r\nHost: {ear.host}:{ear.port}\r\nContent-Type: {kind}\r\n"
                     f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode())
        writer.write(body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        answer = await reader.read()
    finally:
        writer.close()
    said.answer = time.monotonic() - begun
    status = int(head.split(" ", 2)[1])
    if status == 200:
        said.words = json.loads(answer)[words].strip()
    else:
        told = re.search(r"\r\nretry-after: *(\d+)\r\n", head, re.IGNORECASE)
        said.fault, said.wait = answer[:300].decode(errors="replace"), float(told[1]) if told else 0.0
    said.status = status


async def say(ear: Ear) -> Said:
    """One clip, to its words.  What goes wrong leaves a status that is not 200, and the fault."""
    said = Said(ear.protocol)
    try:
        if ear.protocol in WHOLE:
            await _post(ear, said)
        else:
            words, last = await LIVE[ear.protocol](ear.host, ear.port, ear.clip)
            said.answer, said.words, said.status = time.monotonic() - last, words.strip(), 200
    except live.Refused as refused:
        said.status, said.fault, said.wait = 503, str(refused), refused.wait_s
    except (OSError, ValueError, KeyError, IndexError, asyncio.IncompleteReadError) as error:
        said.status, said.fault = 0, str(error)
    return said


async def _one_after_another(ears: list[Ear], first: int, offset: float, until: float, all_said: list[Said]) -> None:
    await asyncio.sleep(offset)
    begun, count = time.monotonic(), 0
    while count == 0 or begun < until:  # one at least, however late it begins
        ear = ears[(first + count) % len(ears)]
        said = await say(ear)
        all_said.append(said)
        pause = 0.0 if said.status == 200 else said.wait or 0.1
        await asyncio.sleep(max(pause, begun + ear.clip.seconds - time.monotonic()))
        begun, count = time.monotonic(), count + 1


async def speakers(ears: list[Ear], streams: int, seconds: float) -> list[Said]:
    """So many at once, each saying one clip after another for so long, to the ears in turn; they begin spread over a
    clip's length, and at different ears."""
    all_said: list[Said] = []
    length = ears[0].clip.seconds
    until = time.monotonic() + length + seconds
    await asyncio.gather(*(_one_after_another(ears, i, length * i / streams, until, all_said) for i in range(streams)))
    return all_said
