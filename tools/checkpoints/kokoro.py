#!/usr/bin/env python3
"""Writes small Kokoro checkpoints with seeded random weights, in both published formats.

  tiny.onnx                 the quantised ONNX export: names, wiring, number ranges
  tiny.pth                  kokoro-v1_0.pth: five state dicts with weight_g and weight_v
  tiny_parametrized.pth     the other spelling: `module.` before every name, parametrizations.weight.original0/1,
                            LSTM weights in a shared storage, `_metadata`, and entries that no reader needs
  tiny_voice.bin            a voice of 510 rows as wide as the small model's style

All hold the same weights; the .pth files hold what the integers of the ONNX file stand for.  Same seed, same bytes.
With --from-onnx the .pth is made from a real export instead, at full size.

  python3 tools/checkpoints/kokoro.py --out tests/data/kokoro
  python3 tools/checkpoints/kokoro.py --from-onnx kokoro-v1.0.int8.onnx --out DIR
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

from kokoro_draw import Drawn, draw  # noqa: E402
from kokoro_layout import PUBLISHED, Weight, Widths, weights  # noqa: E402
from torch_file import SharedStorage, StateDict, Tensor, torch_file  # noqa: E402

MODULES = ("bert", "bert_encoder", "predictor", "text_encoder", "decoder")
# PyTorch's gates i, f, g, o out of ONNX's i, o, f, c.
_GATES = (0, 2, 3, 1)


def lstm_to_pytorch(w: np.ndarray, r: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """W [2, in, 4H], R [2, H, 4H], B [2, 8H] of an ONNX LSTM as the eight tensors of a PyTorch one."""
    h = r.shape[1]
    gates = lambda x: np.concatenate([x[g * h:(g + 1) * h] for g in _GATES])  # noqa: E731
    out: dict[str, np.ndarray] = {}
    for direction, end in enumerate(("", "_reverse")):
        out["weight_ih_l0" + end] = gates(w[direction].T)
        out["weight_hh_l0" + end] = gates(r[direction].T)
        out["bias_ih_l0" + end] = gates(b[direction][:4 * h])
        out["bias_hh_l0" + end] = gates(b[direction][4 * h:])
    return out


def pytorch_weights(drawn: Drawn) -> dict[str, np.ndarray]:
    """The tensors of one module, weight norm still resolved."""
    spec = drawn.spec
    if spec.kind == "lstm":
        w, r = (q.astype(np.float32) * s[:, None, None] for q, s in zip(drawn.q, drawn.scale))
        return lstm_to_pytorch(w, r, drawn.bias)
    if spec.kind == "alpha":
        return {"": drawn.real()}
    ends = ("gamma", "beta") if spec.kind == "norm" and ".cnn." in spec.name else ("weight", "bias")
    out = {} if drawn.bias is None else {ends[1]: drawn.bias}
    return {ends[0]: drawn.real()} | out


def split_weight_norm(weight: np.ndarray, stretch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """g [n, 1, 1] and v with weight = v g / |v|, the norm over all axes but the first; v is not normalised."""
    norm = np.sqrt((weight.astype(np.float64) ** 2).sum((1, 2), keepdims=True))
    v = np.where(norm > 0, weight, 1) * stretch.reshape(-1, 1, 1)   # a channel of zeros has g = 0 and any direction
    return norm.astype(np.float32), v.astype(np.float32)


class Style:
    """How a .pth spells the same weights."""

    def __init__(self, prefix: str, pair: tuple[str, str], shared_lstm: bool, extras: bool):
        self.prefix, self.pair, self.shared_lstm, self.extras = prefix, pair, shared_lstm, extras


PLAIN = Style("", ("weight_g", "weight_v"), shared_lstm=False, extras=False)
PARAMETRIZED = Style("module.", ("parametrizations.weight.original0", "parametrizations.weight.original1"),
                     shared_lstm=True, extras=True)


def _entries(spec: Weight, values: dict[str, np.ndarray], style: Style, number: int) -> dict[str, Tensor]:
    if spec.kind == "lstm" and style.shared_lstm:
        storage = SharedStorage(np.concatenate([v.reshape(-1) for v in values.values()]))
        offset, out = 0, {}
        for end, value in values.items():
            out[end] = storage.view(offset, value.shape)
            offset += value.size
        return out
    if not spec.weight_norm:
        return {end: Tensor.of(v) for end, v in values.items()}
    rng = np.random.default_rng([number, 77])
    g, v = split_weight_norm(values["weight"], np.exp(0.5 * rng.standard_normal(values["weight"].shape[0])))
    out = {"bias": Tensor.of(values["bias"])} if "bias" in values else {}
    return out | {style.pair[0]: Tensor.of(g), style.pair[1]: Tensor.of(v)}


def state_dicts(table: list[tuple[Weight, dict[str, np.ndarray]]], style: Style) -> dict[str, StateDict]:
    modules = {name: StateDict() for name in MODULES}
    for number, (spec, values) in enumerate(table):
        module, _, rest = spec.name.partition(".")
        for end, tensor in _entries(spec, values, style, number).items():
            modules[module][style.prefix + ".".join(part for part in (rest, end) if part)] = tensor
    if style.extras:
        bert = next(values["weight"].shape[0] for spec, values in table if spec.name.endswith("mapping_in"))
        modules["bert"][style.prefix + "embeddings.position_ids"] = Tensor.of(np.arange(64, dtype=np.int64)[None])
        modules["bert"][style.prefix + "pooler.bias"] = Tensor.of(np.zeros(bert, np.float32))
        for state in modules.values():
            state.metadata = {"": {"version": 1}}
    return modules


def write(path: pathlib.Path, data: bytes) -> None:
    path.write_bytes(data)
    print(f"{path}: {len(data):,} bytes")


def tiny(out: pathlib.Path, seed: int, bert_passes: int) -> None:
    from kokoro_onnx import onnx_file

    widths = Widths()
    drawn = draw(widths, seed)
    table = [(d.spec, pytorch_weights(d)) for d in drawn]
    write(out / "tiny.onnx", onnx_file(drawn, bert_passes))
    write(out / "tiny.pth", torch_file(state_dicts(table, PLAIN), "kokoro-v1_0"))
    write(out / "tiny_parametrized.pth", torch_file(state_dicts(table, PARAMETRIZED), "archive"))
    rows = np.random.default_rng([seed, 1 << 20]).standard_normal((510, 2 * widths.style)) * 0.4
    write(out / "tiny_voice.bin", rows.astype("<f4").tobytes())


def from_onnx(source: pathlib.Path, out: pathlib.Path, style: Style) -> None:
    from reference.kokoro_weights import load

    loaded = load(source)
    table = []
    for spec in weights(PUBLISHED):
        ends = [name[len(spec.name):] for name in loaded if name == spec.name or name.startswith(spec.name + ".")]
        table.append((spec, {end.lstrip("."): loaded[spec.name + end] for end in ends}))
    write(out / "kokoro-v1_0.pth", torch_file(state_dicts(table, style), "kokoro-v1_0"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write into; must exist")
    parser.add_argument("--seed", type=int, default=12, help="seed of the random weights (default 12)")
    parser.add_argument("--bert-passes", type=int, default=2, choices=range(1, 13), metavar="1..12",
                        help="how many of the twelve passes through the shared layer the ONNX file spells out (default 2)")
    parser.add_argument("--from-onnx", type=pathlib.Path, help="a real export to turn into a full-size .pth")
    parser.add_argument("--parametrized", action="store_true", help="with --from-onnx: the newer spelling of names")
    args = parser.parse_args()
    if not args.out.is_dir():
        parser.error(f"--out {args.out} is not a folder: make it first")
    if args.from_onnx and not args.from_onnx.is_file():
        parser.error(f"--from-onnx {args.from_onnx} is not a file")
    if args.from_onnx:
        from_onnx(args.from_onnx, args.out, PARAMETRIZED if args.parametrized else PLAIN)
    else:
        tiny(args.out, args.seed, args.bert_passes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
