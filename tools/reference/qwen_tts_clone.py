#!/usr/bin/env python3
"""Write what Qwen3-TTS makes of a reference recording: the speaker encoder's stages and x-vector, the codec encoder's stages and codes.

usage: qwen_tts_clone.py MODEL CODEC OUT.safetensors        MODEL: a checkpoint of kind base; CODEC: its speech_tokenizer

needs qwen-tts 0.1.1 and what it pins (transformers 4.57.3), torch, numpy, safetensors.  All is f32, attention eager.  The recordings are
made of whole numbers, so that a test makes the same ones (recording() here and in tests/models/qwen_tts).  Of long stages some rows are
kept, whose numbers NAME.rows tells.  Lengths that are no multiple of a frame show how the maker ends a recording.
"""
import argparse
import importlib.machinery
import pathlib
import sys
import tempfile
import types

import numpy as np
import safetensors.numpy

SHORT, LONG = 32880, 290400  # samples: 1.37 s end within a frame; 12.1 s are more positions than the file's window
LENGTHS = (1, 700, 1919, 1920, 1921, 2400, 4799, 9601, 12345)
KEPT_ROWS = 48


def stand_in_for_torchaudio():
    """The package imports it for a codec that is not published."""
    names = ("torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi")
    for name in names:
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules[name] = module
    sys.modules[names[0]].compliance, sys.modules[names[1]].kaldi = sys.modules[names[1]], sys.modules[names[2]]


def recording(samples):
    """Noise and two triangles, whose levels change every 50 ms; whole numbers of 16 bits divided by 2^15."""
    out, state, phases = np.empty(samples, np.int64), 1, [0, 0]
    noise_level = first_level = second_level = 0
    for i in range(samples):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        if i % 1200 == 0:
            noise_level, first_level, second_level = (state >> 28), (state >> 24) & 15, (state >> 20) & 15
        phases[0] = (phases[0] + 150 + 20 * first_level) & 0xFFFF
        phases[1] = (phases[1] + 1100 + 230 * second_level) & 0xFFFF
        first, second = (abs(phase - 32768) - 16384 for phase in phases)
        noise = (state >> 16) - 32768
        out[i] = (noise * noise_level + first * first_level * 3 + second * second_level) // 64
    return out.astype(np.float32) / np.float32(32768)


class Stages:
    def __init__(self):
        self.arrays = {}

    def keep(self, name, rows):
        rows = np.ascontiguousarray(rows.detach().float().numpy())
        if len(rows) > KEPT_ROWS * 3:
            kept = np.unique(np.linspace(0, len(rows) - 1, KEPT_ROWS).round().astype(np.int64))
            self.arrays[name + ".rows"], rows = kept.astype(np.int32), np.ascontiguousarray(rows[kept])
        self.arrays[name] = rows

    def hook(self, module, name, rows=lambda output: output[0].T):
        """Rows of the module's output, in time order; [1, C, T] by default."""
        return module.register_forward_hook(lambda _, __, output: self.keep(name, rows(output)))


def load(model, codec):
    """The maker's loader wants the codec in a folder of the model."""
    import torch
    from qwen_tts import Qwen3TTSModel

    with tempfile.TemporaryDirectory() as folder:
        whole = pathlib.Path(folder)
        for file in model.iterdir():
            (whole / file.name).symlink_to(file.resolve())
        if not (whole / "speech_tokenizer").exists():
            (whole / "speech_tokenizer").symlink_to(codec.resolve())
        return Qwen3TTSModel.from_pretrained(str(whole), device_map="cpu", dtype=torch.float32, attn_implementation="eager").model


def speaker_stages(model, sound, prefix, stages):
    import torch
    from qwen_tts.core.models import modeling_qwen3_tts as maker

    spectrum = maker.mel_spectrogram

    def seen(*args, **kwargs):
        mel = spectrum(*args, **kwargs)
        stages.keep(prefix + ".mel", mel[0].T)
        return mel

    encoder = model.speaker_encoder
    hooks = [stages.hook(block, f"{prefix}.block.{i}") for i, block in enumerate(encoder.blocks)]
    hooks += [stages.hook(encoder.mfa, prefix + ".mfa"), stages.hook(encoder.asp, prefix + ".asp")]
    maker.mel_spectrogram = seen
    with torch.no_grad():
        stages.keep(prefix + ".x_vector", model.extract_speaker_embedding(sound, 24000)[None])
    maker.mel_spectrogram = spectrum
    for hook in hooks:
        hook.remove()


def codes_of(codec, sound):
    import torch

    samples = torch.from_numpy(sound)[None]
    with torch.no_grad():
        return codec.encode(samples, torch.ones_like(samples, dtype=torch.long)).audio_codes[0].numpy().astype(np.int32)


def codec_stages(codec, sound, prefix, stages):
    encoder = codec.encoder
    hooks = []
    for i, layer in enumerate(encoder.encoder.layers):
        if type(layer).__name__ != "ELU":
            hooks.append(stages.hook(layer, f"{prefix}.seanet.{i}"))
    for i, layer in enumerate(encoder.encoder_transformer.layers):
        hooks.append(stages.hook(layer, f"{prefix}.transformer.{i}", lambda output: output[0][0]))
    hooks.append(stages.hook(encoder.downsample, prefix + ".downsample"))
    stages.arrays[prefix + ".codes"] = np.ascontiguousarray(codes_of(codec, sound))
    for hook in hooks:
        hook.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("codec", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    stand_in_for_torchaudio()
    model = load(args.model, args.codec)
    codec = model.speech_tokenizer.model
    stages, sound = Stages(), recording(LONG)
    stages.arrays["samples"] = sound[:4000:40].copy()  # so that a test knows that its recording is this one
    for name, count in (("short", SHORT), ("long", LONG)):
        speaker_stages(model, sound[:count], name, stages)
        codec_stages(codec, sound[:count], name, stages)
    for count in LENGTHS:
        stages.arrays[f"codes.{count}"] = np.ascontiguousarray(codes_of(codec, sound[:count]))
    safetensors.numpy.save_file(stages.arrays, args.out)
    print(f"{len(stages.arrays)} arrays, {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
