#!/usr/bin/env python3
"""Writes whisper.cpp's model file from CTranslate2's model.bin (binary version 6, F16 or F32), so that both run the same
weights; whisper.cpp's own program quantises it:

  python3 tools/convert/whisper_ggml.py FOLDER/model.bin ggml-base.bin       # tokenizer.json beside model.bin; needs numpy
  whisper-quantize ggml-base.bin ggml-base-q8_0.bin q8_0

The file is that of whisper.cpp's models/convert-pt-to-ggml.py: magic "ggml", eleven numbers, the mel filters, the text
tokens as bytes, then each tensor with its rank, the length of its name, its type (0 f32, 1 f16) and its dimensions from
the last to the first.  Matrices are F16; what has one dimension, and the positions, F32.
"""

from __future__ import annotations

import json
import pathlib
import struct

import numpy as np

import ggml

_TYPES = ["<f4", "<i1", "<i2", "<i4", "<f2"]


class Reader:
    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def number(self, form: str) -> int:
        value, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self) -> str:
        size = self.number("H")
        self.at += size
        return self.data[self.at - size:self.at - 1].decode()

    def array(self) -> np.ndarray:
        dims = [self.number("I") for _ in range(self.number("B"))]
        kind, size = self.number("B"), self.number("I")
        if kind >= len(_TYPES):
            raise SystemExit(f"a variable of type {kind}; give a file in F16 or F32")
        self.at += size
        return np.frombuffer(self.data[self.at - size:self.at], _TYPES[kind]).reshape(dims)


def read_ct2(path: pathlib.Path) -> dict[str, np.ndarray]:
    reader = Reader(path.read_bytes())
    if reader.number("I") != 6 or reader.text() != "WhisperSpec":
        raise SystemExit(f"{path} is no Whisper model of CTranslate2 in binary version 6")
    reader.number("I")
    count = reader.number("I")
    return {reader.text(): reader.array() for _ in range(count)}


def _printable() -> dict[str, int]:
    """GPT-2's alphabet: the bytes that print stand for themselves, the others for 256 and on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}


def text_tokens(path: pathlib.Path) -> list[bytes]:
    vocabulary = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    ordered = sorted((id_, piece) for piece, id_ in vocabulary.items() if piece != "<|endoftext|>")
    if [id_ for id_, _ in ordered] != list(range(len(ordered))):
        raise SystemExit(f"the ids of {path} have gaps")
    bytes_of = _printable()
    return [bytes(bytes_of[letter] for letter in piece) for _, piece in ordered]


def openai_names(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    out: dict[str, np.ndarray] = {}

    def put(name: str, source: str, rows: slice = slice(None), bias: bool = True) -> None:
        out[name + ".weight"] = weights[source + "/weight"][rows]
        if bias:
            out[name + ".bias"] = weights[source + "/bias"][rows]

    def norm(name: str, source: str) -> None:
        out[name + ".weight"], out[name + ".bias"] = weights[source + "/gamma"], weights[source + "/beta"]

    width = weights["encoder/conv1/weight"].shape[0]
    parts = [slice(i * width, (i + 1) * width) for i in range(3)]
    for conv in ("conv1", "conv2"):
        put(f"encoder.{conv}", f"encoder/{conv}")
        out[f"encoder.{conv}.bias"] = out[f"encoder.{conv}.bias"][:, None]
    out["decoder.token_embedding.weight"] = weights["decoder/embeddings/weight"]
    for side, last in (("encoder", "ln_post"), ("decoder", "ln")):
        out[side + ".positional_embedding"] = weights[side + "/position_encodings/encodings"]
        norm(f"{side}.{last}", side + "/layer_norm")
        for i in range(layer_count(weights, side)):
            to, own = f"{side}.blocks.{i}", f"{side}/layer_{i}"
            norm(to + ".attn_ln", own + "/self_attention/layer_norm")
            for name, rows in zip(("query", "key", "value"), parts):
                put(f"{to}.attn.{name}", own + "/self_attention/linear_0", rows, name != "key")
            put(to + ".attn.out", own + "/self_attention/linear_1")
            if side == "decoder":
                norm(to + ".cross_attn_ln", own + "/attention/layer_norm")
                put(to + ".cross_attn.query", own + "/attention/linear_0")
                for name, rows in zip(("key", "value"), parts):
                    put(f"{to}.cross_attn.{name}", own + "/attention/linear_1", rows, name != "key")
                put(to + ".cross_attn.out", own + "/attention/linear_2")
            norm(to + ".mlp_ln", own + "/ffn/layer_norm")
            put(to + ".mlp.0", own + "/ffn/linear_0")
            put(to + ".mlp.2", own + "/ffn/linear_1")
    return out


def layer_count(weights: dict[str, np.ndarray], side: str) -> int:
    return sum(name.startswith(side + "/layer_") and name.endswith("/ffn/linear_0/weight") for name in weights)


def write_ggml(path: pathlib.Path, weights: dict[str, np.ndarray], tokens: list[bytes]) -> None:
    width, mels, _ = weights["encoder/conv1/weight"].shape
    heads = {side: int(weights.get(side + "/num_heads", np.array(width // 64))) for side in ("encoder", "decoder")}
    numbers = [ggml.MAGIC, weights["decoder/embeddings/weight"].shape[0],
               weights["encoder/position_encodings/encodings"].shape[0], width, heads["encoder"],
               layer_count(weights, "encoder"), weights["decoder/position_encodings/encodings"].shape[0], width,
               heads["decoder"], layer_count(weights, "decoder"), mels, 1]
    filters = ggml.mel_filters(mels)
    with path.open("wb") as file:
        file.write(struct.pack("<12i", *numbers) + struct.pack("<2i", *filters.shape) + filters.tobytes())
        file.write(struct.pack("<i", len(tokens)))
        for token in tokens:
            file.write(struct.pack("<i", len(token)) + token)
        for name, value in openai_names(weights).items():
            wide = value.ndim < 2 or value.shape[1] == 1 or name.endswith("positional_embedding")
            ggml.write_tensor(file, name, value, wide)


def main() -> None:
    args = ggml.parse_paths(__doc__)
    write_ggml(args.out, read_ct2(args.model), text_tokens(args.model.with_name("tokenizer.json")))


if __name__ == "__main__":
    main()
