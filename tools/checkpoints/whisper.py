#!/usr/bin/env python3
"""Writes Whisper checkpoints with seeded random weights in the published forms: CTranslate2's model.bin (binary version
6) with its config.json, model.safetensors as transformers saves it, and OpenAI's own model.pt.

OUT/ct2/, OUT/transformers/ and OUT/openai/ hold the same weights in F16.  --size tiny has small dimensions and a window
of 1 s, and the vocabulary of tests/data/whisper/tokenizer.json, of which the second and the third form keep the first
120 rows only, and the third a config.json with its number of heads.  tiny-english, tiny-large-v3 and tiny-turbo are that
size with the vocabularies of English models and of large-v3 (and its 128 mels), the last with three layers in the
encoder and one in the decoder: what has grown is made in a way that the tests repeat, so that no file holds it;
whisper_layouts.py of tools/reference writes such vocabularies.  The others (tiny.en, base, small, medium, large-v3,
turbo) have the real ones, 75 MB to 3 GB a form; --form takes one of the three.  Same seed, same bytes.

  python3 tools/checkpoints/whisper.py --size tiny --out tests/data/whisper
  python3 tools/checkpoints/whisper.py --size base --form ct2 --out DIR
"""

from __future__ import annotations

import argparse
import json
import pathlib
import struct
from dataclasses import dataclass, replace

import numpy as np

from draws import Draws
from torch_file import StateDict, Tensor, torch_file


@dataclass(frozen=True)
class Size:
    width: int
    encoder_layers: int
    decoder_layers: int
    heads: int
    hidden: int
    mels: int
    vocabulary: int
    text_positions: int = 448
    audio_positions: int = 1500


SIZES = {
    "tiny": Size(32, 2, 2, 2, 64, 80, 2014, 64, 50),
    "tiny-english": Size(32, 2, 2, 2, 64, 80, 51864, 64, 50),
    "tiny-large-v3": Size(32, 2, 2, 2, 64, 128, 51866, 64, 50),
    "tiny-turbo": Size(32, 3, 1, 2, 64, 128, 51866, 64, 50),
    "tiny.en": Size(384, 4, 4, 6, 1536, 80, 51864),
    "base": Size(512, 6, 6, 8, 2048, 80, 51865),
    "small": Size(768, 12, 12, 12, 3072, 80, 51865),
    "medium": Size(1024, 24, 24, 16, 4096, 80, 51865),
    "large-v3": Size(1280, 32, 32, 20, 5120, 128, 51866),
    "turbo": Size(1280, 32, 4, 20, 5120, 128, 51866),
}
_EMBEDDING = "model.decoder.embed_tokens.weight"
_TINY_ROWS = 120
_TYPES = {np.dtype("<f4"): 0, np.dtype("<i1"): 1, np.dtype("<i2"): 2, np.dtype("<i4"): 3, np.dtype("<f2"): 4}


