#!/usr/bin/env python3
"""CTranslate2 in a process of its own, for whisper.py: a recording's path in, a line of JSON out.

usage: whisper_peer.py MODEL COMPUTE_TYPE THREADS        needs ctranslate2, faster-whisper

The window is decoded greedily, in English, without times, window by window: what `syrinx bench whisper --recording` does.
The spectrum is faster-whisper's.
"""

import json
import sys
import time

import ctranslate2
import faster_whisper
from faster_whisper.audio import decode_audio
from faster_whisper.feature_extractor import FeatureExtractor

_RATE, _WINDOW = 16000, 480000
_PROMPT = [50258, 50259, 50359, 50363]   # of the multilingual vocabulary: start, English, transcribe, no times


def hear(model: ctranslate2.models.Whisper, extract: FeatureExtractor, path: str) -> dict:
    sound = decode_audio(path, sampling_rate=_RATE)
    figures = {"seconds": len(sound) / _RATE, "mel_ms": 0.0, "encode_ms": 0.0, "decode_ms": 0.0, "tokens": []}
    start = time.perf_counter()
    for first in range(0, len(sound), _WINDOW):
        at = [time.perf_counter()]
        window = sound[first:first + _WINDOW]
        mel = extract(window, padding=_WINDOW - len(window))[:, :3000]
        at.append(time.perf_counter())
        encoded = model.encode(ctranslate2.StorageView.from_array(mel[None].copy()))
        at.append(time.perf_counter())
        result = model.generate(encoded, [_PROMPT], beam_size=1, max_length=228, suppress_blank=True,
                                suppress_tokens=[-1])
        at.append(time.perf_counter())
        figures["tokens"] += result[0].sequences_ids[0]
        for key, begin, end in zip(("mel_ms", "encode_ms", "decode_ms"), at, at[1:]):
            figures[key] += 1e3 * (end - begin)
    return figures | {"ms": 1e3 * (time.perf_counter() - start)}


def main() -> None:
    model = ctranslate2.models.Whisper(sys.argv[1], device="cpu", compute_type=sys.argv[2],
                                       intra_threads=int(sys.argv[3]))
    extract = FeatureExtractor()
    version = f"ctranslate2 {ctranslate2.__version__}, faster-whisper {faster_whisper.__version__}, {model.compute_type}"
    print(json.dumps({"version": version}), flush=True)
    for line in sys.stdin:
        print(json.dumps(hear(model, extract, line.strip())), flush=True)


if __name__ == "__main__":
    main()
