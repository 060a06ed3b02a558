#!/usr/bin/env python3
"""Dump every stage of the codec's decoder of a small Qwen3-TTS checkpoint, by the maker's own classes.

usage: qwen_tts_codec.py DATA       reads DATA/speech_tokenizer, writes DATA/codec.safetensors

needs qwen-tts 0.1.1 and its pins (torch, transformers 4.57.3), safetensors and numpy; in double (norms and angles stay in f32 there),
attention by eager, the whole utterance at once (decoder(codes), not chunked_decode), some weights scaled as below.  Rows are frames, positions or samples, [T, C]; of the long stages only the rows in NAME.rows are kept.
"""
import argparse
import importlib.machinery
import pathlib
import sys
import types

import numpy as np
import safetensors.numpy

FRAMES, SEED = 14, 5
# The last convolution and the last one of each residual unit are scaled: random weights would else make numbers that grow from unit to unit,
# which the makers' own f32 has only to 2e-4, and clip nearly all samples.
SCALE = 0.25
KEPT = 11  # of the long stages each so many rows, which divides none of the rates
LONG = ("decoder.3", "decoder.4", "decoder.5")


def maker():
    # The package imports the unpublished 25 Hz codec, and with it torchaudio, which nothing here calls.
    for name in ("torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi"):
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules.setdefault(name, module)
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Model
    return Qwen3TTSTokenizerV2Model


def stages(decoder, codes):
    """codes [1, K, F] -> rows of each stage, in the decoder's type."""
    import torch
    found = {}

    def note(name, channels_first):
        def hook(_, __, output):
            output = output[0] if isinstance(output, tuple) else getattr(output, "last_hidden_state", output)
            found[name] = (output[0].T if channels_first else output[0]).detach().numpy().copy()
        return hook

    decoder.pre_conv.register_forward_hook(note("pre_conv", True))
    for i, layer in enumerate(decoder.pre_transformer.layers):
        layer.register_forward_hook(note(f"layer.{i}", False))
    decoder.pre_transformer.register_forward_hook(note("pre_transformer", False))
    for i, blocks in enumerate(decoder.upsample):
        blocks[-1].register_forward_hook(note(f"upsample.{i}", True))
    for i, block in enumerate(decoder.decoder[:-1]):
        block.register_forward_hook(note(f"decoder.{i}", True))
    with torch.no_grad():
        found["quantizer"] = decoder.quantizer.decode(codes)[0].T.numpy().copy()
        found["samples"] = decoder(codes)[0].T.numpy().copy()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    data = parser.parse_args().data
    import torch
    torch.set_num_threads(1)
    model = maker().from_pretrained(data / "speech_tokenizer", dtype=torch.float32, attn_implementation="eager")
    decoder = model.decoder.eval().double()
    config = decoder.config
    with torch.no_grad():
        for parameter in decoder.decoder[-1].parameters():
            parameter.mul_(SCALE)
        for block in decoder.decoder[1:-2]:
            for unit in block.block[2:]:
                unit.conv2.conv.weight.mul_(SCALE)
    codes = np.random.default_rng(SEED).integers(0, config.codebook_size, (FRAMES, config.num_quantizers), dtype=np.int32)
    codes[1], codes[2] = 0, config.codebook_size - 1
    arrays = {"codes": codes}
    for name, rows in stages(decoder, torch.from_numpy(codes).long().T[None]).items():
        if name in LONG:
            arrays[f"codec.{name}.rows"] = np.arange(0, len(rows), KEPT, dtype=np.int32)
            rows = rows[::KEPT]
        arrays[f"codec.{name}"] = np.ascontiguousarray(rows, dtype=np.float32)
        print(f"codec.{name}: {rows.shape}, largest {np.abs(rows).max():.3g}")
    safetensors.numpy.save_file(arrays, data / "codec.safetensors")
    print(f"{np.mean(np.abs(arrays['codec.samples']) >= 1):.2%} of the samples are clipped")
    print(f"{(data / 'codec.safetensors').stat().st_size} bytes")


if __name__ == "__main__":
    main()
