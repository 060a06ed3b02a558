#!/usr/bin/env python3
"""onnxruntime on the published int8 file with its stages exposed, written as tools/reference/kokoro.py writes them.

Give the result to --inject of the reference script, or to a test, to compare each stage from onnxruntime's own inputs
(specification: Kokoro, section 9.1).  The audio is onnxruntime's: 1.5 times too loud, its first ten samples wrong.

  python3 tools/reference/kokoro_ort.py kokoro-v1.0.int8.onnx --phonemes 'həlˈO wˈɜɹld' --voice af_heart.bin --out ort.safetensors
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import container  # noqa: E402
import kokoro_phonemes  # noqa: E402

_G = "/decoder/decoder/generator/"
# Stage -> value in the graph, and the axis of it that is time (None: a row of numbers).
_NODES = {
    "bert_encoder": ("/encoder/bert_encoder/Add", 1), "duration_encoder": ("/encoder/predictor/text_encoder/Concat_4", 1),
    "duration_raw": ("/encoder/Div", None), "durations": ("/encoder/Clip", None),
    "text_encoder": ("/encoder/text_encoder/Transpose_2", 2), "asr": ("/encoder/MatMul_1", 2),
    "shared": ("/encoder/shared/Reshape", 0), "f0": ("/encoder/Squeeze", None), "n": ("/encoder/Squeeze_1", None),
    "source": (_G + "m_source/l_tanh/Tanh", None), "har": (_G + "Concat_3", 2),
    "decoder_encode": ("/decoder/decoder/encode/Div_3", 2), "decoder_front": ("/decoder/decoder/decode.3/Div_4", 2),
    "generator_0": (_G + "Div_2", 2), "generator_1": (_G + "Div_4", 2), "spectrum": (_G + "conv_post/Conv", 2)}


def exposed(path: pathlib.Path, force_durations: bool) -> tuple[bytes, dict[str, tuple[str, int | None]]]:
    """The model with the stages as outputs; with `force_durations` the rounded durations become an input."""
    model = onnx.load(str(path))
    by_name = {node.name: node for node in model.graph.node}
    absent = [name for name, _ in _NODES.values() if name not in by_name]
    if absent:
        raise SystemExit(f"{path}: no node {absent[0]}; this script knows the published int8 export only")
    values = {stage: (by_name[node].output[0], axis) for stage, (node, axis) in _NODES.items()}
    product = next(n for n in model.graph.node if n.op_type == "MatMulInteger" and n.name.startswith("/encoder/bert_encoder/"))
    quantise = next(n for n in model.graph.node if product.input[0] in n.output)
    values["bert"] = (quantise.input[0], 1)
    if force_durations:
        name = values.pop("durations")[0]
        model.graph.node.remove(by_name[_NODES["durations"][0]])
        info = [v for v in model.graph.value_info if v.name == name]
        for v in info:
            model.graph.value_info.remove(v)
        model.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, "tokens"]))
    present = {o.name for o in model.graph.output}
    for name, _ in values.values():
        if name not in present:
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    return model.SerializeToString(), values


def rows(value: np.ndarray, axis: int | None) -> np.ndarray:
    if axis is None:
        return value.reshape(-1)
    if axis == 0:
        return value.reshape(value.shape[0], -1)
    flat = value.reshape(value.shape[-2:])
    return flat if axis == 1 else np.ascontiguousarray(flat.T)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="kokoro-v1.0.int8.onnx")
    parser.add_argument("--phonemes", required=True, help="the phonemes to speak")
    parser.add_argument("--voice", type=pathlib.Path, required=True, help="voice file; the row is count - 1")
    parser.add_argument("--speed", type=float, default=1.0, help="divides the durations (default 1)")
    parser.add_argument("--durations", help="frames of each token with commas: replaces the predicted ones")
    parser.add_argument("--threads", type=int, default=2, help="threads (default 2)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="safetensors file to write")
    args = parser.parse_args()
    for path in (args.model, args.voice):
        if not path.is_file():
            parser.error(f"{path} is not a file")
    ids = kokoro_phonemes.ids(args.phonemes)
    if not 1 <= len(ids) <= 510:
        raise SystemExit(f"1 to 510 known phonemes are needed, {len(ids)} were found")
    data, values = exposed(args.model, args.durations is not None)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    style = kokoro_phonemes.voice_row(args.voice, 256, len(args.phonemes))
    feeds = {"tokens": np.array([[0, *ids, 0]], np.int64), "style": style[None], "speed": np.float32([args.speed])}
    if args.durations:
        forced = np.array([int(d) for d in args.durations.split(",")], np.float32)
        if len(forced) != len(ids) + 2:
            raise SystemExit(f"--durations needs {len(ids) + 2} numbers, one for each token and both zeros")
        feeds[session.get_inputs()[-1].name] = forced[None]
    results = session.run(["audio", *(name for name, _ in values.values())], feeds)
    stages = {"tokens": feeds["tokens"][0].astype(np.int32), "style": style, "audio": results[0].reshape(-1)}
    for (stage, (_, axis)), value in zip(values.items(), results[1:]):
        stages[stage] = rows(value, axis)
    durations = forced if args.durations else stages["durations"]
    stages["durations"] = durations.astype(np.int32)
    stages["spectrum"][:, 11:] = np.sin(stages["spectrum"][:, 11:])
    container.save(args.out, stages)
    print(f"{args.out}: {len(ids)} ids, {int(durations.sum())} frames, onnxruntime {onnxruntime.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