class Draw:
    """Weights of a size, in the order in which they are asked for."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape: int, scale: float) -> np.ndarray:
        return (self.rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)).astype("<f2")

    def linear(self, out: int, *inputs: int, gain: float = 1.0) -> np.ndarray:
        return self.normal(out, *inputs, scale=gain / np.sqrt(np.prod(inputs)))

    def gamma(self, width: int) -> np.ndarray:
        return (1 + self.rng.standard_normal(width, dtype=np.float32) * np.float32(0.1)).astype("<f2")

    def bias(self, width: int) -> np.ndarray:
        return self.normal(width, scale=0.1)


def _sinusoids(length: int, width: int) -> np.ndarray:
    """The encoder's positions: sines, then cosines, of wavelengths from 2 pi to 20000 pi."""
    step = np.log(10000) / (width // 2 - 1)
    turns = np.arange(length)[:, None] * np.exp(-step * np.arange(width // 2))[None, :]
    return np.concatenate([np.sin(turns), np.cos(turns)], axis=1).astype("<f2")


def _attention(draw: Draw, name: str, width: int, weights: dict[str, np.ndarray]) -> None:
    weights[name + "_layer_norm.weight"] = draw.gamma(width)
    weights[name + "_layer_norm.bias"] = draw.bias(width)
    for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
        gain = {"q_proj": 2.0, "k_proj": 2.0}.get(part, 0.7)  # scores that tell positions apart
        weights[f"{name}.{part}.weight"] = draw.linear(width, width, gain=gain)
        if part != "k_proj":
            weights[f"{name}.{part}.bias"] = draw.bias(width)


def _layer(draw: Draw, name: str, size: Size, decoder: bool, weights: dict[str, np.ndarray]) -> None:
    _attention(draw, name + ".self_attn", size.width, weights)
    if decoder:
        _attention(draw, name + ".encoder_attn", size.width, weights)
    weights[name + ".final_layer_norm.weight"] = draw.gamma(size.width)
    weights[name + ".final_layer_norm.bias"] = draw.bias(size.width)
    for part, out, inputs in (("fc1", size.hidden, size.width), ("fc2", size.width, size.hidden)):
        weights[f"{name}.{part}.weight"] = draw.linear(out, inputs)
        weights[f"{name}.{part}.bias"] = draw.bias(out)


def draw_weights(size: Size, seed: int) -> dict[str, np.ndarray]:
    """Under transformers' names."""
    draw, weights = Draw(seed), {}
    encoder, decoder = "model.encoder.", "model.decoder."
    for part, inputs in (("conv1", size.mels), ("conv2", size.width)):
        weights[f"{encoder}{part}.weight"] = draw.linear(size.width, inputs, 3)
        weights[f"{encoder}{part}.bias"] = draw.bias(size.width)
    weights[encoder + "embed_positions.weight"] = _sinusoids(size.audio_positions, size.width)
    for i in range(size.encoder_layers):
        _layer(draw, f"{encoder}layers.{i}", size, False, weights)
    weights[_EMBEDDING] = draw.normal(size.vocabulary, size.width, scale=0.5)
    weights[decoder + "embed_positions.weight"] = draw.normal(size.text_positions, size.width, scale=0.3)
    for i in range(size.decoder_layers):
        _layer(draw, f"{decoder}layers.{i}", size, True, weights)
    for side in (encoder, decoder):
        weights[side + "layer_norm.weight"] = draw.gamma(size.width)
        weights[side + "layer_norm.bias"] = draw.bias(size.width)
    return weights


def _of_depth(weights: dict[str, np.ndarray], side: str, layers: int) -> dict[str, np.ndarray]:
    """With so many layers on that side: further ones have the numbers of the first by 3/4, which F32 holds exactly."""
    prefix = f"model.{side}.layers."

    def index(name: str) -> int:
        return int(name.removeprefix(prefix).split(".")[0]) if name.startswith(prefix) else -1

    out = {name: value for name, value in weights.items() if index(name) < layers}
    for layer in range(1 + max(map(index, weights)), layers):
        out |= {name.replace(prefix + "0", f"{prefix}{layer}", 1): value.astype("<f4") * np.float32(0.75)
                for name, value in weights.items() if index(name) == 0}
    return out


def grown_weights(size: Size, seed: int) -> dict[str, np.ndarray]:
    """Those of the tiny size, but for a table, a first convolution and depths of another size, in F32."""
    weights = draw_weights(SIZES["tiny"], seed)
    weights[_EMBEDDING] = Draws(21).floats(size.vocabulary * size.width, -0.87, 0.87).reshape(-1, size.width)
    if size.mels != SIZES["tiny"].mels:
        shape = (size.width, size.mels, 3)
        weights["model.encoder.conv1.weight"] = Draws(22).floats(int(np.prod(shape)), -0.09, 0.09).reshape(shape)
    return _of_depth(_of_depth(weights, "encoder", size.encoder_layers), "decoder", size.decoder_layers)


def _fused(weights: dict[str, np.ndarray], name: str, parts: str) -> dict[str, np.ndarray]:
    rows = [weights[f"{name}.{part}_proj.weight"] for part in parts]
    biases = [weights.get(f"{name}.{part}_proj.bias", np.zeros(len(row), "<f2")) for part, row in zip(parts, rows)]
    return {"weight": np.concatenate(rows), "bias": np.concatenate(biases)}


def to_ct2(weights: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    """The same under CTranslate2's names, with what its converter adds."""
    out: dict[str, np.ndarray] = {}

    def put(name: str, values: dict[str, np.ndarray]) -> None:
        out.update({f"{name}/{key}": value for key, value in values.items()})

    def plain(name: str, source: str) -> None:
        put(name, {"weight": weights[source + ".weight"], "bias": weights[source + ".bias"]})

    def norm(name: str, source: str) -> None:
        put(name, {"gamma": weights[source + ".weight"], "beta": weights[source + ".bias"]})

    for side, layers in (("encoder", size.encoder_layers), ("decoder", size.decoder_layers)):
        source = f"model.{side}."
        out[side + "/num_heads"] = np.array(size.heads, "<i2")
        out[side + "/position_encodings/encodings"] = weights[source + "embed_positions.weight"]
        norm(side + "/layer_norm", source + "layer_norm")
        for i in range(layers):
            to, own = f"{side}/layer_{i}", f"{source}layers.{i}"
            norm(to + "/self_attention/layer_norm", own + ".self_attn_layer_norm")
            put(to + "/self_attention/linear_0", _fused(weights, own + ".self_attn", "qkv"))
            plain(to + "/self_attention/linear_1", own + ".self_attn.out_proj")
            if side == "decoder":
                norm(to + "/attention/layer_norm", own + ".encoder_attn_layer_norm")
                plain(to + "/attention/linear_0", own + ".encoder_attn.q_proj")
                put(to + "/attention/linear_1", _fused(weights, own + ".encoder_attn", "kv"))
                plain(to + "/attention/linear_2", own + ".encoder_attn.out_proj")
            norm(to + "/ffn/layer_norm", own + ".final_layer_norm")
            plain(to + "/ffn/linear_0", own + ".fc1")
            plain(to + "/ffn/linear_1", own + ".fc2")
    plain("encoder/conv1", "model.encoder.conv1")
    plain("encoder/conv2", "model.encoder.conv2")
    out["decoder/embeddings/weight"] = weights[_EMBEDDING]
    scalars = {"activation": (3, "<i1"), "pre_norm": (1, "<i1"), "alibi": (0, "<i1"), "scale_embeddings": (0, "<i1"),
               "start_from_zero_embedding": (0, "<i1"), "alignment_layer": (-1, "<i2"), "alignment_heads": (1, "<i2")}
    out |= {f"decoder/{name}": np.array(value, kind) for name, (value, kind) in scalars.items()}
    return dict(sorted(out.items()))


_OPENAI = {"encoder.embed_positions.weight": "encoder.positional_embedding",
           "decoder.embed_positions.weight": "decoder.positional_embedding",
           "decoder.embed_tokens": "decoder.token_embedding", "encoder.layer_norm": "encoder.ln_post",
           "decoder.layer_norm": "decoder.ln", ".layers.": ".blocks.", ".self_attn_layer_norm": ".attn_ln",
           ".encoder_attn_layer_norm": ".cross_attn_ln", ".final_layer_norm": ".mlp_ln", ".self_attn.": ".attn.",
           ".encoder_attn.": ".cross_attn.", ".q_proj": ".query", ".k_proj": ".key", ".v_proj": ".value",
           ".out_proj": ".out", ".fc1": ".mlp.0", ".fc2": ".mlp.2"}


def to_openai(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same under OpenAI's names."""
    out = {}
    for name, value in weights.items():
        name = name.removeprefix("model.")
        for theirs, own in _OPENAI.items():
            name = name.replace(theirs, own)
        out[name] = value
    return out


def write_openai(path: pathlib.Path, weights: dict[str, np.ndarray], size: Size) -> None:
    dims = {"n_mels": size.mels, "n_vocab": size.vocabulary, "n_audio_ctx": size.audio_positions,
            "n_audio_state": size.width, "n_audio_head": size.heads, "n_audio_layer": size.encoder_layers,
            "n_text_ctx": size.text_positions, "n_text_state": size.width, "n_text_head": size.heads,
            "n_text_layer": size.decoder_layers}
    state = StateDict((name, Tensor.of(value)) for name, value in to_openai(weights).items())
    path.write_bytes(torch_file({"dims": dims, "model_state_dict": state}, path.stem))


def _string(text: str) -> bytes:
    data = text.encode() + b"\0"
    return struct.pack("<H", len(data)) + data


def write_ct2(path: pathlib.Path, variables: dict[str, np.ndarray], aliases: dict[str, str]) -> None:
    with path.open("wb") as file:
        file.write(struct.pack("<I", 6) + _string("WhisperSpec") + struct.pack("<II", 3, len(variables)))
        for name, value in variables.items():
            file.write(_string(name) + struct.pack("<B", value.ndim) + struct.pack(f"<{value.ndim}I", *value.shape))
            file.write(struct.pack("<BI", _TYPES[value.dtype], value.nbytes) + value.tobytes())
        file.write(struct.pack("<I", len(aliases)))
        for alias, name in aliases.items():
            file.write(_string(alias) + _string(name))


def write_safetensors(path: pathlib.Path, tensors: dict[str, np.ndarray]) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, value in tensors.items():
        header[name] = {"dtype": {2: "F16", 4: "F32"}[value.itemsize], "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            file.write(value.tobytes())


def _json(path: pathlib.Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def transformers_config(size: Size) -> dict[str, object]:
    return {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "torch_dtype": "float16",
            "activation_function": "gelu", "d_model": size.width, "encoder_layers": size.encoder_layers,
            "decoder_layers": size.decoder_layers, "encoder_attention_heads": size.heads,
            "decoder_attention_heads": size.heads, "encoder_ffn_dim": size.hidden, "decoder_ffn_dim": size.hidden,
            "num_mel_bins": size.mels, "vocab_size": size.vocabulary, "max_source_positions": size.audio_positions,
            "max_target_positions": size.text_positions, "scale_embedding": False, "tie_word_embeddings": True,
            "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0, "decoder_start_token_id": 1,
            "suppress_tokens": [1, 2], "begin_suppress_tokens": [3]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--form", choices=["ct2", "transformers", "openai", "all"], default="all")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    size = SIZES[args.size]
    weights = grown_weights(size, args.seed) if args.size.startswith("tiny-") else draw_weights(size, args.seed)
    heads = [[layer, head] for layer in range(size.decoder_layers // 2, size.decoder_layers) for head in range(2)]
    if args.form in ("ct2", "all"):
        folder = args.out / "ct2"
        folder.mkdir(parents=True, exist_ok=True)
        write_ct2(folder / "model.bin", to_ct2(weights, size),
                  {"decoder/projection/weight": "decoder/embeddings/weight"})
        _json(folder / "config.json", {"alignment_heads": heads, "lang_ids": [502, 503, 504, 505, 506],
                                       "suppress_ids": [1, 2, 509, 510, 511], "suppress_ids_begin": [3, 500]})
    if args.size == "tiny":
        weights[_EMBEDDING] = weights[_EMBEDDING][:_TINY_ROWS]
        size = replace(size, vocabulary=_TINY_ROWS)
    if args.form in ("transformers", "all"):
        folder = args.out / "transformers"
        folder.mkdir(parents=True, exist_ok=True)
        write_safetensors(folder / "model.safetensors", weights)
        _json(folder / "config.json", transformers_config(size))
        _json(folder / "generation_config.json", {"alignment_heads": heads, "lang_to_id": {"<|en|>": 5, "<|de|>": 6}})
    if args.form in ("openai", "all"):
        folder = args.out / "openai"
        folder.mkdir(parents=True, exist_ok=True)
        write_openai(folder / "model.pt", weights, size)
        if args.size.startswith("tiny") and args.size != "tiny.en":  # the published ones have a head for 64 of their width, which readers may rely on
            _json(folder / "config.json", {"encoder_attention_heads": size.heads, "decoder_attention_heads": size.heads})


if __name__ == "__main__":
    main()
