"""OpenAI's Whisper module with the weights of a CTranslate2 model.bin (binary version 6), in f32."""

from __future__ import annotations

import json
import pathlib
import struct

import numpy as np
import torch
import whisper.model

_TYPES = {0: "<f4", 1: "<i1", 2: "<i2", 3: "<i4", 4: "<f2"}


def read_ct2(path: pathlib.Path) -> dict[str, np.ndarray]:
    data, at = path.read_bytes(), 0

    def take(form: str):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize("<" + form)
        return value

    def text() -> str:
        nonlocal at
        size = take("H")
        at += size
        return data[at - size:at - 1].decode()

    if take("I") != 6 or text() != "WhisperSpec":
        raise SystemExit(f"{path} is no Whisper model of binary version 6")
    take("I")
    arrays = {}
    for _ in range(take("I")):
        name = text()
        shape = [take("I") for _ in range(take("B"))]
        kind, size = take("B"), take("I")
        arrays[name] = np.frombuffer(data, _TYPES[kind], size // np.dtype(_TYPES[kind]).itemsize, at).reshape(shape)
        at += size
    return arrays


def _block(arrays: dict, prefix: str, name: str, cross: bool) -> dict[str, np.ndarray]:
    out = {}

    def linear(target: str, source: str, rows: slice = slice(None), bias: bool = True) -> None:
        out[f"{name}.{target}.weight"] = arrays[f"{prefix}/{source}/weight"][rows]
        if bias:
            out[f"{name}.{target}.bias"] = arrays[f"{prefix}/{source}/bias"][rows]

    def norm(target: str, source: str) -> None:
        out[f"{name}.{target}.weight"] = arrays[f"{prefix}/{source}/gamma"]
        out[f"{name}.{target}.bias"] = arrays[f"{prefix}/{source}/beta"]

    width = arrays[f"{prefix}/self_attention/linear_1/weight"].shape[0]
    for i, (part, bias) in enumerate((("query", True), ("key", False), ("value", True))):
        linear(f"attn.{part}", "self_attention/linear_0", slice(i * width, (i + 1) * width), bias)
    linear("attn.out", "self_attention/linear_1")
    norm("attn_ln", "self_attention/layer_norm")
    if cross:
        linear("cross_attn.query", "attention/linear_0")
        linear("cross_attn.key", "attention/linear_1", slice(0, width), False)
        linear("cross_attn.value", "attention/linear_1", slice(width, 2 * width))
        linear("cross_attn.out", "attention/linear_2")
        norm("cross_attn_ln", "attention/layer_norm")
    linear("mlp.0", "ffn/linear_0")
    linear("mlp.2", "ffn/linear_1")
    norm("mlp_ln", "ffn/layer_norm")
    return out


def load(folder: pathlib.Path) -> whisper.model.Whisper:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return build(read_ct2(folder / "model.bin"), config["alignment_heads"])


def build(arrays: dict[str, np.ndarray], alignment_heads: list[list[int]]) -> whisper.model.Whisper:
    """From the tensors under CTranslate2's names."""
    layers = {part: len({n.split("/")[1] for n in arrays if n.startswith(f"{part}/layer_") and n.split("/")[1][6:].isdigit()})
              for part in ("encoder", "decoder")}
    state = {"encoder.positional_embedding": arrays["encoder/position_encodings/encodings"],
             "decoder.positional_embedding": arrays["decoder/position_encodings/encodings"],
             "decoder.token_embedding.weight": arrays["decoder/embeddings/weight"]}
    for conv in ("conv1", "conv2"):
        for part in ("weight", "bias"):
            state[f"encoder.{conv}.{part}"] = arrays[f"encoder/{conv}/{part}"]
    for part, target in (("encoder", "encoder.ln_post"), ("decoder", "decoder.ln")):
        state[f"{target}.weight"], state[f"{target}.bias"] = (arrays[f"{part}/layer_norm/{n}"] for n in ("gamma", "beta"))
        for i in range(layers[part]):
            state |= _block(arrays, f"{part}/layer_{i}", f"{part}.blocks.{i}", part == "decoder")
    heads = int(arrays.get("encoder/num_heads", arrays.get("num_heads")).reshape(-1)[0])
    audio, text = state["encoder.positional_embedding"], state["decoder.positional_embedding"]
    dims = whisper.model.ModelDimensions(state["encoder.conv1.weight"].shape[1], len(audio), audio.shape[1], heads,
                                         layers["encoder"], len(state["decoder.token_embedding.weight"]), len(text),
                                         text.shape[1], heads, layers["decoder"])
    model = whisper.model.Whisper(dims)
    for block in (*model.encoder.blocks, *model.decoder.blocks):  # the small checkpoint's are narrower than OpenAI's
        hidden = state["encoder.blocks.0.mlp.0.bias"].shape[0]
        block.mlp[0], block.mlp[2] = (whisper.model.Linear(dims.n_text_state, hidden), whisper.model.Linear(hidden, dims.n_text_state))
    missing, unexpected = model.load_state_dict(
        {name: torch.from_numpy(np.array(value, np.float32)) for name, value in state.items()}, strict=False)
    if unexpected or [name for name in missing if not name.endswith("mask")]:
        raise SystemExit(f"missing {missing}, unexpected {unexpected}")
    mask = torch.zeros(dims.n_text_layer, dims.n_text_head, dtype=torch.bool)
    for layer, head in alignment_heads:
        mask[layer, head] = True
    model.register_buffer("alignment_heads", mask.to_sparse(), persistent=False)
    return model.eval()
