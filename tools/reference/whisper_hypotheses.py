"""What Whisper base makes of a recording that grows: the hypotheses of tests/engine/recognition/local_agreement_test.cc.

Usage: python3 tools/reference/whisper_hypotheses.py MODEL_FOLDER OUT.json CLIP.wav...

faster-whisper, greedy, temperature 0, every 0.7 s the whole recording so far; words with times, ends of segments.
"""

import argparse
import json
import pathlib
import wave

import numpy as np
from faster_whisper import WhisperModel

RATE, PERIOD = 16000, 11200


def hypotheses(model: WhisperModel, sound: np.ndarray) -> list[dict]:
    found = []
    for end in [*range(PERIOD, len(sound), PERIOD), len(sound)]:
        segments, _ = model.transcribe(sound[:end], language="en", beam_size=1, temperature=0, word_timestamps=True,
                                       condition_on_previous_text=False)
        segments = list(segments)
        words = [[word.word.strip(), round(float(word.start), 2), round(float(word.end), 2)]
                 for segment in segments for word in segment.words]
        found.append({"words": words, "ends": [round(float(segment.end), 2) for segment in segments]})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("clips", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    model = WhisperModel(arguments.model, device="cpu", compute_type="float32", cpu_threads=1)
    lines = []
    for clip in arguments.clips:
        with wave.open(str(clip)) as file:
            sound = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
        lines += [json.dumps({"clip": clip.name, "step": step, **one}, separators=(",", ":"))
                  for step, one in enumerate(hypotheses(model, sound))]
    arguments.out.write_text("[\n" + ",\n".join(lines) + "\n]\n")


main()
