"""Recognition models that somebody made to do harm: one sentence, a status, and nothing else happens."""
import gzip
import io
import json
import os
import pathlib
import pickle
import resource
import struct
import tarfile
import tempfile
import unittest
import uuid
import zipfile

from program import DATA, Program, tone, wav

FOLDER = DATA / "transducer"
MOST_BYTES = 1 << 30  # of the process, whatever a file promises
LONGEST_S = 20  # of its processors' time, which no busy machine makes longer
# A sanitiser reserves far more addresses before main(): there it bounds the memory itself.
SANITISED = os.environ.get("SYRINX_SANITIZE", "") != ""


def members():
    """Of the small checkpoint: names and contents."""
    with tarfile.open(FOLDER / "hybrid_streaming.nemo") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}


def tar(contents, change=lambda info: info):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(change(info), io.BytesIO(content))
    return out.getvalue()


def bounds():
    """Of a process: options of start()."""
    if SANITISED:
        own = f"hard_rss_limit_mb={MOST_BYTES >> 20}"
        return {"variables": {name: ":".join(filter(None, (os.environ.get(name), own)))
                              for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}}
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))}


def cpu_s():
    """Of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Calls:
    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


def torch_zip(pickled, method=zipfile.ZIP_STORED, more=()):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("model_weights/data.pkl", pickled)
        archive.writestr("model_weights/version", "3\n")
        for name, content in more:
            archive.writestr(name, content)
    return out.getvalue()


class HostileModels(Program):
    def setUp(self):
        super().setUp()
        self.good = self.folder / "good.wav"
        self.good.write_bytes(wav(tone(0.5)))
        self.members = members()

    def check(self, content, status, words, name="bad.nemo"):
        path = self.folder / name
        path.write_bytes(content)
        begun = cpu_s()
        process = self.start("transcribe", "--model", path, "--threads", "1", self.good, **bounds())
        output, errors = process.communicate(timeout=1500)
        errors = errors.decode()
        self.assertEqual(process.returncode, status, errors)
        self.assertRegex(errors, r"^syrinx: [^\n]*\n$")
        self.assertIn(words, errors)
        self.assertLess(len(errors), 1000)
        self.assertEqual(output, b"")
        self.assertLess(cpu_s() - begun, LONGEST_S * (10 if SANITISED else 1))
        self.assertEqual(list(self.out.iterdir()), [])
        self.assertFalse((self.folder / "harm").exists())

    def with_member(self, end, content):
        name = next(name for name in self.members if name.endswith(end))
        return tar({**self.members, name: content})

    def test_the_checkpoint_itself_is_good(self):
        (self.folder / "ok.nemo").write_bytes(tar(self.members))
        code, _, errors = self.run_it("transcribe", "--model", self.folder / "ok.nemo", self.good)
        self.assertEqual((code, errors), (0, ""))

    def test_names_that_leave_the_folder(self):
        harm = f"harm-{uuid.uuid4()}"
        places = (self.folder, self.out, pathlib.Path.cwd(), pathlib.Path(tempfile.gettempdir()))
        for name in (f"../{harm}", f"{tempfile.gettempdir()}/{harm}", f"a/../../{harm}", f"../../{harm}"):
            self.check(tar({**self.members, name: b"harm"}), 4, "would lie outside")
            for place in places:
                self.assertFalse((place / name).resolve().exists(), name)

    def test_a_pickle_that_calls(self):
        harm = f"touch {self.folder / 'harm'}"
        for protocol in (2, 4):
            call = pickle.dumps(Calls(os.system, harm), protocol)
            self.check(self.with_member(".ckpt", torch_zip(call)), 5, "system")
        self.check(self.with_member(".ckpt", torch_zip(pickle.dumps(Calls(eval, "1"), 2))), 5, "eval")

    def test_pickles_that_grow(self):
        deep = b"\x80\x02" + b"(" * 100000 + b"."
        wide = b"\x80\x02]q\x00(" + b"h\x00" * (5 << 20) + b"e."
        for bad in (deep, wide):
            self.check(self.with_member(".ckpt", torch_zip(bad)), 6, "the pickle inside is refused")

    def test_bombs(self):
        zeros = bytes(64 << 20)
        self.check(gzip.compress(tar({**self.members, "zeros": zeros}), 9), 6, "8 times as many")
        claimed = 1040 << 20  # within the ratio, and more than there is
        lying = b"\x1f\x8b\x08" + bytes(7) + os.urandom(136 << 20) + struct.pack("<II", 0, claimed)
        self.check(lying, *((4, "damaged or truncated") if SANITISED else (6, f"needs {claimed} bytes of memory")))
        bomb = torch_zip(zeros, zipfile.ZIP_DEFLATED)
        self.check(self.with_member(".ckpt", bomb), 5, "is compressed")

    def test_sizes_that_lie(self):
        def longer(info):
            if info.name.endswith(".ckpt"):
                info.pax_headers = {"size": str(1 << 60)}
            return info

        self.check(tar(self.members, longer), 4, "leaves the file")
        packed = bytearray((FOLDER / "rnnt.nemo").read_bytes())
        packed[-4:] = struct.pack("<I", 0xFFFFFFF0)
        self.check(bytes(packed), 6, "8 times as many")
        weights = next(content for name, content in self.members.items() if name.endswith(".ckpt"))
        end = weights.rindex(b"PK\x05\x06")
        lying = bytearray(weights)
        lying[end + 12:end + 20] = struct.pack("<II", 0x7FFFFFFF, 0x7FFFFFFF)
        self.check(self.with_member(".ckpt", bytes(lying)), 4, "zip")

    def test_safetensors_headers_that_lie(self):
        folder = self.folder / "mlx"
        folder.mkdir()
        (folder / "config.json").write_bytes((FOLDER / "tdt_mlx/config.json").read_bytes())
        good = (FOLDER / "tdt_mlx/model.safetensors").read_bytes()
        length = struct.unpack("<Q", good[:8])[0]
        header = json.loads(good[8:8 + length])
        name = next(name for name in header if name != "__metadata__")
        for status, value in ((6, 1 << 62), (4, len(good) - 7), (4, 3)):
            self.check(struct.pack("<Q", value) + good[8:], status, "model.safetensors", "mlx/model.safetensors")
        for change in ({"data_offsets": [0, 1 << 60]}, {"shape": [1 << 40, 1 << 40]}, {"shape": [-1]},
                       {"data_offsets": [8, 0]}):
            text = json.dumps({**header, name: {**header[name], **change}}).encode()
            self.check(struct.pack("<Q", len(text)) + text + good[8 + length:], 4, name, "mlx/model.safetensors")

    def test_configurations(self):
        text = next(content for name, content in self.members.items() if name.endswith(".yaml")).decode()
        unknown = text.replace("EncDecHybridRNNTCTCBPEModel", "EncDecMindReader")
        self.assertNotEqual(unknown, text)
        self.check(self.with_member(".yaml", unknown.encode()), 5, "EncDecMindReader")
        laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
        laughs += "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
        self.check(self.with_member(".yaml", (laughs + text).encode()), 5, "alias")
        self.check(self.with_member(".yaml", b"[" * 100000), 6, "model_config.yaml")
        self.check(self.with_member(".yaml", b"\xff\xfe\x00"), 4, "model_config.yaml")

    def test_cut_off(self):
        whole = tar(self.members)
        for part in (0, 1, 511, 513, len(whole) // 3, len(whole) * 2 // 3):
            self.check_cut(whole[:part])
        packed = (FOLDER / "rnnt.nemo").read_bytes()
        for part in (2, 20, len(packed) // 2, len(packed) - 1):
            self.check_cut(packed[:part])

    def check_cut(self, content):
        """Damaged; without a configuration, where it ends before that; or too large, its end being taken for its size."""
        path = self.folder / "bad.nemo"
        path.write_bytes(content)
        code, _, errors = self.run_it("transcribe", "--model", path, self.good)
        self.assertIn(code, (3, 4, 6), errors)
        self.assertRegex(errors, r"^syrinx: [^\n]*bad.nemo[^\n]*\n$")

    def test_a_batch_goes_on_behind_a_hostile_recording(self):
        bad = self.folder / "bad.wav"
        bad.write_bytes(b"RIFF\xff\xff\xff\x7fWAVEfmt " + struct.pack("<I", 0xFFFFFFF0) + bytes(64))
        other = self.folder / "other.wav"
        other.write_bytes(wav(tone(0.5)))
        (self.folder / "ok.nemo").write_bytes(tar(self.members))
        code, _, errors = self.run_it("transcribe", "--model", self.folder / "ok.nemo", self.good, bad, other, "--out-dir",
                                      "texts", "--jobs", "2")
        self.assertIn(code, (4, 5, 6), errors)
        self.assertEqual(errors.count("bad.wav"), 1, errors)
        self.assertEqual(sorted(path.name for path in (self.out / "texts").iterdir()), ["good.txt", "other.txt"])


if __name__ == "__main__":
    unittest.main()
