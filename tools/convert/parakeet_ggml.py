#!/usr/bin/env python3
"""Writes whisper.cpp's Parakeet file from a .nemo archive of a TDT model whose encoder has no biases, so that both run
the same weights; whisper.cpp's own program quantises it:

  python3 tools/convert/parakeet_ggml.py tdt.nemo ggml-tdt.bin       # needs numpy, torch and yaml
  parakeet-quantize ggml-tdt.bin ggml-tdt-q8_0.bin q8_0

The file is that of whisper.cpp's models/convert-parakeet-to-ggml.py: magic "ggml", fifteen numbers, the mel filters, the
window, the durations, the tokens as bytes, then each tensor with its rank, the length of its name, its type (0 f32,
1 f16) and its dimensions from the last to the first.  Matrices are F16; vectors and the convolutions of single
channels F32.  Of the LSTM's two biases it wants the sum, and its gates in the order input, forget, output, cell.
"""

from __future__ import annotations

import io
import pathlib
import struct
import tarfile

import numpy as np
import torch
import yaml

import ggml

_LSTM = "decoder.prediction.dec_rnn.lstm."
_FILTERS, _WINDOW = "preprocessor.featurizer.fb", "preprocessor.featurizer.window"


def read_nemo(path: pathlib.Path) -> tuple[dict, dict[str, np.ndarray], list[str]]:
    with tarfile.open(path) as archive:
        def member(end: str) -> bytes:
            return archive.extractfile(next(n for n in archive.getnames() if n.endswith(end))).read()

        config = yaml.safe_load(member("model_config.yaml"))
        weights = torch.load(io.BytesIO(member("model_weights.ckpt")), map_location="cpu", weights_only=True)
        tokens = [line.split("\t")[0] for line in member("tokenizer.vocab").decode().splitlines()]
    return config, {name: value.float().numpy() for name, value in weights.items()}, tokens


def header(config: dict) -> list[int]:
    encoder, decoder, defaults = config["encoder"], config["decoder"], config["model_defaults"]
    if encoder["use_bias"]:
        raise SystemExit("whisper.cpp's encoder has no biases, this one has")
    return [ggml.MAGIC, decoder["vocab_size"], encoder["pos_emb_max_len"], encoder["d_model"], encoder["n_heads"],
            encoder["n_layers"], encoder["feat_in"], 1, config["preprocessor"]["n_fft"], encoder["subsampling_factor"],
            encoder["subsampling_conv_channels"], encoder["conv_kernel_size"], decoder["prednet"]["pred_hidden"],
            decoder["prednet"]["pred_rnn_layers"], len(defaults["tdt_durations"]),
            config["decoding"]["greedy"]["max_symbols"]]


def front_end(config: dict, weights: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mel filters and window, which some archives leave to the configuration."""
    preprocessor = config["preprocessor"]
    samples = int(preprocessor["window_size"] * preprocessor["sample_rate"])
    filters = weights.get(_FILTERS, ggml.mel_filters(preprocessor["features"], preprocessor["n_fft"]))
    return filters.squeeze(), weights.get(_WINDOW, np.hanning(samples))


def tensors(weights: dict[str, np.ndarray]):
    """Name and value of each, in whisper.cpp's form."""
    for name, value in weights.items():
        if name in (_FILTERS, _WINDOW) or name.startswith(_LSTM + "bias_ih"):
            continue
        if value.ndim != 4:
            value = value.squeeze()
        if name.startswith(_LSTM):
            if "bias_hh" in name:
                value = value + weights[name.replace("bias_hh", "bias_ih")]
                name = name.replace("bias_hh", "bias_h")
            in_, forget, cell, out = np.split(value, 4)
            value = np.concatenate([in_, forget, out, cell])
        elif "pre_encode.conv" in name and name.endswith("bias"):
            value = value.reshape(1, -1, 1, 1)
        yield name, value


def write_ggml(path: pathlib.Path, config: dict, weights: dict[str, np.ndarray], tokens: list[str]) -> None:
    filters, window = front_end(config, weights)
    durations = config["model_defaults"]["tdt_durations"]
    with path.open("wb") as file:
        file.write(struct.pack("<16i", *header(config)))
        file.write(struct.pack("<2i", *filters.shape) + filters.astype("<f4").tobytes())
        file.write(struct.pack("<i", window.size) + window.astype("<f4").tobytes())
        file.write(struct.pack(f"<{len(durations)}I", *durations))
        file.write(struct.pack("<i", len(tokens)))
        for token in tokens:
            file.write(struct.pack("<i", len(token.encode())) + token.encode())
        for name, value in tensors(weights):
            wide = value.ndim < 2 or value.ndim == 4 or "bias" in name or "norm" in name or "depthwise" in name
            ggml.write_tensor(file, name, value, wide)


def main() -> None:
    args = ggml.parse_paths(__doc__)
    write_ggml(args.out, *read_nemo(args.model))


if __name__ == "__main__":
    main()
