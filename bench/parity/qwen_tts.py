#!/usr/bin/env python3
"""Compares narrow precisions of a Qwen3-TTS checkpoint with its f32: logits of talker and code predictor behind the same codes.

  python3 bench/parity/qwen_tts.py FOLDER --frames 500        # needs numpy, ml_dtypes, safetensors

Beside them stand twins, checkpoints whose layers' and heads' weights were rounded by numpy and are multiplied in f32 with rows that
are not rounded: `rows8`, 8 bits with a scale a row of outputs, `blocks4`, 4 bits with one for 32 inputs, `rows8+blocks4`, the code
predictor's so.  Prints a line each: mean error of the logits over their deviation in f32, and how often the largest is the same one.

The twins lie in a folder of their own in --folder until all lines are there, 2.9 GB each of a checkpoint of 1.8 GB.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import struct
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


def twin_bytes(folder):
    """Weights that are rounded become f32, the others stay as they are; by the files' headers."""
    sum_bytes = 0
    for item in folder.glob("*.safetensors"):
        with item.open("rb") as file:
            length = struct.unpack("<Q", file.read(8))[0]
            header = json.loads(file.read(length))
        sum_bytes += 8 + length
        for key, entry in header.items():
            if key == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            sum_bytes += 4 * int(np.prod(entry["shape"])) if LAYERS.fullmatch(key) else end - begin
    return sum_bytes


def check_room(needed, place, name):
    free = shutil.disk_usage(place).free
    if needed > free:
        sys.exit(f"error: twin {name} needs {needed / 1e9:.2f} GB and {place} has {free / 1e9:.2f} GB free; make room, give another place "
                 "with --folder or fewer twins with --twins")


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
    parser.add_argument("--folder", type=pathlib.Path, help="where the twins are written (default: the system's for temporary files)")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bench/qwen_tts_agreement", help="the built program")
    args = parser.parse_args()
    twins = [name for name in args.twins.split(",") if name]
    for name in twins:
        if name not in TWINS:
            sys.exit(f"error: '{name}' is no twin; there are {', '.join(TWINS)}")
    if args.folder and not args.folder.is_dir():
        sys.exit(f"error: there is no folder '{args.folder}'; give another one with --folder")
    needed = twin_bytes(args.model)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        places = {}
        for name in twins:
            to = pathlib.Path(folder) / name
            check_room(needed, folder, name)
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
