#!/usr/bin/env python3
"""The times of a transducer's labels as the maker (nemo_toolkit) tells them, for a sound of noise.

Writes DIR/token_times.json: of each DIR/NAME.nemo with a transducer's head the labels in order, each with the frames at
which it begins and ends.

  python3 tools/reference/transducer_times.py tests/data/transducer
"""

from __future__ import annotations

import argparse
import json
import logging
import pathlib
import random
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402
from omegaconf import open_dict  # noqa: E402

SAMPLES = 96000


def noise() -> torch.Tensor:
    """16-bit noise; tests/e2e/transducer_test.py draws the same."""
    rng = random.Random(3)
    return torch.tensor([int(rng.gauss(0, 3000)) / 32768 for _ in range(SAMPLES)])


def token_times(path: pathlib.Path) -> list[list[int]] | None:
    import nemo.collections.asr as nemo_asr
    model = nemo_asr.models.ASRModel.restore_from(str(path), map_location="cpu", strict=False).eval().float()
    if not hasattr(model, "joint"):
        return None
    model.preprocessor.featurizer.dither = 0.0
    decoding = model.cfg.decoding
    with open_dict(decoding):
        decoding.compute_timestamps = True
    model.change_decoding_strategy(decoding, verbose=False)
    samples = noise()
    mels, length = model.preprocessor(input_signal=samples[None], length=torch.tensor([len(samples)]))
    if hasattr(model, "set_inference_prompt"):
        model.set_inference_prompt("auto")
    out, length = model.encoder(audio_signal=mels, length=length)
    if hasattr(model, "set_inference_prompt"):
        out = model._apply_prompt_to_encoded(out)
    found = model.decoding.rnnt_decoder_predictions_tensor(encoder_output=out, encoded_lengths=length,
                                                           return_hypotheses=True)[0]
    labels, times = [int(label) for label in found.y_sequence], found.timestamp["char"]
    assert len(labels) == len(times), (len(labels), len(times))
    return [[label, int(t["start_offset"]), int(t["end_offset"])] for label, t in zip(labels, times)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    torch.set_num_threads(1)
    rows = []
    for path in sorted(folder.glob("*.nemo")):
        with torch.no_grad():
            times = token_times(path)
        if times is None:
            continue
        rows.append(f"{json.dumps(path.stem)}:{json.dumps(times, separators=(',', ':'))}")
        print(path.stem, len(times), times[:3])
    (folder / "token_times.json").write_text("{" + ",\n".join(rows) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
