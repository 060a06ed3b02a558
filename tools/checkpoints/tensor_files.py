#!/usr/bin/env python3
"""Write the tiny tensor files of tests/data/tensor with their makers' own libraries, and what is in them.

usage: tensor_files.py DEST        needs numpy, torch, safetensors, onnx

expected.json: file -> tensor -> dtype, dims, values (row-major; texts for string arrays).
"""
import collections
import json
import pathlib
import sys
import zipfile

import numpy as np
import onnx
import safetensors.numpy
import safetensors.torch
import torch
from onnx import TensorProto, helper, numpy_helper

NAMES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
         "int16": "i16", "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool"}
expected = {}


def ramp(*dims, dtype=np.float32, step=0.5):
    count = int(np.prod(dims))
    return ((np.arange(count) % 41) * step - (0 if np.dtype(dtype).kind in "ub" else 5)).reshape(dims).astype(dtype)


def describe(array):
    if isinstance(array, torch.Tensor):
        dtype = NAMES[str(array.dtype).removeprefix("torch.")]
        return {"dtype": dtype, "dims": list(array.shape), "values": array.detach().to(torch.float64).flatten().tolist()}
    array = np.asarray(array)
    if array.dtype.kind in "US":
        texts = [t.decode() if isinstance(t, bytes) else str(t) for t in array.flatten()]
        return {"dtype": "text", "dims": list(array.shape), "values": texts}
    return {"dtype": NAMES[array.dtype.name], "dims": list(array.shape),
            "values": array.astype(np.float64).flatten().tolist()}


def note(name, tensors):
    expected[name] = {key: describe(value) for key, value in tensors.items()}


def make_safetensors(dest):
    plain = {"a.weight": ramp(3, 4), "b": ramp(5, dtype=np.float16), "scalar": np.array(2.5, np.float32),
             "none": np.zeros((0, 3), np.float32), "whole.i64": ramp(2, 2, dtype=np.int64, step=3),
             "whole.u8": ramp(7, dtype=np.uint8, step=5), "yes": np.array([True, False, True])}
    safetensors.numpy.save_file(plain, dest / "plain.safetensors", metadata={"format": "np", "note": "ünïcode"})
    note("plain.safetensors", plain)
    brain = {"w": torch.from_numpy(ramp(4, 3)).to(torch.bfloat16), "d": torch.from_numpy(ramp(2, dtype=np.float64))}
    safetensors.torch.save_file(brain, dest / "brain.safetensors")
    note("brain.safetensors", brain)


def make_torch(dest):
    torch.manual_seed(1)
    base = torch.from_numpy(ramp(6, 8))
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LSTM(2, 2, bidirectional=True))
    objects = {
        "net": collections.OrderedDict(module.state_dict()),
        "views": {"slice": base[2:4, 1:5], "transposed": base.t(), "row": base[3], "one": torch.tensor(1.5)},
        "types": {str(dtype).removeprefix("torch."): torch.arange(5).to(dtype)
                  for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                                torch.int8, torch.uint8, torch.bool)},
        "list": [torch.zeros(2), {"deep": torch.ones(1, 2)}, "text", 3, None, 2.5, True, -70000, 1 << 40, (1, 2, 3, 4)],
        "parameter": torch.nn.Parameter(torch.tensor([1.0, -2.0])),
        "size": torch.Size([2, 3]), "none": torch.zeros(0, 4), 7: torch.tensor([7.0])}
    flat = {f"net.{k}": v for k, v in objects["net"].items()}
    flat |= {f"views.{k}": v for k, v in objects["views"].items()}
    flat |= {f"types.{k}": v for k, v in objects["types"].items()}
    flat |= {"list.0": objects["list"][0], "list.1.deep": objects["list"][1]["deep"],
             "parameter": objects["parameter"], "none": objects["none"], "7": objects[7]}
    torch.save(objects, dest / "nested.pth")
    note("nested.pth", flat)
    torch.save(objects, dest / "nested4.pth", pickle_protocol=4)
    note("nested4.pth", flat)
    torch.save(torch.nn.Linear(1, 1), dest / "module.pth")  # a whole object: refused


