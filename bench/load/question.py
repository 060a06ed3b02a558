#!/usr/bin/env python3
"""Asks a server of /v1/realtime a spoken question again and again, and prints how long the answer's first sound takes from
the end of the speech: in all, without the silence by which the server knows the end, and by stage.

  syrinx serve --chat-model smollm2 --upstream local:
  python3 bench/load/question.py question.wav --runs 30          # needs the package websockets

question.wav: 16 bits, one channel; a silent end of it is not speech.  Each question is a session of its own.
"""
import argparse
import array
import asyncio
import base64
import contextlib
import dataclasses
import json
import pathlib
import statistics
import sys
import time

import live

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "race"))
from machine import machine  # noqa: E402

RATE_HZ = 24000
QUIET = 200  # of 32768


@dataclasses.dataclass
class Asked:
    """Seconds behind the last sample of speech, and what was heard and answered."""
    stages: dict[str, float]
    question: str
    answer: str


def speech_bytes(clip: live.Clip) -> int:
    samples = array.array("h", clip.pcm)
    while samples and abs(samples[-1]) < QUIET:
        samples.pop()
    return 2 * len(samples)


async def ask(host: str, port: int, clip: live.Clip, silence_ms: int) -> Asked:
    end_of_speech = speech_bytes(clip)
    said, asked = asyncio.get_running_loop().create_future(), Asked({}, "", "")

    async def speak(socket) -> None:
        sent, quiet = 0, bytes(2 * int(live.PIECE_S * RATE_HZ))
        async for piece in clip.pieces():
            await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(piece).decode()}))
            sent += len(piece)
            if sent >= end_of_speech and not said.done():
                # The piece was said when it ended; the speech ended within it.
                said.set_result(time.monotonic() - (sent - end_of_speech) / 2 / RATE_HZ)
        while True:  # a microphone goes on
            await asyncio.sleep(live.PIECE_S)
            await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(quiet).decode()}))

    async with live._socket(host, port, "/v1/realtime?model=gpt-realtime") as socket:
        await live._until(socket, "session.created")
        await live._say(socket, "session.update", session={"type": "realtime", "audio": {"input": {
            "format": {"type": "audio/pcm", "rate": RATE_HZ}, "transcription": {"model": "whisper-1"},
            "turn_detection": {"type": "server_vad", "silence_duration_ms": silence_ms, "create_response": True}}}})
        await live._until(socket, "session.updated")
        speaker = asyncio.create_task(speak(socket))

        def told(event: dict) -> None:
            name = {"input_audio_buffer.speech_stopped": "end is noticed", "response.created": "response begins",
                    "conversation.item.input_audio_transcription.completed": "words are known",
                    "response.output_audio_transcript.delta": "first words of the answer",
                    "response.output_audio.delta": "first sound"}.get(event["type"])
            if event["type"] == "response.created" and not said.done():
                raise live.Broken("the server has answered in a pause of the question; give a longer --silence-ms")
            if name and said.done():
                asked.stages.setdefault(name, time.monotonic() - said.result())
            if event["type"].endswith("transcription.completed"):
                asked.question = event["transcript"]

        try:
            done = await asyncio.wait_for(live._until(socket, "response.done", told), 120)
        finally:
            speaker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await speaker
    if done["response"]["status"] != "completed":
        raise live.Broken(str(done["response"]))
    asked.answer = "".join(part.get("transcript", "") for item in done["response"]["output"] for part in item["content"])
    return asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--silence-ms", type=int, default=500, help="of the server's end of speech (default 500)")
    a = parser.parse_args()
    clip = live.Clip.read(a.clip).at(RATE_HZ)
    print(machine())
    all_asked = [asyncio.run(ask(a.host, a.port, clip, a.silence_ms)) for _ in range(a.runs)]
    print(f"heard: {all_asked[0].question!r}; answered: {all_asked[0].answer!r}")
    for name in sorted(all_asked[0].stages, key=all_asked[0].stages.get):
        rows = sorted(each.stages[name] * 1000 for each in all_asked if name in each.stages)
        silent = [row - a.silence_ms for row in rows]
        print(f"{name}, n {len(rows)}: {statistics.median(rows):.0f} ms ({rows[0]:.0f} to {rows[-1]:.0f}) behind the speech; without the closing "
              f"silence of {a.silence_ms} ms {statistics.median(silent):.0f} ({silent[0]:.0f} to {silent[-1]:.0f})")


if __name__ == "__main__":
    main()
