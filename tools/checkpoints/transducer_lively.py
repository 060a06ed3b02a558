#!/usr/bin/env python3
"""Makes the heads of a random checkpoint hear what sets a frame apart, so that they say many labels and not a few.

Behind random blocks a recording's frames lie close to their mean, which then decides alone.  For a .nemo file of
tools/checkpoints/transducer.py the maker's encoder (nemo_toolkit) runs over a recording; then the layers behind it get
the frame less its mean, made as large as what the layer gave for the mean: of the joint network the encoder's
projection, of a CTC head all of it.  The blank is made likeliest in half of the frames, of the joint network behind the
start.

  PYTHON tools/checkpoints/transducer_lively.py FULL/tdt_ctc.nemo --clip CLIP.wav --out LIVELY

  Runs under an interpreter with nemo_toolkit[asr] 3.0.0 and torch; the recording is WAV of 16 kHz, one channel, 16 bits.
  Memory: about twice the f32 weights.
"""

from __future__ import annotations

import argparse
import gc
import io
import pathlib
import sys
import tarfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from checkpoints.transducer import saved, to_nemo  # noqa: E402
from reference.speech_wav import read_speech  # noqa: E402
from reference.transducer import encode_prompted, features  # noqa: E402

WEIGHTS = "model_weights.ckpt"
JOINT, CTC = "joint.enc", ("ctc_decoder.decoder_layers.0", "decoder.decoder_layers.0")
SPREAD = {JOINT: 1.0, CTC[0]: 3.0, CTC[1]: 3.0}  # deviation over frames of what the layer gives


def frames(path: pathlib.Path, clip: pathlib.Path) -> torch.Tensor:
    """[T, d]"""
    import nemo.collections.asr as nemo_asr
    model = nemo_asr.models.ASRModel.restore_from(str(path), map_location="cpu", strict=False).eval().float()
    model.preprocessor.featurizer.dither = 0.0
    with torch.no_grad():
        return torch.from_numpy(encode_prompted(model, features(model, torch.from_numpy(read_speech(clip)))))


def layer_of(tensors: dict[str, torch.Tensor], name: str) -> tuple[torch.Tensor, torch.Tensor]:
    weight = tensors[name + ".weight"].float()
    return weight.reshape(weight.shape[0], -1), tensors[name + ".bias"].float()


def centre(tensors: dict[str, torch.Tensor], name: str, x: torch.Tensor) -> None:
    stored, (weight, bias), mean = tensors[name + ".weight"], layer_of(tensors, name), x.mean(0)
    gain = SPREAD[name] / ((x - mean) @ weight.T).std()
    tensors[name + ".weight"] = (weight * gain).reshape(stored.shape).to(stored.dtype)
    weight, _ = layer_of(tensors, name)  # as rounded
    tensors[name + ".bias"] = (bias - weight @ mean).to(stored.dtype)


def halve(tensors: dict[str, torch.Tensor], name: str, x: torch.Tensor, blank: int) -> None:
    weight, bias = layer_of(tensors, name)
    logits = x @ weight.T + bias
    bias[blank] += (logits[:, :blank].max(1).values - logits[:, blank]).median()
    tensors[name + ".bias"] = bias.to(tensors[name + ".bias"].dtype)


def enliven(tensors: dict[str, torch.Tensor], x: torch.Tensor) -> list[str]:
    heads = [name for name in (JOINT, *CTC) if name + ".weight" in tensors]
    for name in heads:
        centre(tensors, name, x)
        if name in CTC:
            halve(tensors, name, x, tensors[name + ".bias"].shape[0] - 1)
            continue
        weight, bias = layer_of(tensors, name)
        pairs = torch.relu(x @ weight.T + bias + tensors["joint.pred.bias"].float())
        last = max(key for key in tensors if key.startswith("joint.joint_net.")).rsplit(".", 1)[0]
        halve(tensors, last, pairs, tensors["decoder.prediction.embed.weight"].shape[0] - 1)
    return heads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--clip", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for path in options.models:
        x = frames(path, options.clip)
        gc.collect()  # the model
        with tarfile.open(path) as tar:
            members = {info.name.removeprefix("./"): tar.extractfile(info).read() for info in tar if info.isfile()}
        tensors = torch.load(io.BytesIO(members[WEIGHTS]), map_location="cpu", weights_only=True)
        members[WEIGHTS] = b""
        heads = enliven(tensors, x)
        members[WEIGHTS] = saved(tensors)
        to_nemo(options.out / path.name, members, packed=False)
        print(path.stem, *heads)


if __name__ == "__main__":
    main()