def make_onnx(dest):
    raw = {"w.f32": ramp(2, 3), "w.u8": ramp(4, 2, dtype=np.uint8, step=3), "w.i8": ramp(3, dtype=np.int8, step=1),
           "w.i64": ramp(2, dtype=np.int64, step=4), "w.f16": ramp(3, dtype=np.float16), "w.bool": np.array([True, False])}
    typed = {"t.f32": (TensorProto.FLOAT, ramp(2, 2)), "t.f64": (TensorProto.DOUBLE, ramp(3, dtype=np.float64)),
             "t.i64": (TensorProto.INT64, ramp(4, dtype=np.int64, step=1)),
             "t.i32": (TensorProto.INT32, ramp(3, dtype=np.int32, step=2)),
             "t.u8": (TensorProto.UINT8, ramp(3, dtype=np.uint8, step=40)),
             "t.i8": (TensorProto.INT8, ramp(3, dtype=np.int8, step=2)),
             "t.u64": (TensorProto.UINT64, ramp(2, dtype=np.uint64, step=9)),
             "t.scalar": (TensorProto.FLOAT, np.array(-0.25, np.float32))}
    initialisers = [numpy_helper.from_array(value, key) for key, value in raw.items()]
    initialisers += [helper.make_tensor(key, kind, value.shape, value.flatten().tolist())
                     for key, (kind, value) in typed.items()]
    constant = ramp(2, 2, step=2)
    nodes = [helper.make_node("Constant", [], ["c"], name="/k", value=numpy_helper.from_array(constant, "inner")),
             helper.make_node("MatMul", ["x", "w.f32"], ["y"], name="/net/layer/MatMul"),
             helper.make_node("Conv", ["y", "c", ""], ["z"], name="/net/conv/Conv", kernel_shape=[3], group=2,
                              auto_pad="SAME_UPPER", alpha=0.5)]
    graph = helper.make_graph(nodes, "tiny", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
                              [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)], initialisers)
    model = helper.make_model(graph, producer_name="tensor_files", opset_imports=[helper.make_opsetid("", 17)])
    (dest / "wired.onnx").write_bytes(model.SerializeToString())
    note("wired.onnx", raw | {key: value for key, (_, value) in typed.items()} | {"c": constant})
    outside = onnx.ModelProto()
    outside.CopyFrom(model)
    tensor = outside.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.ClearField("raw_data")
    tensor.external_data.add(key="location", value="weights.bin")
    (dest / "external.onnx").write_bytes(outside.SerializeToString())


def make_numpy(dest):
    arrays = {"f32": ramp(3, 2), "f64": ramp(4, dtype=np.float64), "f16": ramp(2, dtype=np.float16),
              "i64": ramp(2, 3, dtype=np.int64, step=2), "u8": ramp(9, dtype=np.uint8, step=6),
              "columns": np.asfortranarray(ramp(2, 3, 4)), "yes": np.array([[True], [False]]),
              "scalar": np.float32(4.25), "none": np.zeros((2, 0), np.float32),
              "text": np.array(["a", "zażółć", "gęślą 🙂"]), "bytes": np.array([b"ab", b"c"]), "word": np.array("one")}
    np.savez(dest / "arrays.npz", **arrays)
    np.savez_compressed(dest / "deflated.npz", **arrays)
    note("arrays.npz", arrays)
    note("deflated.npz", arrays)
    np.save(dest / "single.npy", arrays["f32"])
    note("single.npy", {"": arrays["f32"]})
    np.save(dest / "object.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    np.save(dest / "big_endian.npy", arrays["f32"].astype(">f4"))


class Stream:
    """A file that cannot seek: zipfile then writes data descriptors."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def write(self, data):
        return self.file.write(data)

    def flush(self):
        self.file.flush()


def make_zip(dest):
    members = {"a.txt": b"alpha " * 20, "dir/b.bin": bytes(range(256)), "empty": b""}
    for name, stream in (("seekable.zip", False), ("streamed.zip", True)):
        target = Stream(dest / name) if stream else dest / name
        with zipfile.ZipFile(target, "w") as archive:
            for i, (key, value) in enumerate(members.items()):
                info = zipfile.ZipInfo(key, (1980, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED if i == 0 else zipfile.ZIP_STORED
                with archive.open(info, "w", force_zip64=True) as out:
                    out.write(value)
            archive.comment = b"a comment"


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    dest = pathlib.Path(sys.argv[1])
    dest.mkdir(parents=True, exist_ok=True)
    for make in (make_safetensors, make_torch, make_onnx, make_numpy, make_zip):
        make(dest)
    lines = [f"{json.dumps(name)}: {{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
                                                     for key, value in tensors.items()) + "}"
             for name, tensors in expected.items()]
    (dest / "expected.json").write_text("{" + ",\n".join(lines) + "}\n")
    for path in dest.iterdir():
        path.chmod(0o644)


if __name__ == "__main__":
    main()
