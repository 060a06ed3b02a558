"""Writes drawn weights as the quantised ONNX export stores them: its names, its numbering habits, its wiring.

Only what a reader of weights looks at is there: initializers, and around each quantised module the nodes from its
dynamic quantisation to its scaled, biased output (rounding of a bias is left out to keep the file small).  The activations between modules have the export's names but no
producer, so the file cannot be run.  Specification: Kokoro, sections 1.1, 6.1 and 6.2.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kokoro_draw import Drawn

_TYPES = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int64": TensorProto.INT64}


class _Graph:
    def __init__(self, bert_passes: int):
        self.bert_passes = bert_passes
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.merged: dict[tuple, str] = {}    # equal constants are stored once, under the name met first
        self.quantised_inputs: set[str] = set()
        self.number = 5100                    # the published file starts elsewhere, so does every export

    def node(self, op: str, name: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes) -> None:
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, domain=domain or None, **attributes))

    def raw(self, name: str, value: np.ndarray) -> str:
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def typed(self, name: str, value: np.ndarray) -> str:
        """Stored in the field of its type (int32_data, float_data) as the quantiser stores scales and zero points."""
        value = np.asarray(value)
        kind = _TYPES[str(value.dtype)]
        self.tensors.append(helper.make_tensor(name, kind, value.shape, value.reshape(-1).tolist()))
        return name

    def zero_point(self, name: str, value: np.ndarray) -> str:
        value = np.asarray(value)
        key = (str(value.dtype), value.shape, value.tobytes())
        if key not in self.merged:
            self.merged[key] = self.typed(name, value)
        return self.merged[key]

    def quantise(self, activation: str) -> str:
        if activation not in self.quantised_inputs:
            self.quantised_inputs.add(activation)
            self.node("DynamicQuantizeLinear", activation + "_QuantizeLinear", [activation],
                      [activation + end for end in ("_dynamic_quantized", "_scale", "_zero_point")])
        return activation

    def next_name(self, kind: str) -> str:
        self.number += 1
        return f"onnx::{kind}_{self.number}"


def _rescale(g: _Graph, op_name: str, product: str, scales: str, result: str) -> None:
    g.node("Cast", product + "_cast", [product], [product + "_cast_output"], to=TensorProto.FLOAT)
    g.node("Mul", op_name + "_output_scale_mul", [product + "_cast_output", scales], [result])


def _linear(g: _Graph, d: Drawn) -> None:
    spec = d.spec
    if not spec.quantised:
        weight = g.raw(g.next_name("MatMul"), d.f32.T)
        bias = g.raw(spec.onnx_module + ".bias", d.bias)
        g.node("MatMul", spec.path + "/MatMul", [spec.path + "/input", weight], [spec.path + "/MatMul_output_0"])
        g.node("Add", spec.path + "/Add", [bias, spec.path + "/MatMul_output_0"], [spec.path + "/Add_output_0"])
        return
    shared = "albert_layers" in spec.name
    base = spec.onnx_weight or g.next_name("MatMul") + ("_3" if shared else "")
    weight = g.raw(base + "_quantized", d.q)
    scale = g.raw(base + "_scale", d.scale)
    zero = g.zero_point(base + "_zero_point", np.zeros(d.q.shape[1], np.int8))
    bias = g.raw(spec.onnx_module + ".bias", d.bias)
    gemm = spec.name.endswith(".fc")
    for turn in range(g.bert_passes if shared else 1):
        path = spec.path + (f"_{turn}" if turn else "")
        source = g.quantise(spec.input + (f"_pass_{turn}" if turn else ""))
        op = path + ("/Gemm_MatMul_quant" if gemm else "/MatMul_quant")
        result = path + ("/Gemm_output_0_MatMul" if gemm else "/MatMul_output_0")
        product = result + "_output_quantized"
        g.node("MatMulInteger", op, [source + "_dynamic_quantized", weight, source + "_zero_point", zero], [product])
        g.node("Mul", op + "_scales_mul", [source + "_scale", scale], [op + "_scales_mul:0"])
        _rescale(g, op, product, op + "_scales_mul:0", result)
        if gemm:
            g.node("Add", path + "/Gemm_Add", [result, bias], [path + "/Gemm_output_0"])
        else:
            g.node("Add", path + "/Add", [bias, result], [path + "/Add_output_0"])


def _conv(g: _Graph, d: Drawn) -> None:
    spec = d.spec
    attributes = dict(auto_pad="NOTSET", dilations=[spec.dilation], group=1, kernel_shape=[spec.shape[2]],
                      pads=[spec.padding] * 2, strides=[spec.stride])
    result = spec.path + "/Conv_output_0"
    bias = g.raw(spec.onnx_module + ".bias", d.bias) if d.bias is not None else None
    if not spec.quantised:
        weight = g.raw(spec.onnx_weight, d.f32)
        g.node("Conv", spec.path + "/Conv", [spec.path + "/input", weight, bias], [result], **attributes)
        return
    weight = g.raw(spec.onnx_weight + "_quantized", d.q)
    scale = g.raw(spec.onnx_weight + "_scale", np.asarray(d.scale, np.float32))
    zero = g.zero_point(spec.onnx_weight + "_zero_point", np.uint8(d.zero))
    source, op = g.quantise(spec.input), spec.path + "/Conv_quant"
    product = result + "_output_quantized"
    g.node("ConvInteger", op, [source + "_dynamic_quantized", weight, source + "_zero_point", zero], [product],
           **attributes)
    if bias is None:
        g.node("Mul", op + "_scales_mul", [source + "_scale", scale], [op + "_scales_mul:0"])
        _rescale(g, op, product, op + "_scales_mul:0", result)
        return
    g.node("Mul", bias + "_scale_node", [source + "_scale", scale], [bias + "_scale"])
    g.node("Div", bias + "_tmp_qaunt", [bias, bias + "_scale"], [bias + "_tmp_quant:0"])
    g.node("Reshape", bias + "_quantizedreshape", [bias + "_tmp_quant:0", "bias_quantized_reshape_shape"],
           [result + "_reshape"])
    g.node("Add", bias + "_quantizedbias_add", [product, result + "_reshape"], [result + "_bias_add"])
    _rescale(g, op, result + "_bias_add", bias + "_scale", result)


def _conv_transpose(g: _Graph, d: Drawn) -> None:
    spec = d.spec
    weight, bias = g.raw(spec.onnx_weight, d.f32), g.raw(spec.onnx_module + ".bias", d.bias)
    attributes = dict(strides=[spec.stride], kernel_shape=[spec.shape[2]], auto_pad="NOTSET", dilations=[1],
                      pads=[spec.padding] * 2, group=1)
    if spec.name.endswith(".pool"):
        attributes |= dict(group=spec.shape[0], output_padding=[1])
    g.node("ConvTranspose", spec.path + "/ConvTranspose", [spec.path + "/input", weight, bias],
           [spec.path + "/ConvTranspose_output_0"], **attributes)


def _lstm(g: _Graph, d: Drawn) -> None:
    spec = d.spec
    h = spec.shape[1]
    b, w, r = (g.next_name("LSTM") for _ in range(3))
    names = [g.raw(w + "_quantized", d.q[0]), g.raw(r + "_quantized", d.q[1]), g.raw(b, d.bias)]
    scales = [g.typed(w + "_scale", d.scale[0]), g.typed(r + "_scale", d.scale[1])]
    zero = g.zero_point(w + "_zero_point", np.zeros(2, np.int8))
    start = g.raw(spec.path + "/ConstantOfShape_output_0", np.zeros((2, 1, h), np.float32))
    g.node("DynamicQuantizeLSTM", spec.path + "/LSTM_quant",
           [spec.path + "/Transpose_output_0", *names, "", start, start, "", scales[0], zero, scales[1], zero],
           [f"{spec.path}/LSTM_output_{i}" for i in range(3)], domain="com.microsoft", direction="bidirectional",
           hidden_size=h, input_forget=0)


def _embedding(g: _Graph, d: Drawn) -> None:
    base = d.spec.onnx_module + ".weight"
    weight = g.raw(base + "_quantized", d.q)
    scale = g.typed(base + "_scale", np.asarray(d.scale, np.float32))
    zero = g.zero_point(base + "_zero_point", np.int8(0))
    ids = {"position": "/encoder/bert/embeddings/Slice_output_0", "token_type": "/encoder/bert/Expand_output_0"}
    source = next((v for k, v in ids.items() if k in d.spec.name), "tokens")
    rows = d.spec.path + "/Gather_output_0"
    g.node("Gather", d.spec.path + "/Gather_quant", [weight, source], [rows + "_quantized"], axis=0)
    g.node("DequantizeLinear", d.spec.path + "/Gather_quant_DequantizeLinear", [rows + "_quantized", scale, zero], [rows])


def _norm(g: _Graph, d: Drawn) -> None:
    ends = ("gamma", "beta") if ".cnn." in d.spec.name else ("weight", "bias")
    for end, value in zip(ends, (d.f32, d.bias)):
        g.raw(f"{d.spec.onnx_module}.{end}", value)


def _alpha(g: _Graph, d: Drawn) -> None:
    block, half, j = d.spec.path.rsplit("/", 1)[0], int(d.spec.name[-3]), int(d.spec.name[-1])
    index = 2 * j + half - 1
    g.raw(d.spec.onnx_module, d.f32)
    g.raw(f"{block}/Reciprocal{'_%d' % index if index else ''}_output_0", 1 / d.f32)   # derived: readers leave it


_WRITERS = {"linear": _linear, "conv": _conv, "conv_transpose": _conv_transpose, "lstm": _lstm, "embedding": _embedding,
            "norm": _norm, "alpha": _alpha}


def onnx_file(table: list[Drawn], bert_passes: int) -> bytes:
    g = _Graph(bert_passes)
    g.raw("bias_quantized_reshape_shape", np.array([1, -1, 1], np.int64))
    for drawn in table:
        _WRITERS[drawn.spec.kind](g, drawn)
    n = np.arange(20)
    window = (0.5 - 0.5 * np.cos(2 * np.pi * n / 20)).astype(np.float32)
    g.raw("decoder.decoder.generator.stft.istft.stft.window_sum", window**2)   # as published: one frame, useless
    info = helper.make_tensor_value_info
    style = 2 * next(d.spec.shape[1] for d in table if d.spec.name == "decoder.encode.norm1.fc")
    inputs = [info("tokens", TensorProto.INT64, [1, "tokens_len"]), info("style", TensorProto.FLOAT, [1, style]),
              info("speed", TensorProto.FLOAT, [1])]
    graph = helper.make_graph(g.nodes, "main_graph", inputs, [info("audio", TensorProto.FLOAT, ["samples"])], g.tensors)
    model = helper.make_model(graph, ir_version=9, producer_name="onnx.quantize", producer_version="0.1.0",
                              opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)])
    return model.SerializeToString(deterministic=True)
