"""Kokoro-82M's forward pass in numpy, one stage after another, written from the specification alone (sections 3 to 5).

Rows are time: every stage is [T, C].  All widths come from the weights.  A stage that is given is taken as it is, so
the later ones can be computed from somebody else's inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

SAMPLE_RATE = 24000
FFT, HOP, SPREAD = 20, 5, 300      # inverse transform; samples for each value of F0
STAGES = ("style", "bert", "bert_encoder", "duration_encoder", "duration_raw", "durations", "text_encoder", "asr",
          "shared", "f0", "n", "source", "har", "decoder_encode", "decoder_front", "generator_0", "generator_1",
          "spectrum", "audio")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def leaky(x, slope):
    return np.where(x >= 0, x, x * x.dtype.type(slope))


def normalise(x, axis, epsilon):
    mean = x.mean(axis, keepdims=True, dtype=np.float64)
    var = ((x - mean) ** 2).mean(axis, keepdims=True)
    return ((x - mean) / np.sqrt(var + epsilon)).astype(x.dtype)


def conv(x, w, b=None, padding=0, dilation=1, stride=1):
    """x [T, in], w [out, in, k] -> [T', out]"""
    k = w.shape[2]
    x = np.pad(x, ((padding, padding), (0, 0)))
    steps = (len(x) - dilation * (k - 1) - 1) // stride + 1
    y = np.zeros((steps, w.shape[0]), x.dtype)
    for j in range(k):
        y += x[j * dilation:j * dilation + (steps - 1) * stride + 1:stride] @ w[:, :, j].T
    return y if b is None else y + b


def conv_transpose(x, w, b, stride, padding, output_padding=0):
    """x [T, in], w [in, out, k] -> [(T - 1) stride - 2 padding + k + output_padding, out]"""
    k = w.shape[2]
    steps = (len(x) - 1) * stride + k + output_padding
    y = np.zeros((steps, w.shape[1]), x.dtype)
    for j in range(k):
        y[j:j + (len(x) - 1) * stride + 1:stride] += x @ w[:, :, j]
    return y[padding:steps - padding] + b


def depthwise_transpose(x, w, b):
    """`pool`: k 3, stride 2, padding 1, output padding 1; w [C, 1, 3]; twice as many rows."""
    y = np.zeros((2 * len(x) + 2, x.shape[1]), x.dtype)
    for j in range(3):
        y[j:j + 2 * len(x):2] += x * w[:, 0, j]
    return y[1:2 * len(x) + 1] + b


class Forward:
    """`weights`: as kokoro_weights.load gives them.  `given`: stages to take instead of computing.

    `settle`: a threshold below which an angle is rounding noise and gets a fixed value; see settle_angles.
    """

    def __init__(self, weights: dict[str, np.ndarray], dtype=np.float32, given: dict[str, np.ndarray] | None = None,
                 settle: float = 0.0):
        self.settle = settle
        self.w = {name: value.astype(dtype) for name, value in weights.items()}
        self.dtype = dtype
        self.given = given or {}
        self.stages: dict[str, np.ndarray] = {}
        self.style_width = self.w["decoder.encode.norm1.fc.weight"].shape[1]

    def stage(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        value = self.given[name] if name in self.given else make()
        if name != "durations":
            value = np.asarray(value, self.dtype)
        self.stages[name] = value
        return value

    # ---- layers ----

    def linear(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def layer_norm(self, x, name, epsilon, ends=("weight", "bias")):
        return normalise(x, -1, epsilon) * self.w[f"{name}.{ends[0]}"] + self.w[f"{name}.{ends[1]}"]

    def affine(self, name, style):
        """1 + gamma and beta of an adaptive norm."""
        gamma, beta = np.split(self.linear(name + ".fc", style), 2)
        return 1 + gamma, beta

    def ada_instance_norm(self, x, name, style):
        gain, shift = self.affine(name, style)
        return normalise(x, 0, 1e-5) * gain + shift

    def conv(self, name, x, **shape):
        return conv(x, self.w[name + ".weight"], self.w.get(name + ".bias"), **shape)

    def lstm(self, name, x):
        """Both directions; PyTorch's gates i, f, g, o; zero start.  x [T, in] -> [T, 2H]"""
        sides = []
        for end, rows in (("", x), ("_reverse", x[::-1])):
            w_hh = self.w[f"{name}.weight_hh_l0{end}"].T
            gates = rows @ self.w[f"{name}.weight_ih_l0{end}"].T
            gates = gates + self.w[f"{name}.bias_ih_l0{end}"] + self.w[f"{name}.bias_hh_l0{end}"]
            h = np.zeros(len(w_hh), self.dtype)
            c, out = h, []
            for row in gates:
                i, f, g, o = np.split(row + h @ w_hh, 4)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
                out.append(h)
            sides.append(np.stack(out if not end else out[::-1]))
        return np.concatenate(sides, 1)

    def res_block(self, name, x, style, upsample=False):
        """AdainResBlk1d, section 4.1."""
        r = leaky(self.ada_instance_norm(x, name + ".norm1", style), 0.2)
        if upsample:
            r = depthwise_transpose(r, self.w[name + ".pool.weight"], self.w[name + ".pool.bias"])
        r = self.conv(name + ".conv1", r, padding=1)
        r = leaky(self.ada_instance_norm(r, name + ".norm2", style), 0.2)
        r = self.conv(name + ".conv2", r, padding=1)
        if upsample:
            x = np.repeat(x, 2, 0)
        if name + ".conv1x1.weight" in self.w:
            x = self.conv(name + ".conv1x1", x)
        return (r + x) / self.dtype(math.sqrt(2))

    def snake(self, x, alpha):
        alpha = self.w[alpha].reshape(-1)
        return x + np.sin(alpha * x) ** 2 / alpha

    def snake_block(self, name, x, style):
        """The generator's ResBlock, section 5.2."""
        for j, dilation in enumerate((1, 3, 5)):
            t = x
            for half, d in ((1, dilation), (2, 1)):
                t = self.snake(self.ada_instance_norm(t, f"{name}.adain{half}.{j}", style), f"{name}.alpha{half}.{j}")
                k = self.w[f"{name}.convs{half}.{j}.weight"].shape[2]
                t = self.conv(f"{name}.convs{half}.{j}", t, padding=(k - 1) * d // 2, dilation=d)
            x = x + t
        return x

    # ---- stages ----

    def bert(self, ids):
        p = "bert.embeddings."
        x = (self.w[p + "word_embeddings.weight"][ids] + self.w[p + "token_type_embeddings.weight"][0]
             + self.w[p + "position_embeddings.weight"][:len(ids)])
        x = self.linear("bert.encoder.embedding_hidden_mapping_in", self.layer_norm(x, p + "LayerNorm", 1e-12))
        layer, head = "bert.encoder.albert_layer_groups.0.albert_layers.0.", 64
        for _ in range(12):
            q, k, v = (self.linear(f"{layer}attention.{n}", x).reshape(len(ids), -1, head).transpose(1, 0, 2)
                       for n in ("query", "key", "value"))
            scores = q @ k.transpose(0, 2, 1) / self.dtype(math.sqrt(head))
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = (scores / scores.sum(-1, keepdims=True)) @ v
            mixed = mixed.transpose(1, 0, 2).reshape(len(ids), -1)
            x = self.layer_norm(x + self.linear(layer + "attention.dense", mixed), layer + "attention.LayerNorm", 1e-12)
            f = self.linear(layer + "ffn", x)
            f = 0.5 * f * (1 + np.tanh(self.dtype(math.sqrt(2 / math.pi)) * (f + self.dtype(0.044715) * f**3)))
            x = self.layer_norm(x + self.linear(layer + "ffn_output", f), layer + "full_layer_layer_norm", 1e-12)
        return x

    def duration_encoder(self, encoded, style):
        rows = np.broadcast_to(style, (len(encoded), len(style)))
        x = np.concatenate([encoded, rows], 1)
        for i in (0, 2, 4):
            name = "predictor.text_encoder.lstms."
            gain, shift = self.affine(f"{name}{i + 1}", style)
            x = normalise(self.lstm(f"{name}{i}", x), -1, 1e-5) * gain + shift
            x = np.concatenate([x, rows], 1)
        return x

    def duration_raw(self, d, speed):
        logits = self.linear("predictor.duration_proj.linear_layer", self.lstm("predictor.lstm", d))
        return sigmoid(logits).sum(1) / self.dtype(speed)

    def text_encoder(self, ids):
        x = self.w["text_encoder.embedding.weight"][ids]
        for i in range(3):
            x = self.conv(f"text_encoder.cnn.{i}.0", x, padding=2)
            x = leaky(self.layer_norm(x, f"text_encoder.cnn.{i}.1", 1e-5, ("gamma", "beta")), 0.2)
        return self.lstm("text_encoder.lstm", x)

    def curve(self, branch, shared, style):
        x = shared
        for i in range(3):
            x = self.res_block(f"predictor.{branch}.{i}", x, style, upsample=i == 1)
        return self.conv(f"predictor.{branch}_proj", x)[:, 0]

    def source(self, f0):
        """Sines of nine harmonics with the phase in double precision, no noise; section 5.1."""
        f0 = f0.astype(np.float64)
        t = np.clip((np.arange(SPREAD * len(f0)) + 0.5) / SPREAD - 0.5, 0, len(f0) - 1)
        voiced = np.repeat(f0 > 10, SPREAD)
        g = "decoder.generator.m_source.l_linear."
        mix = np.zeros(len(t))
        for k in range(1, self.w[g + "weight"].shape[1] + 1):
            step = np.mod(k * f0 / SAMPLE_RATE, 1.0)
            phase = np.interp(t, np.arange(len(f0)), SPREAD * np.cumsum(step))
            mix += float(self.w[g + "weight"][0, k - 1]) * 0.1 * np.sin(2 * np.pi * phase) * voiced
        return np.tanh(mix + float(self.w[g + "bias"][0]))

    def spectrogram(self, source):
        """[T, 22]: magnitudes then angles, computed in double precision."""
        x = np.pad(source.astype(np.float64), FFT // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(x, FFT)[::HOP]
        bins = np.fft.rfft(frames * window(), axis=1)
        angles = settle_angles(bins, self.settle) if self.settle else np.angle(bins)
        return np.concatenate([np.abs(bins), angles], 1)

    def decoder_front(self, asr, f0, n, style):
        f0 = self.conv("decoder.F0_conv", f0[:, None], padding=1, stride=2)
        n = self.conv("decoder.N_conv", n[:, None], padding=1, stride=2)
        x = self.res_block("decoder.encode", np.concatenate([asr, f0, n], 1), style)
        self.stages["decoder_encode"] = x
        res = self.conv("decoder.asr_res.0", asr)
        for i in range(4):
            x = self.res_block(f"decoder.decode.{i}", np.concatenate([x, res, f0, n], 1), style, upsample=i == 3)
        return x

    def generator_stage(self, i, x, har, style):
        g = "decoder.generator."
        stride = (10, 6)[i]
        w = self.w[f"{g}ups.{i}.weight"]
        x = conv_transpose(leaky(x, 0.1), w, self.w[f"{g}ups.{i}.bias"], stride, (w.shape[2] - stride) // 2)
        if i == 1:
            x = np.concatenate([x[1:2], x])      # reflection of one step on the left
        noise = self.conv(f"{g}noise_convs.{i}", har, **({"stride": 6, "padding": 3} if i == 0 else {}))
        x = x + self.snake_block(f"{g}noise_res.{i}", noise, style)
        return sum(self.snake_block(f"{g}resblocks.{3 * i + j}", x, style) for j in range(3)) / self.dtype(3)

    def spectrum(self, x):
        """[T, 22]: log magnitudes, then angles in radians (the sine already taken)."""
        x = self.conv("decoder.generator.conv_post", leaky(x, 0.01), padding=3)
        half = x.shape[1] // 2
        return np.concatenate([x[:, :half], np.sin(x[:, half:])], 1)

    def audio(self, spectrum):
        half = spectrum.shape[1] // 2
        bins = np.exp(spectrum[:, :half].astype(np.float64) + 1j * spectrum[:, half:].astype(np.float64))
        frames = np.fft.irfft(bins, FFT, axis=1) * window()
        total = np.zeros((len(frames) - 1) * HOP + FFT)
        weight = np.zeros_like(total)
        for j in range(FFT):
            total[j:j + HOP * len(frames):HOP] += frames[:, j]
            weight[j:j + HOP * len(frames):HOP] += window()[j] ** 2
        return (total[FFT // 2:-FFT // 2] / weight[FFT // 2:-FFT // 2])

    def run(self, ids: list[int], style: np.ndarray, speed: float = 1.0) -> dict[str, np.ndarray]:
        """`ids` with the zero at either end.  `given` may hold `durations`."""
        s_d, s_p = np.split(self.stage("style", lambda: style), 2)
        self.stages["tokens"] = np.asarray(ids, np.int32)
        bert = self.stage("bert", lambda: self.bert(ids))
        encoded = self.stage("bert_encoder", lambda: self.linear("bert_encoder", bert))
        d = self.stage("duration_encoder", lambda: self.duration_encoder(encoded, s_p))
        raw = self.stage("duration_raw", lambda: self.duration_raw(d, speed))
        durations = self.stage("durations", lambda: np.maximum(np.rint(raw), 1)).astype(np.int32)
        self.stages["durations"] = durations
        text = self.stage("text_encoder", lambda: self.text_encoder(ids))
        asr = self.stage("asr", lambda: np.repeat(text, durations, 0))
        shared = self.stage("shared", lambda: self.lstm("predictor.shared", np.repeat(d, durations, 0)))
        f0 = self.stage("f0", lambda: self.curve("F0", shared, s_p))
        n = self.stage("n", lambda: self.curve("N", shared, s_p))
        source = self.stage("source", lambda: self.source(f0))
        har = self.stage("har", lambda: self.spectrogram(source))
        x = self.stage("decoder_front", lambda: self.decoder_front(asr, f0, n, s_d))
        for i in (0, 1):
            x = self.stage(f"generator_{i}", lambda: self.generator_stage(i, x, har, s_d))
        spectrum = self.stage("spectrum", lambda: self.spectrum(x))
        self.stage("audio", lambda: self.audio(spectrum))
        return self.stages


def settle_angles(bins: np.ndarray, threshold: float) -> np.ndarray:
    """Angles without the ones that rounding decides, so that two implementations can agree on every bin.

    Empty bins (unvoiced frames, the first and last 150 samples, where the phase is held) get 0.  Bins whose imaginary
    part vanishes on the negative side (the first and last frame, mirrored about their middle) get +pi, not -pi.
    """
    angles = np.angle(bins)
    angles[np.abs(bins) < threshold] = 0
    angles[angles < threshold - np.pi] = np.pi
    return angles


def window() -> np.ndarray:
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT) / FFT)
