#!/usr/bin/env python3
"""Transducers at full size: every stage of Syrinx beside nemo_toolkit, in f32, bf16 and int8, on real recordings.

For each .nemo file and each recording the maker's classes (f32, one thread) write features, every block's frames, the
prediction network behind fixed labels, joint logits at fixed frames, greedy labels with frames and durations, and of
cache-aware models the frames of each look-ahead; transducer_parity runs the same through Syrinx, compares, and in f32
compares the exact stream of each look-ahead with the whole recording too.  Seeded random weights will do:

  tools/checkpoints/transducer.py --size 110m --family tdt_ctc --out FULL
  tools/checkpoints/transducer.py --size 110m --family hybrid_streaming --context 70,1 --context 70,0 --context 70,6 \\
    --context 70,13 --out FULL

  Runs under an interpreter with nemo_toolkit[asr] 3.0.0 and torch.  Recordings are WAV of 16 kHz, one channel, 16 bits.
  --build: a build folder with transducer_parity.  The references take about 5 MB a recording in --work.

  PYTHON bench/parity/transducer.py --model FULL/tdt_ctc.nemo --work WORK --build build/release CLIP.wav ...

Exit status 1 where a stage is beyond its bound (transducer_parity says which) or in f32 a label differs.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import numpy as np  # noqa: E402
import torch  # noqa: E402

from reference.container import save  # noqa: E402
from reference.speech_wav import read_speech  # noqa: E402
from reference.transducer import Stages, encode, features, rows  # noqa: E402

HISTORIES = 24


def decisions(model, frames: torch.Tensor) -> dict[str, np.ndarray]:
    """Of the maker's greedy decoder on frames [1, d, T]."""
    found = model.decoding.rnnt_decoder_predictions_tensor(
        encoder_output=frames, encoded_lengths=torch.tensor([frames.shape[2]]), return_hypotheses=True)[0]
    out = dict(labels=found.y_sequence, frames=found.timestamp)
    if model.joint.num_extra_outputs:
        out["durations"] = found.token_duration
    return {name: np.asarray([int(v) for v in values], np.int32) for name, values in out.items()}


def histories(model, frames: torch.Tensor, labels: list[int]) -> dict[str, np.ndarray]:
    """The prediction network behind the start and each of the labels, and the joint's logits with a frame of each."""
    at = [i * (frames.shape[2] - 1) // len(labels) for i in range(len(labels) + 1)]
    state, hidden, logits = None, [], []
    encoded = model.joint.project_encoder(frames.transpose(1, 2))
    for i, label in zip(at, [None, *labels]):
        y = None if label is None else torch.tensor([[label]])
        row, state = model.decoder.predict(y, state, add_sos=False, batch_size=1)
        hidden.append(row[0, -1])
        logits.append(model.joint.joint_net(encoded[0, i] + model.joint.project_prednet(row)[0, -1]))
    return {"pred.labels": np.asarray(labels, np.int32), "pred.g": torch.stack(hidden).numpy(),
            "joint.frames": np.asarray(at, np.int32), "joint.logits": torch.stack(logits).numpy()}


def reference(model, sound: torch.Tensor) -> dict[str, np.ndarray]:
    encoder = model.encoder
    mels = features(model, sound)
    stages = Stages(encoder)
    encoded = encode(model, mels)
    out = {"sound": sound.numpy(), "mel": rows(mels), "encoded": encoded} | stages.arrays()
    out["stage.pre"] = out.pop("stage.input")  # ours is scaled already
    frames = torch.from_numpy(encoded).T[None]
    found = decisions(model, frames)
    blank = model.decoder.blank_idx
    fixed = [3, 0, blank - 1, *(int(label) for label in found["labels"])][:HISTORIES]
    out |= histories(model, frames, fixed) | found
    contexts = encoder.att_context_size_all
    if encoder.att_context_style == "chunked_limited":
        for context in contexts:
            encoder.set_default_att_context_size(list(context))
            out[f"encoded.{context[1]}"] = encode(model, mels)
        encoder.set_default_att_context_size(list(contexts[0]))
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="+", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--precision", action="append", choices=("f32", "bf16", "int8"))
    args = parser.parse_args()
    import nemo.collections.asr as nemo_asr
    import omegaconf
    torch.set_num_threads(1)
    model = nemo_asr.models.ASRModel.restore_from(str(args.model), map_location="cpu", strict=False).eval().float()
    model.preprocessor.featurizer.dither = 0.0
    with omegaconf.open_dict(model.cfg.decoding):
        model.cfg.decoding.tdt_include_token_duration = model.joint.num_extra_outputs > 0
    model.change_decoding_strategy(model.cfg.decoding, verbose=False)
    bad = 0
    for clip in args.clips:
        with torch.no_grad():
            arrays = reference(model, torch.from_numpy(read_speech(clip)))
        path = args.work / f"{args.model.stem}.{clip.stem}.safetensors"
        save(path, arrays)
        for precision in args.precision or ("f32", "bf16", "int8"):
            print(f"{args.model.name}, {clip.name}, {precision}", flush=True)
            program = args.build / "bench/transducer_parity"
            bad |= subprocess.run([str(program), str(args.model), str(path), precision]).returncode
    return int(bad != 0)


if __name__ == "__main__":
    sys.exit(main())
