#!/usr/bin/env python3
"""What openai-whisper's transcribe() makes of drawn sounds with the tiny checkpoint, whose window is 1 s.

  python3 tools/reference/whisper_tiny.py tests/data/whisper
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib

import numpy as np
import torch
import whisper
import whisper.audio
import whisper.decoding
import whisper.model
import whisper.timing
import whisper_openai
import whisper_small
from whisper_small import Draws

RATE = 16000


def sound(seed: int, samples: int) -> np.ndarray:
    """Noise whose loudness changes every 1,600 samples."""
    draws = Draws(seed)
    loudness = draws.floats(samples // 1600 + 1)
    return draws.floats(samples, -0.5, 0.5) * loudness[np.arange(samples) // 1600]


def shorten(model: whisper.model.Whisper) -> None:
    """Windows of 1 s in place of 30 s."""
    frames = 2 * model.dims.n_audio_ctx
    for module in (whisper.audio, whisper_small.transcribe_module):
        module.N_FRAMES = frames
    whisper.decoding.CHUNK_LENGTH = frames // 100
    kept = whisper.audio.pad_or_trim
    whisper_small.transcribe_module.N_SAMPLES = frames * 160
    whisper_small.transcribe_module.pad_or_trim = lambda array, length=frames, *, axis=-1: kept(array, length, axis=axis)


class TokenTimes:
    """The maker's alignment of each token on its own, put into the words that add_word_timestamps() makes of it."""

    def __init__(self):
        self.find, self.add = whisper.timing.find_alignment, whisper.timing.add_word_timestamps
        whisper.timing.find_alignment = self.find_alignment
        whisper_small.transcribe_module.add_word_timestamps = self.add_word_timestamps

    def find_alignment(self, model, tokenizer, text_tokens, *args, **options):
        split = tokenizer.split_to_word_tokens
        object.__setattr__(tokenizer, "split_to_word_tokens", lambda ids: (["x"] * len(ids), [[i] for i in ids]))
        self.tokens = self.find(model, tokenizer, text_tokens, *args, **options)
        object.__setattr__(tokenizer, "split_to_word_tokens", split)
        self.words = self.find(model, tokenizer, text_tokens, *args, **options)
        return self.words

    def add_word_timestamps(self, *, segments, **options):
        self.words = []
        self.add(segments=segments, **options)
        told, at = [word for segment in segments for word in segment.get("words", [])], 0
        for timing, word in zip([w for w in self.words if w.word], told):
            assert timing.word == word["word"]
            times = self.tokens[at:at + len(timing.tokens)]
            at += len(times)
            offset = segments[0]["seek"] / 100
            within = lambda t, w=word: round(min(max(round(offset + t, 2), w["start"]), max(w["start"], w["end"])), 4)  # noqa: E731
            word["tokens"] = [[within(t.start), within(t.end), round(float(t.probability), 7)] for t in times]


def heard(model, seed: int, samples: int, language: str | None, task: str, condition: bool, words: bool, **options) -> dict:
    """A drawn sound, what was asked, and the segments that the maker finds in it."""
    result = whisper.transcribe(model, sound(seed, samples), language=language, task=task, temperature=0.0, fp16=False,
                                condition_on_previous_text=condition, word_timestamps=words, **options)
    # In a window of one position OpenAI divides by zero, and its words begin before the window: what comes then is
    # left out.
    count = len(result["segments"])
    result["segments"] = list(itertools.takewhile(lambda s: s["start"] >= s["seek"] / 100, result["segments"]))
    row = dict(seed=seed, samples=samples, language=language or "", found=result["language"], translate=task == "translate",
               condition=condition, words=words, all=count == len(result["segments"]),
               segments=[])
    for s in result["segments"]:
        row["segments"].append(dict(start=round(s["start"], 4), end=round(s["end"], 4), ids=s["tokens"], text=s["text"],
                                    no_speech=round(s["no_speech_prob"], 7), ratio=round(s["compression_ratio"], 6),
                                    words=[[w["word"], w["start"], w["end"], round(float(w["probability"]), 7), w["tokens"]] for w in s.get("words", [])]))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="tests/data/whisper")
    folder = parser.parse_args().folder
    torch.set_num_threads(1)
    whisper_small.install(folder)
    model = whisper_openai.load(folder / "ct2")
    shorten(model)
    whisper.model.Whisper.is_multilingual, whisper.model.Whisper.num_languages = True, 5  # of the small vocabulary
    TokenTimes()
    rows = []
    for seed, samples, language, task, condition, words in (
            (1, 16000, "en", "transcribe", True, False), (2, 59999, None, "transcribe", True, False),
            (3, 40000, "de", "translate", False, False), (4, 12345, "ja", "transcribe", True, True), (5, 159, "en", "transcribe", True, True),
            (6, 80000, "fr", "transcribe", True, True), (7, 50000, "de", "transcribe", True, True), (8, 70000, "en", "transcribe", True, True),
            (9, 90000, "en", "transcribe", False, True)):
        row = heard(model, seed, samples, language, task, condition, words)
        rows.append(row)
        print(seed, row["found"], len(row["segments"]), "segments,", sum(len(s["ids"]) for s in row["segments"]), "tokens")
    body = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (folder / "transcripts.json").write_text(f"[\n{body}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
