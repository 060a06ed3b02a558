#!/usr/bin/env python3
"""Writes FastConformer and Conformer checkpoints with seeded random weights in the published containers.

OUT/NAME.nemo for each family of FAMILIES (a tar of model_config.yaml, model_weights.ckpt as torch.save writes it, and
the tokenizer), and OUT/tdt_mlx/ with the weights of `tdt` as parakeet-mlx stores them (config.json, safetensors).

--size tiny keeps each family's structure with small dimensions; 110m, 0.6b and the rest of SIZES have the published
ones, with --context where a streaming family's attention reaches other than published.  What defaults hide is drawn at
random: norms, running statistics, biases of attention.  Same seed, same bytes.

  python3 tools/checkpoints/transducer.py --out tests/data/transducer
  python3 tools/checkpoints/transducer.py --size 110m --family tdt_ctc --out DIR
  python3 tools/checkpoints/transducer.py --size 0.6b --family hybrid_streaming --context 70,1 --context 70,0 --out DIR
  python3 tools/checkpoints/transducer.py --size 1.1b --family rnnt_1_1b --out DIR      (6 GB of memory)
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import hashlib
import io
import json
import math
import pathlib
import struct
import tarfile
import tempfile
import zlib

import torch
import yaml


@dataclasses.dataclass
class Family:
    """A row of the table of published models: what sets it apart from the others."""
    head: str = "tdt"             # tdt, rnnt or ctc
    aux_ctc: bool = False
    mels: int = 80
    xscaling: bool = False
    bias: bool = True
    lstm: int = 1
    streaming: bool = False       # causal, LayerNorm, chunked attention, features as they are
    regular: bool = False         # of those: attention that sees so many frames on both sides of each, not chunks
    contexts: tuple = ((-1, -1),)
    local: bool = False           # attention as the maker's for long recordings, which sees its neighbours alone
    conformer: bool = False       # x4 striding, full convolutions
    kernel: int = 9
    characters: bool = False
    own_bank: bool = False        # the bank and the window are in the file
    dtype: torch.dtype = torch.float32
    joint_index: int = 2
    packed: bool = False          # in gzip
    tiny: dict = dataclasses.field(default_factory=dict)  # what differs from SIZES["tiny"]
    full: dict = dataclasses.field(default_factory=dict)  # what is published, where the fields say what is small
    tiny_seed: int | None = None  # one with several labels, unless another is asked for
    many: bool = False            # labels, with what gzip packs well: rows that return, few scores, empty lists
    lively: bool = False          # labels change with what was said and what is heard
    listed: bool = True           # the configuration lists the labels
    specials: tuple = ()
    blank: float = 0.67           # how likely the blank is
    menus: tuple = ()             # left, chunk, right: chunks with frames behind them
    prompts: tuple = ()           # languages that a prompt may name, some of them twice


SHORT = dict(mels=16, own_bank=True, dtype=torch.bfloat16, packed=True, lively=True,  # files of few bytes
             full=dict(mels=80, own_bank=False))
MADE_BANK = SHORT | dict(mels=80, own_bank=False, tiny=dict(channels=4), full={})
SHORT_128 = SHORT | dict(full=dict(mels=128, own_bank=False))
# As nemotron-3.5 has them: 128 rows, and so many frames at once.
MULTILINGUAL = dict(prompts=(("en-US", 0), ("de-DE", 9), ("auto", 101), ("zu-ZA", 126)),
                    contexts=((56, 3), (56, 0), (56, 6), (56, 13)))
FAMILIES = {
    "tdt": Family(mels=128, bias=False, lstm=2, dtype=torch.bfloat16),
    "tdt_ctc": Family(aux_ctc=True, dtype=torch.float16, packed=True),
    "rnnt": Family(head="rnnt", xscaling=True, lstm=2, joint_index=1, packed=True, tiny=dict(layers=1)),
    "hybrid_streaming": Family(head="rnnt", aux_ctc=True, xscaling=True, streaming=True,
                               contexts=((6, 1), (6, 0), (6, 2)), dtype=torch.float16, packed=True,
                               full=dict(contexts=((70, 1), (70, 0), (70, 6), (70, 13)))),
    "eou": Family(head="rnnt", mels=128, bias=False, streaming=True, contexts=((6, 1),), dtype=torch.bfloat16,
                  packed=True, specials=("<EOU>", "<EOB>"), full=dict(contexts=((70, 1),))),
    "conformer_ctc": Family(head="ctc", mels=16, xscaling=True, conformer=True, kernel=7, characters=True,
                            own_bank=True, contexts=((5, 3),), dtype=torch.float16, tiny=dict(layers=1),
                            full=dict(mels=80, own_bank=False, kernel=31, contexts=((-1, -1),))),
    "unified": Family(head="rnnt", mels=16, xscaling=True, lstm=2, dtype=torch.bfloat16, packed=True, own_bank=True,
                      lively=True, blank=0.8, tiny_seed=25, menus=((5, 6), (1, 2, 3), (0, 1, 2)),
                      full=dict(mels=128, own_bank=False, lively=False, blank=0.2,
                                menus=((70,), (1, 2, 7, 13), (0, 1, 2, 3, 4, 7, 13)))),
    "prompt": Family(head="rnnt", mels=16, lstm=1, streaming=True, contexts=((6, 2), (6, 0)), dtype=torch.bfloat16,
                     packed=True, own_bank=True, blank=0.2, tiny=dict(layers=1), specials=("<en-US>",),
                     prompts=(("en-US", 0), ("en", 0), ("de-DE", 2), ("auto", 3))),
    # Sizes S and M: four heads, and a prediction network that is wider than the encoder.
    "small": Family(head="rnnt", xscaling=True, blank=0.8, tiny_seed=10,
                    tiny=dict(layers=1, width=12, heads=4, channels=4, hidden=20), **SHORT),
    "medium": Family(xscaling=True, blank=0.4, tiny_seed=24,
                     tiny=dict(layers=1, heads=4, channels=4, hidden=20), **SHORT),
    "conformer_rnnt": Family(head="rnnt", xscaling=True, conformer=True, kernel=31, blank=1.2, tiny_seed=20,
                             tiny=dict(layers=1, width=8, hidden=8), **SHORT),
    "conformer_streaming": Family(head="rnnt", xscaling=True, conformer=True, kernel=31, streaming=True,
                                  contexts=((6, 2), (6, 0)), blank=0.8, tiny_seed=27,
                                  tiny=dict(layers=1, width=8, hidden=8), **SHORT),
    # The vocabularies of parakeet-tdt-0.6b-v3 and nemotron-3.5.
    "tdt_v3": Family(bias=False, lstm=2, many=True, blank=0.4, tiny_seed=23,
                     tiny=dict(layers=1, width=8, hidden=4, channels=4, vocabulary=8192), **SHORT_128),
    "prompt_multilingual": Family(head="rnnt", lstm=2, streaming=True, contexts=((6, 2), (6, 0)), many=True,
                                  prompts=(("en-US", 0), ("auto", 1)), listed=False, blank=0.4, tiny_seed=26,
                                  tiny=dict(layers=1, width=8, hidden=4, channels=4, vocabulary=13088),
                                  **(SHORT_128 | dict(full=SHORT_128["full"] | MULTILINGUAL))),
    # What sets the models of 1.1 billion apart from the smaller ones, but for their 42 blocks.
    "rnnt_1_1b": Family(head="rnnt", xscaling=True, lstm=2, blank=1.1, tiny_seed=25, **MADE_BANK),
    "tdt_1_1b": Family(lstm=2, blank=0.4, tiny_seed=25, **MADE_BANK),
    "tdt_ctc_1_1b": Family(aux_ctc=True, lstm=2, blank=0.4, tiny_seed=20, **MADE_BANK),
    "xxl": Family(head="rnnt", lstm=2, kernel=5, blank=1.1, tiny_seed=28, **MADE_BANK),
    # nemotron-speech-streaming: a choice of look-aheads, as 13, 6, 1 and 0 of 70 frames.
    "nemotron": Family(head="rnnt", lstm=2, streaming=True, contexts=((12, 5), (12, 3), (12, 1), (12, 0)),
                       blank=1.1, tiny_seed=29,
                       **(MADE_BANK | dict(mels=128, full=dict(contexts=((70, 13), (70, 6), (70, 1), (70, 0)))))),
    # Attention that sees so many frames on both sides, as it is switched on for long recordings; and more on one side.
    "local_attention": Family(xscaling=True, local=True, contexts=((3, 3),), blank=0.4, tiny_seed=20,
                              **(MADE_BANK | dict(full=dict(contexts=((128, 128),))))),
    "regular": Family(head="rnnt", xscaling=True, contexts=((4, 2), (6, 0)), blank=1.1, tiny_seed=25, **MADE_BANK),
    "regular_streaming": Family(head="rnnt", streaming=True, regular=True, contexts=((6, 0), (4, 2), (3, 1)), blank=1.1,
                                tiny_seed=23, **(MADE_BANK | dict(tiny=dict(layers=3, channels=4)))),
    "fastconformer_ctc": Family(head="ctc", xscaling=True, tiny_seed=20, **MADE_BANK),
}


@dataclasses.dataclass
class Size:
    width: int
    layers: int
    heads: int
    channels: int
    vocabulary: int
    hidden: int                   # of predictor and joint network


SIZES = {"tiny": Size(16, 2, 2, 8, 24, 16), "110m": Size(512, 17, 8, 256, 1024, 640),
         "0.6b": Size(1024, 24, 8, 256, 1024, 640), "0.6b-v3": Size(1024, 24, 8, 256, 8192, 640),
         "0.6b-3.5": Size(1024, 24, 8, 256, 13088, 640), "1.1b": Size(1024, 42, 8, 256, 1024, 640),
         "s": Size(176, 16, 4, 256, 1024, 320), "m": Size(256, 16, 4, 256, 1024, 320)}


class Draw:
    def __init__(self, seed: int, family: Family):
        self.seed, self.family, self.tensors = seed, family, {}

    def normal(self, name: str, *shape: int, std: float | None = None, mean: float = 0.0) -> None:
        # Each tensor has a generator of its own, so that a change to one leaves the others' numbers.
        generator = torch.Generator().manual_seed(self.seed * 1000003 + zlib.crc32(name.encode()))
        fan = math.prod(shape[1:]) if len(shape) > 1 else 1
        scale = std if std is not None else 1.0 / math.sqrt(fan)
        self.tensors[name] = (mean + torch.randn(*shape, generator=generator) * scale).to(self.family.dtype)

    def linear(self, name: str, out: int, inner: int, bias: bool = True, taps: int = 0) -> None:
        self.normal(name + ".weight", out, inner, *((taps,) if taps else ()))
        if bias:
            self.normal(name + ".bias", out, std=0.1)

    def norm(self, name: str, width: int) -> None:
        self.normal(name + ".weight", width, std=0.2, mean=1.0)
        self.normal(name + ".bias", width, std=0.2)


def subsampled(mels: int, stages: int, causal: bool) -> int:
    for _ in range(stages):
        mels = mels // 2 + 1 if causal else (mels + 1) // 2
    return mels


def encoder_tensors(draw: Draw, family: Family, size: Size) -> None:
    d, prefix = size.width, "encoder.pre_encode."
    channels = d if family.conformer else size.channels
    draw.normal(prefix + "conv.0.weight", channels, 1, 3, 3)
    draw.normal(prefix + "conv.0.bias", channels, std=0.1)
    if family.conformer:
        draw.normal(prefix + "conv.2.weight", channels, channels, 3, 3)
        draw.normal(prefix + "conv.2.bias", channels, std=0.1)
    else:
        for depthwise, pointwise in ((2, 3), (5, 6)):
            draw.normal(f"{prefix}conv.{depthwise}.weight", channels, 1, 3, 3)
            draw.normal(f"{prefix}conv.{depthwise}.bias", channels, std=0.1)
            draw.normal(f"{prefix}conv.{pointwise}.weight", channels, channels, 1, 1)
            draw.normal(f"{prefix}conv.{pointwise}.bias", channels, std=0.1)
    draw.linear(prefix + "out", d, channels * subsampled(family.mels, 2 if family.conformer else 3, family.streaming))
    for i in range(size.layers):
        p = f"encoder.layers.{i}."
        for name in ("norm_feed_forward1", "norm_self_att", "norm_conv", "norm_feed_forward2", "norm_out"):
            draw.norm(p + name, d)
        for name in ("feed_forward1", "feed_forward2"):
            draw.linear(p + name + ".linear1", 4 * d, d, family.bias)
            draw.linear(p + name + ".linear2", d, 4 * d, family.bias)
        for name in ("q", "k", "v", "out"):
            draw.linear(p + "self_attn.linear_" + name, d, d, family.bias)
        draw.linear(p + "self_attn.linear_pos", d, d, False)
        for name in ("u", "v"):
            draw.normal(p + "self_attn.pos_bias_" + name, size.heads, d // size.heads, std=0.5)
        draw.linear(p + "conv.pointwise_conv1", 2 * d, d, family.bias, taps=1)
        draw.linear(p + "conv.depthwise_conv", d, 1, family.bias, taps=family.kernel)
        draw.linear(p + "conv.pointwise_conv2", d, d, family.bias, taps=1)
        draw.norm(p + "conv.batch_norm", d)
        if not family.streaming:
            draw.normal(p + "conv.batch_norm.running_mean", d, std=0.2)
            draw.normal(p + "conv.batch_norm.running_var", d, std=0.2)
            running = draw.tensors[p + "conv.batch_norm.running_var"]
            draw.tensors[p + "conv.batch_norm.running_var"] = running.abs() + 0.5
            draw.tensors[p + "conv.batch_norm.num_batches_tracked"] = torch.tensor(1)


def head_tensors(draw: Draw, family: Family, size: Size) -> None:
    d, hidden, labels = size.width, size.hidden, size.vocabulary + len(family.specials)
    if family.head == "ctc" or family.aux_ctc:
        name = "decoder" if family.head == "ctc" else "ctc_decoder"
        draw.linear(name + ".decoder_layers.0", labels + 1, d, taps=1)
        if family.lively:  # some frames say nothing
            draw.tensors[name + ".decoder_layers.0.bias"][labels] += 1.5
    if family.head == "ctc":
        return
    draw.normal("decoder.prediction.embed.weight", labels + 1, hidden, std=1.0)
    draw.tensors["decoder.prediction.embed.weight"][labels] = 0
    for k in range(family.lstm):
        for name, shape in (("weight_ih", (4 * hidden, hidden)), ("weight_hh", (4 * hidden, hidden)),
                            ("bias_ih", (4 * hidden,)), ("bias_hh", (4 * hidden,))):
            draw.normal(f"decoder.prediction.dec_rnn.lstm.{name}_l{k}", *shape, std=1 / math.sqrt(hidden))
    draw.linear("joint.enc", hidden, d)
    draw.linear("joint.pred", hidden, hidden)
    name = f"joint.joint_net.{family.joint_index}"
    outputs = labels + 1 + (5 if family.head == "tdt" else 0)
    draw.linear(name, outputs, hidden)
    if family.lively:
        for tensor in [t for t in draw.tensors if "lstm.weight" in t or t in ("joint.enc.weight", "joint.pred.weight")]:
            draw.tensors[tensor] *= 3
    if family.many:
        # No two labels have both a row and a bias in common.
        for table, period in (("decoder.prediction.embed.weight", 127), (name + ".weight", 251), (name + ".bias", 509)):
            values = draw.tensors[table]
            values[:labels] = values[torch.arange(labels) % period]
    # About half of the decisions are blank, and durations of 1 to 4 are favoured, as in speech.
    weight, bias = draw.tensors[name + ".weight"], draw.tensors[name + ".bias"]
    weight[labels] *= 0.3
    bias[labels] = family.blank * math.sqrt(2 * math.log(labels))
    if family.head == "tdt":
        bias[labels + 1:] += torch.tensor([-0.5, 0.3, 0.5, 0.3, 0.2])


def prompt_tensors(draw: Draw, family: Family, size: Size) -> None:
    count = max(index for _, index in family.prompts) + 2
    draw.linear("prompt_kernel.0", 2 * size.width, size.width + count)
    draw.linear("prompt_kernel.2", size.width, 2 * size.width)


def mel_bank(mels: int) -> torch.Tensor:
    """Slaney's, as the maker stores it: [1, mels, 257]."""
    def to_mel(f: float) -> float:
        return f * 3 / 200 if f < 1000 else 15 + math.log(f / 1000) / (math.log(6.4) / 27)

    def to_hz(m: float) -> float:
        return m * 200 / 3 if m < 15 else 1000 * math.exp((math.log(6.4) / 27) * (m - 15))

    points = [to_hz(to_mel(8000) * i / (mels + 1)) for i in range(mels + 2)]
    bins = torch.arange(257) * 16000 / 512
    rows = [torch.clamp(torch.minimum((bins - a) / (b - a), (c - bins) / (c - b)), min=0) * 2 / (c - a)
            for a, b, c in zip(points, points[1:], points[2:])]
    return torch.stack(rows)[None]


