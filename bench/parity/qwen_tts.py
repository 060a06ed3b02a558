#!/usr/bin/env python3
"""Compares narrow precisions of a Qwen3-TTS checkpoint with its f32: logits of talker and code predictor behind the same codes.

  python3 bench/parity/qwen_tts.py FOLDER --frames 500        # needs numpy, ml_dtypes, safetensors

Beside them stand twins, checkpoints whose layers' and heads' weights were rounded by numpy and are multiplied in f32 with rows that
are not rounded: `rows8`, 8 bits with a scale a row of outputs, `blocks4`, 4 bits with one for 32 inputs, `rows8+blocks4`, the code
predictor's so.  Prints a line each: mean error of the logits over their deviation in f32, and how often the largest is the same one.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import ml_dtypes  # noqa: F401, numpy's bfloat16
import numpy as np
import safetensors.numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = re.compile(r"talker\.(model|code_predictor\.model)\.layers\.\d+\.(self_attn|mlp)\.\w+_proj\.weight|talker\.codec_head\.weight|"
                    r"talker\.code_predictor\.(lm_head\.\d+|small_to_mtp_projection)\.weight")


def rounded(rows, bits):
    """Each row by its own scale, to integers of so many bits."""
    most = 2 ** (bits - 1) - 1
    scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-30) / most
    return np.clip(np.rint(rows / scale), -most, most) * scale


def rows8(weight):
    return rounded(weight, 8)


def blocks4(weight):
    return rounded(weight.reshape(-1, 32), 4).reshape(weight.shape)


TWINS = {"rows8": (rows8, rows8), "blocks4": (blocks4, blocks4), "rows8+blocks4": (rows8, blocks4)}  # talker, code predictor


def write_twin(folder, to, name):
    """All files but the weights by links; weights of one file or of shards."""
    talker, predictor = TWINS[name]
    for item in folder.iterdir():
        if item.suffix != ".safetensors":
            os.symlink(item.resolve(), to / item.name)
            continue
        tensors = safetensors.numpy.load_file(item)
        for key, value in tensors.items():
            if LAYERS.fullmatch(key):
                tensors[key] = (predictor if ".code_predictor." in key else talker)(value.astype(np.float32))
        safetensors.numpy.save_file(tensors, to / item.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="folder of the checkpoint")
    parser.add_argument("--frames", type=int, default=500)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precisions", default="bf16,int8,int4", help="with commas (default bf16,int8,int4)")
    parser.add_argument("--twins", default="rows8", help=f"with commas, of {', '.join(TWINS)} (default rows8)")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bench/qwen_tts_agreement", help="the built program")
    args = parser.parse_args()
    twins = [name for name in args.twins.split(",") if name]
    for name in twins:
        if name not in TWINS:
            sys.exit(f"error: '{name}' is no twin; there are {', '.join(TWINS)}")
    with tempfile.TemporaryDirectory() as folder:
        places = {}
        for name in twins:
            to = pathlib.Path(folder) / name
            to.mkdir()
            write_twin(args.model, to, name)
            places[str(to)] = f"twin {name}"
        words = [word for word in args.precisions.split(",") if word] + list(places)
        command = [args.program, args.model, str(args.frames), str(args.threads), *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            print(f"{'':22} {'talker':>18} {'code predictor':>24}")
            for line in running.stdout:
                told = json.loads(line)
                cells = [f"{told[part]['error'] * 100:7.2f} % {told[part]['same_largest'] * 100:6.1f} % same" for part in ("talker", "predictor")]
                print(f"{places.get(told['of'], told['of']):22} {cells[0]} {cells[1]}   {told['frames']} frames", flush=True)
        sys.exit(running.returncode)


if __name__ == "__main__":
    main()
