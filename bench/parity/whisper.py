#!/usr/bin/env python3
"""Whisper at full size: every stage of Syrinx in f32 beside openai-whisper, and the tokens of recordings.

The weights of CTranslate2's model.bin, widened to f32, go into openai-whisper's own model under OpenAI's names; it takes
one window of the first recording through spectrum, encoder and decoder (its own greedy tokens, forced), whisper_parity
does the same, and compares.  Then both transcribe each recording greedily, in English, without times: the tokens must be
equal.

  Needs openai-whisper and torch; recordings are WAV of 16 kHz, one channel, 16 bits.
  --model: a folder with model.bin, config.json and tokenizer.json.  --random: instead, seeded weights of a published size
  (tools/checkpoints/whisper.py) with the maker's vocabulary, which are written to WORK; what they say means nothing, so
  they are compared in f32 alone.  --build: a build folder with syrinx and whisper_parity.

  bench/parity/whisper.py --model BASE --work WORK --build build/release CLIP.wav ...
  bench/parity/whisper.py --random small --work WORK --build build/release CLIP.wav

Exit status 1 where a stage is beyond its bound (whisper_parity says which) or a token differs in f32.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Instead of this file's own folder, where its name would hide the maker's package.
sys.path[:1] = [str(ROOT / "tools/convert")]

import whisper  # noqa: E402
import whisper.decoding  # noqa: E402
import whisper.tokenizer  # noqa: E402
from whisper.model import ModelDimensions, Whisper  # noqa: E402
sys.path += [str(ROOT / "tools/reference"), str(ROOT / "tools/checkpoints")]
import container  # noqa: E402
from speech_wav import read_speech  # noqa: E402
from whisper_ggml import layer_count, openai_names, read_ct2  # noqa: E402
from whisper_tokenizer import alphabet  # noqa: E402

GREEDY = whisper.DecodingOptions(language="en", without_timestamps=True, fp16=False, temperature=0.0)


def load(path: pathlib.Path) -> Whisper:
    weights = read_ct2(path)
    width, mels, _ = weights["encoder/conv1/weight"].shape
    vocabulary = weights["decoder/embeddings/weight"].shape[0]
    model = Whisper(ModelDimensions(mels, 1500, width, width // 64, layer_count(weights, "encoder"), vocabulary, 448,
                                    width, width // 64, layer_count(weights, "decoder")))
    state = {name: torch.from_numpy(value.astype(np.float32)) for name, value in openai_names(weights).items()}
    for name in ("encoder.conv1.bias", "encoder.conv2.bias"):
        state[name] = state[name][:, 0]
    missing = model.load_state_dict(state, strict=False)
    if missing.unexpected_keys or any(not key.endswith("mask") for key in missing.missing_keys):
        raise SystemExit(f"the weights do not fit: {missing}")
    return model.eval()


def tokenizer_of(model: Whisper) -> whisper.tokenizer.Tokenizer:
    return whisper.tokenizer.get_tokenizer(model.is_multilingual, num_languages=model.num_languages, language="en",
                                           task="transcribe")


def write_random(size: str, folder: pathlib.Path) -> pathlib.Path:
    """A checkpoint with what belongs beside it; returns its folder."""
    subprocess.run([sys.executable, ROOT / "tools/checkpoints/whisper.py", "--size", size, "--form", "ct2", "--out", folder],
                   check=True)
    return folder / "ct2"


def write_vocabulary(model: Whisper, folder: pathlib.Path) -> None:
    """The maker's tokens and what it never samples, as the files of published models have them."""
    tokenizer, letters = tokenizer_of(model), alphabet()
    encoding = tokenizer.encoding
    texts = {"".join(letters[byte] for byte in token): rank for token, rank in encoding._mergeable_ranks.items()}
    added = [{"id": rank, "content": name} for name, rank in encoding._special_tokens.items()]
    kind = {"type": "ByteLevel", "add_prefix_space": False}
    (folder / "tokenizer.json").write_text(json.dumps(
        {"added_tokens": sorted(added, key=lambda token: token["id"]), "pre_tokenizer": kind, "decoder": kind,
         "model": {"type": "BPE", "vocab": texts}}), encoding="utf-8")
    never = whisper.decoding.DecodingTask(model, GREEDY)._get_suppress_tokens()
    (folder / "config.json").write_text(json.dumps(
        {"suppress_ids": sorted(never), "suppress_ids_begin": [*tokenizer.encode(" "), tokenizer.eot]}), encoding="utf-8")


def greedy(model: Whisper, sound: np.ndarray) -> list[int]:
    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(sound), model.dims.n_mels)
    return whisper.decode(model, mel, GREEDY).tokens


def reference(model: Whisper, sound: np.ndarray, tokens: list[int]) -> dict[str, np.ndarray]:
    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(sound), model.dims.n_mels)
    out = {"sound": sound, "mel": mel.T.numpy()}
    hooks = [block.register_forward_hook(
        lambda _module, _inputs, output, name=f"block.{i:02}": out.__setitem__(name, output[0].numpy()))
        for i, block in enumerate(model.encoder.blocks)]
    hooks.append(model.encoder.blocks[0].register_forward_pre_hook(
        lambda _module, inputs: out.__setitem__("conv", inputs[0][0].clone().numpy())))
    with torch.no_grad():
        encoded = model.encoder(mel[None])
        forced = torch.tensor([[*tokenizer_of(model).sot_sequence_including_notimestamps, *tokens]])
        out["logits"] = model.decoder(forced, encoded)[0].numpy()
    for hook in hooks:
        hook.remove()
    return out | {"encoder": encoded[0].numpy(), "tokens": forced[0].numpy()}


def our_tokens(build: pathlib.Path, model: pathlib.Path, clip: pathlib.Path, precision: str) -> list[int]:
    done = subprocess.run([str(build / "syrinx"), "bench", "whisper", "--model", str(model), "--precision", precision,
                           "--runs", "1", "--json", "--recording", str(clip)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout.splitlines()[-1])["tokens"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="+", type=pathlib.Path)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", type=pathlib.Path)
    which.add_argument("--random", metavar="SIZE")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    args = parser.parse_args()
    folder = args.model or write_random(args.random, args.work / args.random)
    model = load(folder / "model.bin")
    if args.random:
        write_vocabulary(model, folder)
    sound = read_speech(args.clips[0])
    arrays = reference(model, sound, greedy(model, sound))
    path = args.work / "whisper_reference.safetensors"
    container.save(path, {name: np.ascontiguousarray(value) for name, value in arrays.items()})
    bad = subprocess.run([str(args.build / "bench/whisper_parity"), str(folder), str(path)]).returncode
    for clip in args.clips:
        theirs = greedy(model, read_speech(clip))
        for precision in ("f32",) if args.random else ("f32", "bf16", "int8"):
            ours = our_tokens(args.build, folder, clip, precision)
            equal = sum(a == b for a, b in zip(ours, theirs))
            print(f"{clip.name}: {precision}, {len(ours)} tokens, theirs {len(theirs)}, {equal} equal from the start"
                  if ours != theirs else f"{clip.name}: {precision}, {len(ours)} tokens, all equal")
            bad |= precision == "f32" and ours != theirs
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
