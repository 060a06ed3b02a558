"""Named arrays in one safetensors file: what the reference scripts write and the tests read.  f32, f64 and i32 only."""

from __future__ import annotations

import json
import pathlib
import struct

import numpy as np

_KINDS = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "I32": np.dtype("<i4")}
_NAMES = {v: k for k, v in _KINDS.items()}


def save(path: pathlib.Path, arrays: dict[str, np.ndarray], notes: dict[str, str] | None = None) -> None:
    header: dict[str, object] = {"__metadata__": notes} if notes else {}
    at, parts = 0, []
    for name, value in arrays.items():
        value = np.asarray(value)
        if np.issubdtype(value.dtype, np.integer):
            value = value.astype("<i4")
        value = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<")))
        header[name] = {"dtype": _NAMES[value.dtype], "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
        parts.append(value.tobytes())
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def load(path: pathlib.Path) -> dict[str, np.ndarray]:
    data = pathlib.Path(path).read_bytes()
    try:
        (size,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8:8 + size])
    except (struct.error, ValueError) as error:
        raise SystemExit(f"{path}: not a safetensors file: {error}") from error
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        first, last = (8 + size + o for o in entry["data_offsets"])
        out[name] = np.frombuffer(data[first:last], _KINDS[entry["dtype"]]).reshape(entry["shape"]).copy()
    return out
