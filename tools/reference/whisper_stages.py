#!/usr/bin/env python3
"""Reference outputs of Whisper, stage by stage: transformers' WhisperForConditionalGeneration in f32 on a checkpoint of
tools/checkpoints/whisper.py, FOLDER/transformers -> FOLDER/reference.safetensors.

  sound               [samples] a window of chirps and noise, in 1/32768
  mel                 [frames, mels] of the feature extractor
  conv                [P, D] behind both convolutions, with the positions
  block.I, encoder    [P, D] behind each block, and behind the last norm
  cross_keys.I, cross_values.I   [P, D] of each decoder layer
  tokens, logits      [T] forced, [T, V] behind each
  weights             [layers, heads, T, P] probabilities of the cross-attention

  python3 tools/reference/whisper_stages.py tests/data/whisper          # needs torch, transformers
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import pathlib
import sys

import numpy as np
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import container  # noqa: E402

_RATE = 16000
_TOKENS = 20


def _sound(samples: int) -> np.ndarray:
    """Two chirps that grow and fade, over a little noise; the last tenth is silent."""
    time = np.arange(samples) / _RATE
    rng = np.random.default_rng(11)
    chirps = 0.4 * np.sin(2 * np.pi * (200 + 900 * time) * time) + 0.2 * np.sin(2 * np.pi * (3000 - 500 * time) * time)
    sound = chirps * np.sin(np.pi * time / time[-1]) + 0.01 * rng.standard_normal(samples)
    sound[samples - samples // 10:] = 0
    return np.round(sound * 32767).astype(np.int32)


def stages(folder: pathlib.Path, tokens: np.ndarray | None = None) -> dict[str, np.ndarray]:
    model = transformers.WhisperForConditionalGeneration.from_pretrained(
        folder / "transformers", torch_dtype=torch.float32, attn_implementation="eager").eval()
    config, encoder = model.config, model.model.encoder
    seconds = config.max_source_positions * 2 * 160 // _RATE
    extract = transformers.WhisperFeatureExtractor(feature_size=config.num_mel_bins, chunk_length=seconds)
    sound = _sound(seconds * _RATE)
    mel = extract((sound / 32768).astype(np.float32), sampling_rate=_RATE, return_tensors="pt").input_features
    out: dict[str, np.ndarray] = {"sound": sound, "mel": mel[0].T.numpy()}

    def keep(name: str):
        return lambda _module, _inputs, output: out.__setitem__(
            name, (output[0] if isinstance(output, tuple) else output).reshape(-1, config.d_model).numpy())

    encoder.layers[0].register_forward_pre_hook(
        lambda _module, inputs: out.__setitem__("conv", inputs[0][0].clone().numpy()))
    for i, layer in enumerate(encoder.layers):
        layer.register_forward_hook(keep(f"block.{i}"))
    for i, layer in enumerate(model.model.decoder.layers):
        layer.encoder_attn.k_proj.register_forward_hook(keep(f"cross_keys.{i}"))
        layer.encoder_attn.v_proj.register_forward_hook(keep(f"cross_values.{i}"))
    if tokens is None:
        tokens = np.random.default_rng(12).integers(0, config.vocab_size, _TOKENS)
    with torch.no_grad():
        result = model(input_features=mel, decoder_input_ids=torch.tensor(tokens)[None], output_attentions=True,
                       use_cache=False)
    out["encoder"] = result.encoder_last_hidden_state[0].numpy()
    out["tokens"], out["logits"] = tokens.astype(np.int32), result.logits[0].numpy()
    out["weights"] = np.concatenate([layer.numpy() for layer in result.cross_attentions])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    arrays = {name: np.ascontiguousarray(value) for name, value in stages(args.folder).items()}
    versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    container.save(args.folder / "reference.safetensors", arrays, {"made_by": "tools/reference/whisper_stages.py"} | versions)
    print(json.dumps({name: list(value.shape) for name, value in arrays.items()}))


if __name__ == "__main__":
    main()
