"""The recordings that recognisers are compared on: WAV files of 16 kHz, one channel, 16 bits."""

from __future__ import annotations

import pathlib
import wave

import numpy as np

RATE_HZ = 16000


def samples(data: bytes) -> np.ndarray:
    """16-bit samples as f32 from -1 to 1."""
    return np.frombuffer(data, "<i2").astype(np.float32) / 32768


def read_speech(path: pathlib.Path) -> np.ndarray:
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE_HZ, 1, 2):
            raise SystemExit(f"{path} is no WAV of 16 kHz, one channel, 16 bits")
        return samples(file.readframes(file.getnframes()))
