"""Kokoro's weights from either published file, as f32 arrays under the maker's PyTorch names and in its layouts.

ONNX modules are found by node name and wiring, never by the exporter's numbers (specification: Kokoro, section 6.1).
A .pth is read without PyTorch; nothing in it is executed.
"""

from __future__ import annotations

import collections
import pathlib
import pickle
import re
import zipfile

import numpy as np

_WRAPPED = ("F0", "N", "F0_proj", "N_proj", "shared")   # modules of the predictor that the export's wrapper calls
_GATES = (0, 2, 3, 1)                                    # PyTorch's i, f, g, o within ONNX's i, o, f, c


def load(path: pathlib.Path) -> dict[str, np.ndarray]:
    path = pathlib.Path(path)
    with path.open("rb") as file:
        magic = file.read(4)
    try:
        return _load_pth(path) if magic == b"PK\x03\x04" else _load_onnx(path)
    except Exception as error:  # whatever the readers of either format raise on a broken file
        raise SystemExit(f"{path}: not a Kokoro checkpoint that this script can read: {error}") from error


# ---- ONNX ----------------------------------------------------------------------------------------------------------


def _module(path: str) -> str:
    """/decoder/decoder/generator/resblocks.4/convs1.2 -> decoder.generator.resblocks.4.convs1.2"""
    parts = path.strip("/").split("/")[1:]
    parts = [p for p, following in zip(parts, parts[1:] + [""]) if not following.startswith(p + ".")]
    if parts[0].split(".")[0] in _WRAPPED:
        parts.insert(0, "predictor")
    return ".".join(parts)


def _lstm(w: np.ndarray, r: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    h = r.shape[1]
    out = {}
    for d, end in enumerate(("", "_reverse")):
        for name, value in (("weight_ih", w[d].T), ("weight_hh", r[d].T), ("bias_ih", b[d, :4 * h]),
                            ("bias_hh", b[d, 4 * h:])):
            out[f"{name}_l0{end}"] = value.reshape(4, h, -1)[list(_GATES)].reshape(value.shape)
    return out


def _load_onnx(path: pathlib.Path) -> dict[str, np.ndarray]:
    import onnx

    graph = onnx.load(str(path)).graph
    if not any(node.op_type == "DynamicQuantizeLSTM" for node in graph.node):
        raise ValueError("it is no quantised ONNX export of the model")
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    real = lambda w, zero: stored[w].astype(np.float32) - stored[zero].astype(np.float32)  # noqa: E731
    scale_of = lambda w: stored[re.sub("_quantized$", "_scale", w)]  # noqa: E731
    out: dict[str, np.ndarray] = {}
    bound: set[str] = set()
    for node in graph.node:
        weight = next((i for i in node.input if i in stored and stored[i].ndim >= 2), None)
        if weight is None or weight in bound:
            continue
        path_of = lambda tail: _module(re.sub(tail + "$", "", node.name))  # noqa: E731
        if node.op_type == "ConvInteger":
            out[path_of("/Conv_quant") + ".weight"] = real(weight, node.input[3]) * scale_of(weight)
        elif node.op_type == "MatMulInteger":
            value = real(weight, node.input[3]) * scale_of(weight)
            out[path_of("(/Gemm_MatMul_quant|/MatMul_quant)") + ".weight"] = np.ascontiguousarray(value.T)
        elif node.op_type == "DynamicQuantizeLSTM":
            w, r = ((stored[node.input[i]] - stored[node.input[i + zero]].astype(np.float32)[:, None, None])
                    * stored[node.input[i + zero - 1]][:, None, None] for i, zero in ((1, 8), (2, 9)))
            for end, value in _lstm(w, r, stored[node.input[3]]).items():
                out[f"{path_of('/LSTM_quant')}.{end}"] = value
        elif node.op_type in ("Conv", "ConvTranspose") and not node.name.endswith("istft/stft/ConvTranspose"):
            out[path_of("/Conv(Transpose)?") + ".weight"] = stored[weight]
        elif node.op_type == "MatMul":
            out[path_of("/MatMul") + ".weight"] = np.ascontiguousarray(stored[weight].T)
        elif node.op_type == "Gather":
            user = next(n for n in graph.node if n.op_type == "DequantizeLinear" and n.input[0] == node.output[0])
            out[path_of("/Gather_quant") + ".weight"] = real(weight, user.input[2]) * stored[user.input[1]]
        else:
            continue
        bound.add(weight)
    for name, value in stored.items():
        if value.dtype == np.float32 and re.search(r"\.(bias|weight|gamma|beta|alpha[12]\.\d)$", name):
            out.setdefault(name.split(".", 1)[1], value)
    return {name: np.ascontiguousarray(value, np.float32) for name, value in out.items()}


# ---- PyTorch -------------------------------------------------------------------------------------------------------

_TORCH = {"FloatStorage": np.float32, "HalfStorage": np.float16, "DoubleStorage": np.float64, "LongStorage": np.int64}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, records: dict[str, bytes]):
        super().__init__(file)
        self._records = records

    def persistent_load(self, pid):
        _, kind, key, _, _ = pid
        return np.frombuffer(self._records[key], kind)

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch" and name in _TORCH:
            return _TORCH[name]
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _tensor(storage, offset, shape, strides, *_):
    steps = [s * storage.itemsize for s in strides]
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, steps).copy()


def _load_pth(path: pathlib.Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        root = next(n[:-len("data.pkl")] for n in archive.namelist() if n.endswith("/data.pkl"))
        records = {n[len(root + "data/"):]: archive.read(n) for n in archive.namelist() if n.startswith(root + "data/")}
        with archive.open(root + "data.pkl") as file:
            modules = _Unpickler(file, records).load()
    flat = {}
    for module, state in modules.items():
        prefix = "module." if all(name.startswith("module.") for name in state) else ""
        for name, value in state.items():
            flat[f"{module}.{name[len(prefix):]}"] = value
    return _resolve_weight_norm(flat)


def _resolve_weight_norm(flat: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    out = {}
    for name, value in flat.items():
        for g, v in (("weight_g", "weight_v"), ("parametrizations.weight.original0", "parametrizations.weight.original1")):
            if name.endswith("." + g):
                base = name[:-len(g)]
                direction = flat[base + v].astype(np.float64)
                norm = np.sqrt((direction**2).sum(tuple(range(1, direction.ndim)), keepdims=True))
                out[base + "weight"] = (direction * value / norm).astype(np.float32)
                break
            if name.endswith("." + v):
                break
        else:
            if value.dtype != np.int64:
                out[name] = value.astype(np.float32)
    return out
