"""Writes the file that PyTorch's `save` writes (zip of stored records, protocol 2 pickle), without PyTorch.

Same bytes for the same tensors.  The details that a reader must cope with are kept: data descriptors with zero sizes
in the local headers, records padded to 64 bytes, a zip64 end record in a small file, storages that two tensors share,
state dicts that carry a `_metadata` attribute.
"""

from __future__ import annotations

import collections
import contextlib
import io
import pickle
import struct
import sys
import types
import zlib

import numpy as np

_STORAGES = {"float16": "HalfStorage", "float32": "FloatStorage", "int64": "LongStorage"}


class SharedStorage:
    """Tensors made by `view` lie in one storage, as the weights of a flattened LSTM do."""

    def __init__(self, values: np.ndarray):
        self.values = np.ascontiguousarray(values).reshape(-1)

    def view(self, offset: int, shape: tuple[int, ...]) -> "Tensor":
        return Tensor(self, offset, shape)


class Tensor:
    def __init__(self, storage: SharedStorage, offset: int, shape: tuple[int, ...]):
        self.storage, self.offset, self.shape = storage, offset, tuple(int(n) for n in shape)

    @staticmethod
    def of(values: np.ndarray) -> "Tensor":
        return SharedStorage(values).view(0, values.shape)

    def strides(self) -> tuple[int, ...]:
        steps, step = [], 1
        for n in reversed(self.shape):
            steps.append(step)
            step *= n
        return tuple(reversed(steps))

    def __reduce__(self):
        rebuild = sys.modules["torch._utils"]._rebuild_tensor_v2
        return rebuild, (self.storage, self.offset, self.shape, self.strides(), False, collections.OrderedDict())


class StateDict(collections.OrderedDict):
    """Pickled as a plain OrderedDict; with `metadata` it gets the attribute that Module.state_dict() leaves."""

    metadata: dict | None = None

    def __reduce__(self):
        state = {"_metadata": self.metadata} if self.metadata is not None else None
        return collections.OrderedDict, (), state, None, iter(self.items())


@contextlib.contextmanager
def _names_of_torch():
    """Modules with just the names that the pickle must mention; pickle checks that a name can be imported."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in _STORAGES.values():
        setattr(torch, name, type(name, (), {"__module__": "torch"}))

    def _rebuild_tensor_v2():
        raise NotImplementedError

    _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    torch._utils = utils
    saved = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        yield torch
    finally:
        for name, module in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _pickle(root, storages: list[SharedStorage]) -> bytes:
    numbers: dict[int, int] = {}
    out = io.BytesIO()
    with _names_of_torch() as torch:

        class Pickler(pickle._Pickler):   # the one written in Python keeps its order of memo entries on every version
            def persistent_id(self, value):
                if not isinstance(value, SharedStorage):
                    return None
                if id(value) not in numbers:
                    numbers[id(value)] = len(storages)
                    storages.append(value)
                kind = getattr(torch, _STORAGES[str(value.values.dtype)])
                return "storage", kind, str(numbers[id(value)]), "cpu", value.values.size

        Pickler(out, protocol=2).dump(root)
    return out.getvalue()


class _Zip:
    """Stored records only, laid out as PyTorch's writer does."""

    def __init__(self):
        self.body, self.directory, self.count = bytearray(), bytearray(), 0

    def add(self, name: str, data: bytes) -> None:
        encoded = name.encode()
        at = len(self.body)
        start = at + 30 + len(encoded) + 4
        padding = -start % 64
        extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        crc = zlib.crc32(data)
        self.body += struct.pack("<4s5H3I2H", b"PK\x03\x04", 0, 0x808, 0, 0, 0, 0, 0, 0, len(encoded), len(extra))
        self.body += encoded + extra + data
        self.body += struct.pack("<4s3I", b"PK\x07\x08", crc, len(data), len(data))
        self.directory += struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 0, 0, 0x808, 0, 0, 0, crc, len(data), len(data),
                                      len(encoded), 0, 0, 0, 0, 0, at) + encoded
        self.count += 1

    def finish(self) -> bytes:
        at, size, n = len(self.body), len(self.directory), self.count
        end64 = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0x31E, 45, 0, 0, n, n, size, at)
        locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, at + size, 1)
        end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, n, n, size, at, 0)
        return bytes(self.body + self.directory) + end64 + locator + end


def torch_file(root, archive: str) -> bytes:
    """`root`: dict of StateDicts of Tensors, and of dicts of numbers.  `archive`: the folder inside the zip, by custom the file's stem."""
    storages: list[SharedStorage] = []
    data = _pickle(root, storages)
    file = _Zip()
    file.add(f"{archive}/data.pkl", data)
    file.add(f"{archive}/byteorder", b"little")
    for i, storage in enumerate(storages):
        file.add(f"{archive}/data/{i}", storage.values.astype(storage.values.dtype.newbyteorder("<")).tobytes())
    file.add(f"{archive}/version", b"3\n")
    identity = zlib.crc32(b"".join(s.values.tobytes() for s in storages))
    file.add(f"{archive}/.data/serialization_id", b"%040d" % identity)
    return file.finish()
