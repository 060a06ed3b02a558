"""What whisper.cpp's model files share: tensors behind their names, as 32 or 16 bit floats."""

from __future__ import annotations

import argparse
import pathlib
import struct
from typing import BinaryIO

import numpy as np

MAGIC = 0x67676D6C


def mel_filters(mels: int, fft: int = 400) -> np.ndarray:
    """Slaney's: linear below 1 kHz, logarithmic above, triangles of area 1."""
    step = np.log(6.4) / 27

    def to_hz(mel: np.ndarray) -> np.ndarray:
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(step * (mel - 15)))

    top = 15 + np.log(8000 / 1000) / step
    points = to_hz(np.linspace(0, top, mels + 2))
    bins = np.arange(fft // 2 + 1) * (16000 / fft)
    rise = (bins[None] - points[:-2, None]) / (points[1:-1] - points[:-2])[:, None]
    fall = (points[2:, None] - bins[None]) / (points[2:] - points[1:-1])[:, None]
    return (np.maximum(0, np.minimum(rise, fall)) * (2 / (points[2:] - points[:-2]))[:, None]).astype("<f4")


def write_tensor(file: BinaryIO, name: str, value: np.ndarray, wide: bool) -> None:
    """Its rank, its name's length and its type; the dims, the last first; the name and the values."""
    value = np.ascontiguousarray(value.astype("<f4" if wide else "<f2"))
    file.write(struct.pack("<3i", value.ndim, len(name), 0 if wide else 1))
    file.write(struct.pack(f"<{value.ndim}i", *reversed(value.shape)) + name.encode() + value.tobytes())


def parse_paths(description: str | None) -> argparse.Namespace:
    """The model to read and the file to write."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    return parser.parse_args()
