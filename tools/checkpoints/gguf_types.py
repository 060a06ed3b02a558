#!/usr/bin/env python3
"""Write a GGUF file with tensors of every type that Syrinx reads and entries of every kind, by ggml's Python package, and its
de-quantised values as safetensors.

usage: gguf_types.py DEST          needs numpy, safetensors and gguf 0.19

DEST/types.gguf, DEST/types.safetensors.  Types that the package can quantise hold normal numbers; of the others the blocks are
drawn, with scales of normal size.
"""
import argparse
import pathlib

import gguf
import numpy as np
import safetensors.numpy
from gguf import GGMLQuantizationType as Type

ROWS, COLUMNS = 2, 512
DRAWN = {Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,)}  # where the scales of f16 are in a block
QUANTISED = (Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0)


def drawn_blocks(kind, draws):
    size = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = draws.integers(0, 256, (ROWS * COLUMNS // gguf.GGML_QUANT_SIZES[kind][0], size), np.uint8)
    for at in DRAWN[kind]:
        blocks[:, at:at + 2] = draws.normal(0, 0.01, (len(blocks), 1)).astype(np.float16).view(np.uint8)
    return blocks.reshape(ROWS, -1)


def entries(writer):
    writer.add_uint8("kind.u8", 200)
    writer.add_int8("kind.i8", -100)
    writer.add_uint16("kind.u16", 60000)
    writer.add_int16("kind.i16", -30000)
    writer.add_uint32("kind.u32", 4000000000)
    writer.add_int32("kind.i32", -2000000000)
    writer.add_uint64("kind.u64", 2**63 + 5)
    writer.add_int64("kind.i64", -2**62)
    writer.add_float32("kind.f32", 0.1)
    writer.add_float64("kind.f64", 0.1)
    writer.add_bool("kind.bool", True)
    writer.add_string("kind.string", "Grüße")
    writer.add_array("array.i32", [1, -2, 3])
    writer.add_array("array.f32", [0.5, -1.5])
    writer.add_array("array.string", ["a", "", "Ġthe"])
    writer.add_array("array.bool", [True, False])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dest", type=pathlib.Path)
    dest = parser.parse_args().dest
    draws = np.random.default_rng(27)
    writer = gguf.GGUFWriter(dest / "types.gguf", "types")
    entries(writer)
    values = {}
    for kind in (Type.F32, Type.F16, *QUANTISED, *DRAWN):
        normal = draws.normal(0, 1, (ROWS, COLUMNS)).astype(np.float32)
        if kind in DRAWN:
            blocks = drawn_blocks(kind, draws)
        elif kind in QUANTISED:
            blocks = gguf.quants.quantize(normal, kind)
        else:
            blocks = normal.astype(np.float16 if kind == Type.F16 else np.float32)
        values[kind.name] = np.asarray(gguf.quants.dequantize(blocks, kind), np.float32).reshape(ROWS, COLUMNS)
        writer.add_tensor(kind.name, blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    safetensors.numpy.save_file(values, dest / "types.safetensors")


if __name__ == "__main__":
    main()
