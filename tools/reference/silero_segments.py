"""Random sequences of probabilities and what the maker's package (silero-vad) makes of them: the reference of
tests/models/silero/segments_test.cc.

Usage: python3 tools/reference/silero_segments.py tests/data/silero/segments.json

Both of the maker's ways are asked: get_speech_timestamps_from_probs() for whole recordings, VADIterator for streams.
A probability is one character: its code minus 48, divided by 64, so that thresholds are hit exactly.
"""

import argparse
import json
import math
import pathlib
import random

import torch
from silero_vad.utils_vad import VADIterator, get_speech_timestamps_from_probs

WINDOW = 512
CASES = 160


def sequence(rng: random.Random, windows: int) -> list[int]:
    """Stretches of speech and silence of random lengths, with outliers: in 64ths."""
    levels, speech = [], rng.random() < 0.5
    while len(levels) < windows:
        centre = 52 if speech else 8
        for _ in range(rng.choice((1, 2, 3, 4, 6, 9, 16, 30))):
            level = rng.choice((22, 31, 32)) if rng.random() < 0.15 else round(rng.gauss(centre, 9))
            levels.append(min(64, max(0, level)))
        speech = not speech
    return levels[:windows]


class Fixed:
    """In the model's place: gives the probabilities in order."""

    def __init__(self, probabilities: list[float]):
        self.probabilities = iter(probabilities)

    def reset_states(self):
        pass

    def __call__(self, _window, _rate):
        return torch.tensor(next(self.probabilities))


def events(probabilities: list[float], options: dict) -> list[list[int]]:
    """[1 for a start and 0 for an end, sample, window in which it is told]"""
    iterator = VADIterator(Fixed(probabilities), threshold=options["threshold"], speech_pad_ms=options["pad"],
                           min_silence_duration_ms=options["min_silence"])
    told = []
    for window in range(len(probabilities)):
        event = iterator(torch.zeros(WINDOW)) or {}
        told += [[int(kind == "start"), sample, window] for kind, sample in event.items()]
    return told


def case(rng: random.Random) -> dict:
    levels = sequence(rng, rng.choice((1, 2, 5, 20, 60, 120)))
    probabilities = [level / 64 for level in levels]
    samples = WINDOW * len(levels) - rng.choice((0, 0, 1, 511))
    options = {"threshold": rng.choice((0.5, 0.5, 0.25, 0.75, 0.1)), "negative": rng.choice((None, None, None, 0.2)),
               "min_speech": rng.choice((250, 0, 100, 32)), "max_speech": rng.choice((None, None, 0.5, 1, 1.7)),
               "min_silence": rng.choice((100, 0, 32, 64, 500)), "pad": rng.choice((30, 0, 16, 50, 100)),
               "min_silence_at_max": rng.choice((98, 98, 30, 0))}
    spans = get_speech_timestamps_from_probs(
        probabilities, threshold=options["threshold"], neg_threshold=options["negative"],
        min_speech_duration_ms=options["min_speech"], max_speech_duration_s=options["max_speech"] or math.inf,
        min_silence_duration_ms=options["min_silence"], speech_pad_ms=options["pad"],
        min_silence_at_max_speech=options["min_silence_at_max"], audio_length_samples=samples)
    return {**options, "samples": samples, "levels": "".join(chr(48 + level) for level in levels),
            "segments": [[span["start"], span["end"]] for span in spans], "events": events(probabilities, options)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    rng = random.Random(1)
    lines = ",\n".join(json.dumps(case(rng), separators=(",", ":")) for _ in range(CASES))
    arguments.out.write_text(f"[\n{lines}\n]\n")


main()
