"""Numbers that the tests draw again in C++ (tests/models/whisper/small.h): a linear congruential generator of 32 bits."""

from __future__ import annotations

import numpy as np


class Draws:
    def __init__(self, seed: int):
        self.state = seed

    def floats(self, count: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        values = np.empty(count, np.float64)
        for i in range(count):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            values[i] = low + (high - low) * ((self.state >> 8) / 2**24)
        return values.astype(np.float32)
