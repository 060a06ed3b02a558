"""Seeded random weights for the list in kokoro_layout, in the numbers that the quantised export can hold."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from kokoro_layout import Weight, Widths, weights

# The real file's range of zero points; few of them, so that equal ones are met and merged.
_ZERO_POINTS = (44, 51, 58, 60, 63, 64, 65, 67, 69, 72, 79, 88)


@dataclasses.dataclass
class Drawn:
    """A weight as the export stores it.

    q is [in, out] i8 for a linear, [out, in, k] u8 for a convolution, [rows, width] i8 for an embedding,
    (W [2, in, 4H], R [2, H, 4H]) i8 for an LSTM with gates i, o, f, c; f32 holds what is not quantised.
    """

    spec: Weight
    q: np.ndarray | tuple[np.ndarray, np.ndarray] | None = None
    scale: np.ndarray | tuple[np.ndarray, np.ndarray] | None = None
    zero: int = 0
    f32: np.ndarray | None = None
    bias: np.ndarray | None = None

    def real(self) -> np.ndarray:
        """The weight in PyTorch's layout, f32; not for LSTMs."""
        if self.f32 is not None:
            return self.f32
        value = ((self.q.astype(np.float32) - np.float32(self.zero)) * self.scale).astype(np.float32)
        return np.ascontiguousarray(value.T) if self.spec.kind == "linear" else value


def _bias(rng: np.random.Generator, spec: Weight, n: int) -> np.ndarray | None:
    if not spec.bias:
        return None
    return (spec.bias_mean + spec.bias_spread * rng.standard_normal(n)).astype(np.float32)


def _matrix(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    q = rng.integers(-64, 65, shape, dtype=np.int64)
    q.reshape(-1)[:2] = (-64, 64)     # both ends of the range are in every file
    return q.astype(np.int8)


def _linear(rng: np.random.Generator, spec: Weight) -> Drawn:
    n, k = spec.shape
    if not spec.quantised:
        value = spec.gain * rng.standard_normal((n, k)) / math.sqrt(k)
        return Drawn(spec, f32=value.astype(np.float32), bias=_bias(rng, spec, n))
    q = _matrix(rng, (k, n))
    scale = (spec.gain / (37 * math.sqrt(k)) * rng.uniform(0.7, 1.3, n)).astype(np.float32)
    return Drawn(spec, q=q, scale=scale, bias=_bias(rng, spec, n))


def _conv(rng: np.random.Generator, spec: Weight) -> Drawn:
    c_out, c_in, k = spec.shape
    fan = c_in * k
    bias = _bias(rng, spec, c_out)
    if not spec.quantised:
        value = (spec.gain / math.sqrt(fan) * rng.standard_normal(spec.shape)).astype(np.float32)
        return Drawn(spec, f32=value, bias=bias)
    zero = 0 if spec.name == "decoder.N_conv" else int(rng.choice(_ZERO_POINTS))
    if zero == 0:
        q = rng.integers(80, 128, spec.shape)
    else:
        q = np.clip(np.rint(zero + 22 * rng.standard_normal(spec.shape)), 0, 127)
    scale = np.float32(spec.gain / ((100 if zero == 0 else 22) * math.sqrt(fan)) * rng.uniform(0.9, 1.1))
    return Drawn(spec, q=q.astype(np.uint8), scale=scale, zero=zero, bias=bias)


def _conv_transpose(rng: np.random.Generator, spec: Weight) -> Drawn:
    c_in, c_out, k = spec.shape
    depthwise = spec.name.endswith(".pool")
    fan = (1 if depthwise else c_in) * k / spec.stride
    value = (spec.gain / math.sqrt(fan) * rng.standard_normal(spec.shape)).astype(np.float32)
    return Drawn(spec, f32=value, bias=_bias(rng, spec, c_in if depthwise else c_out))


def _lstm(rng: np.random.Generator, spec: Weight) -> Drawn:
    inputs, h = spec.shape
    q = _matrix(rng, (2, inputs, 4 * h)), _matrix(rng, (2, h, 4 * h))
    scale = tuple((1.2 / (37 * math.sqrt(n)) * rng.uniform(0.8, 1.2, 2)).astype(np.float32) for n in (inputs, h))
    return Drawn(spec, q=q, scale=scale, bias=(0.15 * rng.standard_normal((2, 8 * h))).astype(np.float32))


def _draw(rng: np.random.Generator, spec: Weight) -> Drawn:
    if spec.kind == "linear":
        return _linear(rng, spec)
    if spec.kind == "conv":
        return _conv(rng, spec)
    if spec.kind == "conv_transpose":
        return _conv_transpose(rng, spec)
    if spec.kind == "lstm":
        return _lstm(rng, spec)
    if spec.kind == "embedding":
        return Drawn(spec, q=_matrix(rng, spec.shape), scale=np.float32(spec.gain / 37 * rng.uniform(0.9, 1.1)))
    if spec.kind == "norm":
        weight = (1 + 0.1 * rng.standard_normal(spec.shape)).astype(np.float32)
        return Drawn(spec, f32=weight, bias=_bias(rng, spec, spec.shape[0]))
    assert spec.kind == "alpha"
    # Near 1, as trained; both signs of the deviation and a few far ones.
    return Drawn(spec, f32=np.exp(0.3 * rng.standard_normal(spec.shape)).astype(np.float32)[None, :, None])


def draw(widths: Widths, seed: int) -> list[Drawn]:
    """Each module has a generator of its own, so that a change to one leaves the others' numbers."""
    table = []
    for number, spec in enumerate(weights(widths)):
        table.append(_draw(np.random.default_rng([seed, number]), spec))
    conv_post = table[-1]
    # Log magnitudes around -2.5, falling with the frequency: a quiet, finite sound.
    half = widths.bins // 2
    conv_post.bias[:half] += np.linspace(-2.0, -3.5, half, dtype=np.float32)
    return table
