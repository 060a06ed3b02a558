#!/usr/bin/env python3
"""Writes small checkpoints of transformers' own classes of these models, with seeded random weights.

OUT/NAME/ for each model of MODELS, as save_pretrained() writes it: config.json, model.safetensors (of `nemotron`
several with an index), tokenizer.json and processor_config.json.  What defaults hide is drawn at random.

  python3 tools/checkpoints/transducer_transformers.py --out tests/data/transducer/transformers
"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys
import tempfile

import torch
import transformers
from tokenizers import AddedToken
from transformers.convert_slow_tokenizer import ParakeetConverter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from checkpoints.transducer import tokenizer_model  # noqa: E402

LABELS = 12
ENCODER = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24, conv_kernel_size=5,
               subsampling_factor=8, subsampling_conv_channels=4, num_mel_bins=16)
DECODER = dict(vocab_size=LABELS + 1, blank_token_id=LABELS, decoder_hidden_size=8)
LOOK_AHEADS = [1, 0, 6, 13]
PROMPTS = {"en-US": 0, "en": 0, "de-DE": 1, "auto": 3}


def ctc() -> transformers.PreTrainedModel:
    return transformers.ParakeetForCTC(transformers.ParakeetCTCConfig(
        vocab_size=LABELS + 1, pad_token_id=LABELS, encoder_config=dict(ENCODER, subsampling_factor=4)))


def rnnt() -> transformers.PreTrainedModel:
    return transformers.ParakeetForRNNT(transformers.ParakeetRNNTConfig(
        **DECODER, num_decoder_layers=1, max_symbols_per_step=3, encoder_config=ENCODER))


def tdt() -> transformers.PreTrainedModel:
    plain = dict(attention_bias=False, convolution_bias=False, scale_input=False)
    return transformers.ParakeetForTDT(transformers.ParakeetTDTConfig(
        **DECODER, num_decoder_layers=2, durations=[0, 1, 2, 3, 4], encoder_config=dict(ENCODER, **plain)))


def nemotron() -> transformers.PreTrainedModel:
    streaming = dict(sliding_window=15, default_num_lookahead_tokens=LOOK_AHEADS[0])
    return transformers.NemotronAsrStreamingForRNNT(transformers.NemotronAsrStreamingConfig(
        **DECODER, num_decoder_layers=2, encoder_config=dict(ENCODER, **streaming)))


def nemotron3_5() -> transformers.PreTrainedModel:
    streaming = dict(sliding_window=15, default_num_lookahead_tokens=LOOK_AHEADS[0])
    return transformers.Nemotron3_5AsrForRNNT(transformers.Nemotron3_5AsrConfig(
        **DECODER, num_decoder_layers=1, num_prompts=max(PROMPTS.values()) + 2, prompt_intermediate_size=12,
        default_prompt_id=PROMPTS["auto"], encoder_config=dict(ENCODER, **streaming)))


# With seeds that give several labels.
MODELS = {"ctc": (ctc, 9), "rnnt": (rnnt, 7), "tdt": (tdt, 11), "nemotron": (nemotron, 7),
          "nemotron3_5": (nemotron3_5, 9)}


def draw(model: torch.nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def normal(value: torch.Tensor, std: float, mean: float = 0.0) -> None:
        value.copy_(mean + std * torch.randn(value.shape, generator=generator))

    for name, value in model.named_parameters():
        if value.dim() > 1:
            normal(value, 0.5 if "bias_" in name else 1 / math.sqrt(value[0].numel()))
        else:
            normal(value, 0.2, 1.0 if "norm" in name and name.endswith("weight") else 0.0)
    for name, value in model.named_buffers():
        if name.endswith("running_mean"):
            normal(value, 0.2)
        if name.endswith("running_var"):
            normal(value, 0.1, 1.0)
    if hasattr(model, "joint"):
        model.decoder.embedding.weight[LABELS] = 0
        # Labels that change with what was said, and about half of the decisions blank.
        model.decoder.embedding.weight *= 3
        model.joint.head.weight *= 2
        model.joint.head.weight[LABELS] *= 0.3
        model.joint.head.bias[LABELS] = 1.7
        if model.joint.head.bias.numel() > LABELS + 1:
            # generate() takes the largest of labels and durations together: durations must stay below.
            model.joint.head.bias[LABELS + 1:] += torch.tensor([-0.5, 0.3, 0.5, 0.3, 0.2]) - 16


def pieces() -> list[tuple[str, int]]:
    """Texts and SentencePiece types; letters stand behind what they make."""
    return [("<unk>", 2), ("<|en|>", 4), ("\u2581ab", 1), ("cd", 1), ("\u2581abcd", 1), ("\u2581a", 1), ("\u2581", 1),
            ("a", 1), ("b", 1), ("c", 1), ("d", 1), (".", 1)]


def tokenizer(blank: str) -> transformers.PreTrainedTokenizerBase:
    """As transformers converts a SentencePiece model; the blank stands behind its pieces."""
    with tempfile.NamedTemporaryFile(suffix=".model") as file:
        file.write(tokenizer_model(pieces()))
        file.flush()
        converted = ParakeetConverter(file.name).converted()
    out = transformers.ParakeetTokenizer(tokenizer_object=converted, clean_up_tokenization_spaces=False)
    out.add_tokens([AddedToken(blank, normalized=False, special=True)])
    out.add_special_tokens(dict(pad_token=AddedToken(blank, normalized=False, special=True),
                                unk_token=AddedToken("<unk>", normalized=False, special=True)))
    return out


def processor(name: str) -> transformers.ProcessorMixin:
    features = dict(feature_size=ENCODER["num_mel_bins"], sampling_rate=16000)
    if name == "nemotron":
        return transformers.NemotronAsrStreamingProcessor(
            transformers.NemotronAsrStreamingFeatureExtractor(**features), tokenizer("<blank>"),
            supported_num_lookahead_tokens=LOOK_AHEADS)
    if name == "nemotron3_5":
        return transformers.Nemotron3_5AsrProcessor(
            transformers.NemotronAsrStreamingFeatureExtractor(**features), tokenizer("<blank>"),
            supported_num_lookahead_tokens=LOOK_AHEADS, prompt_dictionary=PROMPTS,
            num_prompts=max(PROMPTS.values()) + 2)
    return transformers.ParakeetProcessor(transformers.ParakeetFeatureExtractor(**features),
                                          tokenizer("<pad>" if name == "ctc" else "<blank>"), decoder_type=name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    for name, (make, seed) in MODELS.items():
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        model = make().eval()
        with torch.no_grad():
            draw(model, seed)
        model.to(torch.bfloat16).save_pretrained(folder, max_shard_size="3KB" if name == "nemotron" else "1GB")
        processor(name).save_pretrained(folder)
        for unread in ("generation_config.json", "tokenizer_config.json"):
            (folder / unread).unlink(missing_ok=True)
        for path in folder.iterdir():
            path.chmod(0o644)
        print(name, sum(p.numel() for p in model.parameters()), "numbers", sorted(p.name for p in folder.iterdir()))


if __name__ == "__main__":
    main()
