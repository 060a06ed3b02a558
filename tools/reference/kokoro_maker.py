#!/usr/bin/env python3
"""The maker's own PyTorch code (pip `kokoro` 0.9.4) on a .pth, every stage written as tools/reference/kokoro.py does.

An oracle that this project did not write.  The source's Gaussian noise is set to zero, nothing else is touched; for a
checkpoint of other widths than the published ones, the widths that the maker's Decoder spells out are replaced.
Needs torch, transformers, loguru, attrs and `pip install --no-deps kokoro==0.9.4`.

  python3 tools/reference/kokoro_maker.py kokoro-v1_0.pth --phonemes 'həlˈO wˈɜɹld' --voice af_heart.bin --out maker.safetensors
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import pathlib
import sys
import types

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import container  # noqa: E402
import kokoro_phonemes  # noqa: E402
from kokoro_weights import load  # noqa: E402


def maker():
    """Modules of the package without its __init__, which would ask for the phonemiser."""
    here = str(pathlib.Path(__file__).resolve().parent)   # holds a kokoro.py of ours
    spec = importlib.machinery.PathFinder.find_spec("kokoro", [p for p in sys.path if p not in ("", here)])
    if spec is None:
        raise SystemExit("the maker's package is missing: pip install --no-deps kokoro==0.9.4")
    package = types.ModuleType("kokoro")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["kokoro"] = package
    return importlib.import_module("kokoro.model"), importlib.import_module("kokoro.istftnet")


def config(w: dict[str, np.ndarray]) -> dict:
    layer = "bert.encoder.albert_layer_groups.0.albert_layers.0."
    rows, embedding = w["bert.embeddings.word_embeddings.weight"].shape
    ffn, hidden = w[layer + "ffn.weight"].shape
    return dict(
        n_token=rows, hidden_dim=w["bert_encoder.weight"].shape[0], style_dim=w["decoder.encode.norm1.fc.weight"].shape[1],
        n_layer=3, n_mels=80, max_dur=50, dropout=0.2, text_encoder_kernel_size=5, vocab=kokoro_phonemes.IDS,
        plbert=dict(hidden_size=hidden, num_attention_heads=hidden // 64, intermediate_size=ffn, embedding_size=embedding,
                    max_position_embeddings=512, num_hidden_layers=12, dropout=0.1),
        istftnet=dict(upsample_kernel_sizes=[20, 12], upsample_rates=[10, 6], gen_istft_hop_size=5, gen_istft_n_fft=20,
                      resblock_dilation_sizes=[[1, 3, 5]] * 3, resblock_kernel_sizes=[3, 7, 11],
                      upsample_initial_channel=w["decoder.generator.ups.0.weight"].shape[0]))


def build(path: pathlib.Path):
    model_code, net = maker()
    w = load(path)
    decoder, asr_res = w["decoder.encode.conv2.weight"].shape[0], w["decoder.asr_res.0.weight"].shape[:2]
    front = w["decoder.generator.ups.0.weight"].shape[0]
    block = net.AdainResBlk1d
    width = {1024: decoder, 1024 + 2 + 64: decoder + 2 + asr_res[0], 512: front}

    def sized(dim_in, dim_out, style_dim, **rest):
        return block(width.get(dim_in, dim_in), width[dim_out], style_dim, **rest)

    net.AdainResBlk1d = sized                       # only Decoder looks it up here
    read, torch.load = torch.load, lambda *_, **__: {}
    try:
        model = model_code.KModel(repo_id="none", config=config(w), model=str(path))
    finally:
        torch.load, net.AdainResBlk1d = read, block
    model.decoder.asr_res = torch.nn.Sequential(torch.nn.utils.weight_norm(torch.nn.Conv1d(asr_res[1], asr_res[0], 1)))
    for key, state in torch.load(path, map_location="cpu", weights_only=True).items():
        missing, unexpected = getattr(model, key).load_state_dict(state, strict=False)
        missing = [m for m in missing if "pooler" not in m and ".norm." not in m and "position_ids" not in m]
        if missing or unexpected:
            raise SystemExit(f"{path}: {key} lacks {missing[:3]} and has unknown {unexpected[:3]}")
    return model.eval(), w


class SplitStyle:
    """The maker cuts the row at column 128; this one has its own middle."""

    def __init__(self, row: np.ndarray):
        self.halves = [torch.from_numpy(np.ascontiguousarray(h))[None] for h in np.split(row, 2)]

    def __getitem__(self, key):
        return self.halves[0] if key[1].stop == 128 else self.halves[1]


def listen(model, stages: dict[str, np.ndarray]) -> None:
    rows = lambda t: t.detach()[0].T.clone().numpy()  # noqa: E731  [1, C, T] -> [T, C]

    def after(module, name, pick):
        module.register_forward_hook(lambda m, inputs, out: stages.__setitem__(name, pick(out)))

    def before(module, action):
        module.register_forward_pre_hook(lambda m, inputs: action(*inputs))

    after(model.bert, "bert", lambda o: o[0].clone().numpy())
    after(model.bert_encoder, "bert_encoder", lambda o: o[0].clone().numpy())
    after(model.predictor.text_encoder, "duration_encoder", lambda o: o[0].clone().numpy())
    after(model.predictor.duration_proj, "duration_raw", lambda o: torch.sigmoid(o).sum(-1)[0].numpy())
    after(model.text_encoder, "text_encoder", rows)
    after(model.predictor.shared, "shared", lambda o: o[0][0].clone().numpy())
    before(model.decoder, lambda asr, f0, n, s: stages.update(asr=rows(asr), f0=f0[0].numpy(), n=n[0].numpy()))
    after(model.decoder.encode, "decoder_encode", rows)
    g = model.decoder.generator
    before(g, lambda x, s, f0: stages.update(decoder_front=rows(x)))
    after(g.m_source, "source", lambda o: o[0][0, :, 0].numpy())
    before(g.noise_convs[0], lambda har: stages.update(har=rows(har)))
    for i in (0, 1):
        for j in range(3):
            after(g.resblocks[3 * i + j], f"part_{3 * i + j}", rows)

    def spectrum(o):
        half = o.shape[1] // 2
        return rows(torch.cat([o[:, :half], torch.sin(o[:, half:])], 1))

    after(g.conv_post, "spectrum", spectrum)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help=".pth, as published or made by tools/checkpoints/kokoro.py")
    parser.add_argument("--ids", help="phoneme ids with commas, without the zeros at the ends")
    parser.add_argument("--phonemes", help="or the phonemes themselves")
    parser.add_argument("--voice", type=pathlib.Path, required=True, help="voice file; the row is count - 1")
    parser.add_argument("--speed", type=float, default=1.0, help="divides the durations (default 1)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="safetensors file to write")
    args = parser.parse_args()
    if (args.ids is None) == (args.phonemes is None):
        parser.error("give either --ids or --phonemes")
    for path in (args.model, args.voice):
        if not path.is_file():
            parser.error(f"{path} is not a file")
    ids = kokoro_phonemes.ids(args.phonemes) if args.phonemes else [int(i) for i in args.ids.split(",")]
    torch.randn_like = torch.zeros_like             # the source's noise
    torch.cuda.is_available = torch.cuda.is_current_stream_capturing = lambda: False   # no GPU is wanted here
    model, w = build(args.model)
    style = kokoro_phonemes.voice_row(args.voice, 2 * w["decoder.encode.norm1.fc.weight"].shape[1],
                                      len(args.phonemes) if args.phonemes else len(ids))
    stages = {"tokens": np.array([0, *ids, 0], np.int32), "style": style}
    listen(model, stages)
    with torch.no_grad():
        audio, durations = model.forward_with_tokens(torch.tensor([[0, *ids, 0]]), SplitStyle(style), args.speed)
    stages["duration_raw"] = stages["duration_raw"] / np.float32(args.speed)
    stages["durations"], stages["audio"] = durations.numpy().astype(np.int32), audio.numpy()
    for i in (0, 1):
        stages[f"generator_{i}"] = sum(stages.pop(f"part_{3 * i + j}") for j in range(3)) / np.float32(3)
    container.save(args.out, stages)
    print(f"{args.out}: {len(ids)} ids, {durations.sum()} frames, torch {torch.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
