#!/usr/bin/env python3
"""Reference of Kokoro's sine source after a long time: a pitch curve of eleven seconds and the end of its sound.

The phase is a running sum, which single precision loses after some seconds; this one is kept in double precision.
Writes f0 [T] (80 values a second; rises, falls, unvoiced and negative parts) and tail [1200], the last 1200 samples.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import container  # noqa: E402
from kokoro_forward import Forward  # noqa: E402
from kokoro_weights import load  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="ONNX export or .pth")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="safetensors file to write")
    args = parser.parse_args()
    if not args.model.is_file():
        parser.error(f"{args.model} is not a file")
    t = np.arange(880) / 80
    f0 = 180 + 90 * np.sin(2.1 * t) + 25 * np.sin(17 * t)
    f0[120:160], f0[400:416] = 4.0, -7.5          # unvoiced; a negative value wraps, as the maker's does
    f0 = f0.astype(np.float32)
    source = Forward(load(args.model)).source(f0)
    container.save(args.out, {"f0": f0, "tail": source[-1200:].astype(np.float32)})
    print(f"{args.out}: {len(f0)} values, {len(source)} samples, the last 1200 kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