def state_dict(family: Family, size: Size, seed: int) -> dict[str, torch.Tensor]:
    draw = Draw(seed, family)
    if family.own_bank:
        draw.tensors["preprocessor.featurizer.window"] = torch.hann_window(400, periodic=False)
        draw.tensors["preprocessor.featurizer.fb"] = mel_bank(family.mels)
    encoder_tensors(draw, family, size)
    head_tensors(draw, family, size)
    if family.prompts:
        prompt_tensors(draw, family, size)
    return draw.tensors


def pieces_of(family: Family, size: Size) -> list[tuple[str, int]]:
    """Texts and SentencePiece types: three letters each, every third begins a word."""
    def text(i: int) -> str:
        return ("\u2581" if i % 3 == 0 else "") + "".join(chr(97 + (i // 26**j) % 26) for j in range(3))
    return ([("<unk>", 2)] + [(text(i), 1) for i in range(1, size.vocabulary)] + [(s, 4) for s in family.specials])


def tokenizer_model(pieces: list[tuple[str, int]], same_scores: int = 1) -> bytes:
    """A SentencePiece model; so many pieces have one score."""
    def number(n: int) -> bytes:
        out = b""
        while True:
            low, n = n & 127, n >> 7
            out += bytes([low | (128 if n else 0)])
            if not n:
                return out

    def field(index: int, content: bytes) -> bytes:
        return number(index << 3 | 2) + number(len(content)) + content

    out = b""
    for i, (text, kind) in enumerate(pieces):
        score = struct.pack("<f", -float(i // same_scores))
        out += field(1, field(1, text.encode()) + b"\x15" + score + b"\x18" + number(kind))
    return out + field(2, b"\x18\x02\x20" + number(len(pieces))) + field(3, field(1, b"identity"))


def encoder_config(family: Family, size: Size) -> dict:
    contexts = [list(c) for c in family.contexts]
    unified = dict(att_chunk_context_size=[list(menu) for menu in family.menus], conv_context_style="dcc",
                   att_context_style="chunked_limited_with_rc") if family.menus else {}
    return dict(
        _target_="nemo.collections.asr.modules.ConformerEncoder", feat_in=family.mels, feat_out=-1,
        n_layers=size.layers, d_model=size.width, use_bias=family.bias,
        subsampling="striding" if family.conformer else "dw_striding",
        subsampling_factor=4 if family.conformer else 8,
        subsampling_conv_channels=-1 if family.conformer else size.channels,
        causal_downsampling=family.streaming, ff_expansion_factor=4,
        self_attention_model="rel_pos_local_attn" if family.local else "rel_pos",
        n_heads=size.heads, att_context_size=contexts if len(contexts) > 1 else contexts[0],
        att_context_style="chunked_limited" if family.streaming and not family.regular else "regular",
        xscaling=family.xscaling,
        untie_biases=True, pos_emb_max_len=5000, conv_kernel_size=family.kernel,
        conv_norm_type="layer_norm" if family.streaming else "batch_norm",
        conv_context_size="causal" if family.streaming else None, dropout=0.1, dropout_pre_encoder=0.1,
        dropout_emb=0.0, dropout_att=0.1) | unified


def ctc_config(family: Family, size: Size, labels: list[str]) -> dict:
    return dict(_target_="nemo.collections.asr.modules.ConvASRDecoder", feat_in=size.width, num_classes=len(labels),
                vocabulary=list(labels))


def config(family: Family, size: Size, labels: list[str]) -> dict:
    """The tree of the maker's model_config.yaml, without what only training reads."""
    module = "nemo.collections.asr.models."
    targets = {("ctc", False): "ctc_models.EncDecCTCModel" if family.characters else "ctc_bpe_models.EncDecCTCModelBPE",
               ("tdt", False): "rnnt_bpe_models.EncDecRNNTBPEModel", ("rnnt", False): "rnnt_bpe_models.EncDecRNNTBPEModel",
               ("tdt", True): "hybrid_rnnt_ctc_bpe_models.EncDecHybridRNNTCTCBPEModel",
               ("rnnt", True): "hybrid_rnnt_ctc_bpe_models.EncDecHybridRNNTCTCBPEModel"}
    out = dict(
        sample_rate=16000, target=module + targets[family.head, family.aux_ctc], nemo_version="2.4.0",
        preprocessor=dict(_target_="nemo.collections.asr.modules.AudioToMelSpectrogramPreprocessor",
                          sample_rate=16000, normalize="NA" if family.streaming else "per_feature", window_size=0.025,
                          window_stride=0.01, window="hann", features=family.mels, n_fft=512, log=True,
                          frame_splicing=1, dither=1e-05, pad_to=0, pad_value=0.0),
        encoder=encoder_config(family, size))
    if family.head == "ctc":
        return out | dict(decoder=ctc_config(family, size, labels), labels=list(labels))
    tdt = family.head == "tdt"
    durations = dict(tdt_durations=[0, 1, 2, 3, 4], num_tdt_durations=5) if tdt else {}
    out |= dict(
        decoder=dict(_target_="nemo.collections.asr.modules.RNNTDecoder", normalization_mode=None,
                     random_state_sampling=False, blank_as_pad=True, vocab_size=len(labels),
                     prednet=dict(pred_hidden=size.hidden, pred_rnn_layers=family.lstm, t_max=None,
                                  dropout=0.2 if family.lstm > 1 else 0.0)),
        joint=dict(_target_="nemo.collections.asr.modules.RNNTJoint", log_softmax=None, preserve_memory=False,
                   num_classes=len(labels), vocabulary=list(labels), fuse_loss_wer=True, fused_batch_size=4,
                   jointnet=dict(joint_hidden=size.hidden, encoder_hidden=size.width, pred_hidden=size.hidden,
                                 activation="relu", dropout=0.2 if family.joint_index == 2 else 0.0))
        | (dict(num_extra_outputs=5) if tdt else {}),
        decoding=dict(strategy="greedy_batch", greedy=dict(max_symbols=10))
        | (dict(model_type="tdt", durations=[0, 1, 2, 3, 4]) if tdt else {}),
        model_defaults=dict(enc_hidden=size.width, pred_hidden=size.hidden, joint_hidden=size.hidden, **durations))
    if not family.listed:
        del out["joint"]["vocabulary"]
    if family.prompts:
        out["target"] = module + "rnnt_bpe_models_prompt.EncDecRNNTBPEModelWithPrompt"
        out["model_defaults"] |= dict(initialize_prompt_feature=True, prompt_dictionary=dict(family.prompts),
                                      num_prompts=max(index for _, index in family.prompts) + 2)
    if family.aux_ctc:
        out["aux_ctc"] = dict(ctc_loss_weight=0.3, decoder=ctc_config(family, size, labels),
                              decoding=dict(strategy="greedy"))
    return out


def to_nemo(path: pathlib.Path, members: dict[str, bytes], packed: bool) -> None:
    with tarfile.open(path, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo("./" + name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def saved(tensors: dict[str, torch.Tensor]) -> bytes:
    # By file name, so that the zip's folder is model_weights/.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model_weights.ckpt"
        torch.save(tensors, path)
        return path.read_bytes()


def to_mlx(folder: pathlib.Path, tensors: dict[str, torch.Tensor], tree: dict) -> None:
    """Channels last in convolutions, an LSTM's biases summed, the joint's last layer always the third."""
    from safetensors.torch import save_file
    out = {}
    lstm = "decoder.prediction.dec_rnn.lstm."
    for name, value in tensors.items():
        if name.endswith("num_batches_tracked") or name.startswith("preprocessor."):
            continue
        if name.startswith(lstm):
            part, layer = name[len(lstm):].rsplit("_l", 1)
            if part == "bias_ih":
                total = value.float() + tensors[f"{lstm}bias_hh_l{layer}"].float()
                out[f"{lstm}{layer}.bias"] = total
            elif part != "bias_hh":
                out[f"{lstm}{layer}.{dict(weight_ih='Wx', weight_hh='Wh')[part]}"] = value
        elif value.dim() >= 3 and name.endswith(".weight"):
            out[name] = value.movedim(1, -1).contiguous()
        else:
            out[name] = value
    folder.mkdir(exist_ok=True)
    save_file(out, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(tree, ensure_ascii=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--context", action="append", metavar="LEFT,RIGHT",
                        help="frames that attention sees, instead of the family's own; the first is the default")
    parser.add_argument("--seed", type=int, help="instead of the family's own, which mostly is 7")
    parser.add_argument("--blank", type=float, help="how likely the blank is, instead of the family's own; 0.7 is often")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    size = SIZES[options.size]
    for name in options.family or FAMILIES:
        family, seed = FAMILIES[name], 7
        if options.size == "tiny":
            size, seed = dataclasses.replace(SIZES["tiny"], **family.tiny), family.tiny_seed or seed
        else:  # packing takes minutes and saves little of random numbers
            family = dataclasses.replace(family, packed=False, **family.full)
        seed = seed if options.seed is None else options.seed
        if options.blank is not None:
            family = dataclasses.replace(family, blank=options.blank)
        if options.context:
            contexts = tuple(tuple(int(n) for n in pair.split(",")) for pair in options.context)
            family = dataclasses.replace(family, contexts=contexts)
        pieces = pieces_of(family, size)
        letters = [" "] + [chr(97 + i) for i in range(size.vocabulary - 2)] + ["'"]
        labels = letters if family.characters else [text for text, _ in pieces]
        tensors, tree = state_dict(family, size, seed), config(family, size, labels)
        members = {}
        if not family.characters:
            model = tokenizer_model(pieces, same_scores=4096 if family.many else 1)
            digest = hashlib.md5(model).hexdigest()
            tree["tokenizer"] = dict(dir="/", type="bpe", model_path=f"nemo:{digest}_tokenizer.model",
                                     vocab_path=f"nemo:{digest}_vocab.txt",
                                     spe_tokenizer_vocab=f"nemo:{digest}_tokenizer.vocab")
            members[f"{digest}_tokenizer.model"] = model
            listed = [] if family.many else pieces  # nobody reads these two, but they must be there
            members[f"{digest}_tokenizer.vocab"] = "".join(f"{t}\t{-i}\n" for i, (t, _) in enumerate(listed)).encode()
            members[f"{digest}_vocab.txt"] = "\n".join(t for t, _ in listed).encode()
        if name == "tdt_ctc":  # a matrix that is stored the other way round, as a transposed parameter is
            key = "encoder.layers.0.feed_forward1.linear1.weight"
            tensors[key] = tensors[key].t().contiguous().t()
        if name == "tdt" and options.size == "tiny":
            to_mlx(options.out / "tdt_mlx", tensors, tree)
        members = {"model_config.yaml": yaml.safe_dump(tree, allow_unicode=True).encode()} | members
        members["model_weights.ckpt"] = saved(tensors)
        to_nemo(options.out / f"{name}.nemo", members, family.packed)
        print(name, sum(v.numel() for v in tensors.values()), "numbers")


if __name__ == "__main__":
    main()
