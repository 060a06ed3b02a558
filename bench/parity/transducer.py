#!/usr/bin/env python3
"""Transducers at full size: every stage of Syrinx beside nemo_toolkit, in f32, bf16 and int8, on real recordings.

For each .nemo file and each recording the maker's classes (f32, one thread) write features, every block's frames, the
prediction network behind fixed labels, joint logits at fixed frames, greedy labels with frames and durations, of a CTC
head logits, labels, their frames and ends, and confidences; and of cache-aware models the frames of each look-ahead, of
models with menus of windows the frames of some.  transducer_parity runs the same through Syrinx, compares, and in f32
compares the exact stream of each look-ahead with the whole recording too.  Seeded random weights will do:

  tools/checkpoints/transducer.py --size 110m --family tdt_ctc --family hybrid_streaming --out FULL
  PYTHON tools/checkpoints/transducer_lively.py FULL/tdt_ctc.nemo --clip CLIP.wav --out LIVELY     for many kinds of labels

  Runs under an interpreter with nemo_toolkit[asr] 3.0.0 and torch.  Recordings are WAV of 16 kHz, one channel, 16 bits.
  --build: a build folder with transducer_parity.  The references take about 5 MB a recording in --work.

  PYTHON bench/parity/transducer.py --model FULL/tdt_ctc.nemo --work WORK --build build/release CLIP.wav ...

The last lines of a precision are the worst of all recordings.  Exit status 1 where a stage is beyond its bound
(transducer_parity says which) or in f32 a label differs.
"""

from __future__ import annotations

import argparse
import gc
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import numpy as np  # noqa: E402
import torch  # noqa: E402

from reference.container import save  # noqa: E402
from reference.speech_wav import read_speech  # noqa: E402
from reference.transducer import (  # noqa: E402
    Stages, ctc_decisions, decode_all, encode_prompted, features, histories, rows)

HISTORIES = 24
WINDOWS = ((70, 7, 7), (70, 2, 4), (70, 1, 2))  # left, chunk, right


def decisions(model, frames: torch.Tensor) -> dict[str, np.ndarray]:
    """Of the maker's greedy decoder on frames [1, d, T]."""
    found = model.decoding.rnnt_decoder_predictions_tensor(
        encoder_output=frames, encoded_lengths=torch.tensor([frames.shape[2]]), return_hypotheses=True)[0]
    out = dict(labels=found.y_sequence, frames=found.timestamp)
    if model.joint.num_extra_outputs:
        out["durations"] = found.token_duration
    return {name: np.asarray([int(v) for v in values], np.int32) for name, values in out.items()}


def heads(model, frames: torch.Tensor) -> dict[str, np.ndarray]:
    """Of each head that the model has, on frames [1, d, T]."""
    out = {}
    if hasattr(model, "joint"):
        found = decisions(model, frames)
        fixed = [3, 0, model.decoder.blank_idx - 1, *(int(label) for label in found["labels"])][:HISTORIES]
        out |= histories(model, frames, fixed) | found
    head = getattr(model, "ctc_decoder", None if out else model.decoder)
    if head is not None:
        found = ctc_decisions(model, frames, torch.tensor([frames.shape[2]]))
        del found["ctc.logprobs"]
        out |= found | {"ctc.logits": rows(head.decoder_layers(frames))}
    return out


def reference(model, sound: torch.Tensor) -> dict[str, np.ndarray]:
    encoder = model.encoder
    mels = features(model, sound)
    stages = Stages(encoder)
    encoded = encode_prompted(model, mels)
    out = {"sound": sound.numpy(), "mel": rows(mels), "encoded": encoded} | stages.arrays()
    out["stage.pre"] = out.pop("stage.input")  # ours is scaled already
    out |= heads(model, torch.from_numpy(encoded).T[None])
    default = list(encoder.att_context_size)
    reaches = {}
    if encoder.att_context_style == "chunked_limited":
        reaches = {f"encoded.{context[1]}": context for context in encoder.att_context_size_all}
    if encoder.att_context_style == "chunked_limited_with_rc":
        reaches = {"window." + ".".join(map(str, window)): window for window in WINDOWS}
    for name, context in reaches.items():
        encoder.set_default_att_context_size(list(context))
        out[name] = encode_prompted(model, mels)
    encoder.set_default_att_context_size(default)
    return out


def references(args: argparse.Namespace) -> tuple[list[pathlib.Path], dict[str, set[int]]]:
    """What transducer_parity reads, and the labels that each head says."""
    import nemo.collections.asr as nemo_asr
    model = nemo_asr.models.ASRModel.restore_from(str(args.model), map_location="cpu", strict=False).eval().float()
    model.preprocessor.featurizer.dither = 0.0
    decode_all(model)
    out, kinds = [], {}
    for clip in args.clips:
        with torch.no_grad():
            arrays = reference(model, torch.from_numpy(read_speech(clip)))
        out.append(args.work / f"{args.model.stem}.{clip.stem}.safetensors")
        save(out[-1], arrays)
        for head in arrays.keys() & {"labels", "ctc.tokens"}:
            kinds.setdefault(head, set()).update(arrays[head].tolist())
    return out, kinds


class Worst:
    """Of each stage, over all recordings."""

    def __init__(self, exact: bool):
        self.pick, self.form = (max, ".2e") if exact else (min, ".5f")
        self.values, self.counts, self.edits = {}, {}, {}

    def note(self, line: str) -> None:
        stage = re.match(r"(\S+) +([\d.]+(?:e[-+]\d+)?)( from the sound on)?(?:  b|$)", line)
        found = re.match(r"(\S+) +(\d+) of ours, \d+ of the maker's, (?:all equal|\d+ equal from the start, (\d+) edits)", line)
        if stage:
            name = stage[1] + (stage[3] or "")
            self.values[name] = self.pick(float(stage[2]), self.values.get(name, float(stage[2])))
        elif found:
            self.counts.setdefault(found[1], []).append(found[2])
            self.edits[found[1]] = self.edits.get(found[1], 0) + int(found[3] or 0)

    def lines(self) -> list[str]:
        return [f"{name:<22} {value:{self.form}}" for name, value in self.values.items()] + [
            f"{name:<22} {' + '.join(counts)}, {f'{self.edits[name]} edits' if self.edits[name] else 'all equal'}"
            for name, counts in self.counts.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="+", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--precision", action="append", choices=("f32", "bf16", "int8"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    paths, kinds = references(args)
    gc.collect()  # the maker's model, which needs as much memory as ours
    bad = 0
    for precision in args.precision or ("f32", "bf16", "int8"):
        worst = Worst(precision == "f32")
        for path in paths:
            print(f"{path.stem}, {precision}", flush=True)
            program = args.build / "bench/transducer_parity"
            run = subprocess.run([str(program), str(args.model), str(path), precision], stdout=subprocess.PIPE, text=True)
            print(run.stdout, end="", flush=True)
            for line in run.stdout.splitlines():
                worst.note(line)
            bad |= run.returncode
        print(f"{args.model.name}, {precision}, the worst of {len(paths)}", *worst.lines(),
              *(f"{head:<22} {len(found)} kinds" for head, found in sorted(kinds.items())), sep="\n", flush=True)
    return int(bad != 0)


if __name__ == "__main__":
    sys.exit(main())
