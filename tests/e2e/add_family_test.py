"""A family of models is two folders and one line: a copy of the tree gets one that hums and one that hears durations, is built,
and speaks, transcribes and serves them.  The diff of its src/ outside the folders is a line a family.

The sources of the families are in tests/families/NAME: models/ and engine/.  Most of the build comes from the compiler cache.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest
import wave

import program
from program import DATA, TINY, tone, wav
from server import ENGLISH, Server, form

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATE_HZ, LETTER_S = 16000, 0.1
FORM = {"Content-Type": "multipart/form-data; boundary=b"}
KINDS = {"hum": "SPEECH_FAMILY", "hourglass": "RECOGNITION_FAMILY"}


def ran(*command, folder):
    run = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode:
        raise AssertionError(f"{command}: {run.stdout[-4000:]}")
    return run.stdout


def copy_tree(tree):
    """The tracked files of this tree, as a repository with one commit."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    ran("git", "init", "-q", folder=tree)
    ran("git", "add", "-A", folder=tree)
    ran("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-qm", "before", folder=tree)


def add_family(tree, name):
    sources = ROOT / "tests/families" / name
    shutil.copytree(sources / "models", tree / "src/models" / name)
    shutil.copytree(sources / "engine", tree / "src/engine/families" / name)
    with (tree / "src/engine/families/families.def").open("a") as table:
        table.write(f"{KINDS[name]}({name})\n")


def build(tree):
    ran("cmake", "--preset", "release", "-DSYRINX_TESTS=OFF", folder=tree)
    ran("cmake", "--build", "--preset", "release", "--target", "syrinx", "-j", str(os.cpu_count()), folder=tree)
    return tree / "build/release/syrinx"


def write_model(folder, kind, **tensors):
    """config.json and model.safetensors with lists of numbers."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    header, values = {"__metadata__": {"model": kind}}, b""
    for name, numbers in tensors.items():
        content = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": [len(numbers)], "data_offsets": [len(values), len(values) + len(content)]}
        values += content
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + values)
    return folder


def samples_of(path):
    with wave.open(str(path)) as file:
        frames = file.readframes(file.getnframes())
        return file.getframerate(), struct.unpack(f"<{len(frames) // 2}h", frames)


def frequency(samples, rate_hz):
    rising = sum(before < 0 <= after for before, after in zip(samples, samples[1:]))
    return rising * rate_hz / len(samples)


class AddFamily(Server):
    @classmethod
    def setUpClass(cls):
        cls.copy = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.copy.cleanup)
        cls.tree = pathlib.Path(cls.copy.name) / "syrinx"
        cls.tree.mkdir()
        copy_tree(cls.tree)
        for name in KINDS:
            add_family(cls.tree, name)
        cls.before, program.BINARY = program.BINARY, build(cls.tree)

    def setUp(self):
        super().setUp()
        self.hum = write_model(self.folder / "hum", "hum", low=[110, 0.4, 0.1], high=[440, 0.4])
        self.hourglass = write_model(self.folder / "hourglass", "hourglass", rate=[16000])

    def hummed(self, text, *arguments):
        """Rate and samples of a WAV file."""
        path = self.out / "hum.wav"
        code, _, errors = self.run_it("speak", "--model", self.hum, text, "--out", path, *arguments)
        self.assertEqual(code, 0, errors)
        sound = samples_of(path)
        path.unlink()
        return sound

    def spoken(self, *arguments):
        path = self.out / "speech.wav"
        code, _, errors = self.run_it("speak", *arguments, "--out", path)
        self.assertEqual(code, 0, errors)
        sound = path.read_bytes()
        path.unlink()
        return sound

    def test_sources_change_by_line_a_family(self):
        ran("git", "add", "-A", folder=self.tree)
        changed = ran("git", "diff", "--cached", "--numstat", "HEAD", folder=self.tree).splitlines()
        folders = tuple(f"src/{place}/{name}/" for place in ("models", "engine/families") for name in KINDS)
        outside = [line for line in changed if not line.split("\t")[2].startswith(folders)]
        self.assertEqual(outside, [f"{len(KINDS)}\t0\tsrc/engine/families/families.def"])

    def test_checks_of_sources_pass(self):
        for check in ("check_layers", "check_families", "check_sources"):
            ran(f"tools/{check}", folder=self.tree)

    def test_speech_has_rate_and_length_of_family(self):
        rate_hz, samples = self.hummed("Aaaa.")
        self.assertEqual((rate_hz, len(samples)), (RATE_HZ, round(5 * LETTER_S * RATE_HZ)))

    def test_option_of_family_changes_its_speech(self):
        letters = round(4 * LETTER_S * RATE_HZ)
        for arguments, expected in (((), 440), (("--pitch", "0.5"), 220), (("--pitch", "2", "--voice", "low"), 220)):
            rate_hz, samples = self.hummed("Aaaa.", *arguments)
            self.assertAlmostEqual(frequency(samples[:letters], rate_hz), expected, delta=5, msg=arguments)

    def test_options_that_family_lacks_are_refused(self):
        output = self.out / "hum.wav"
        for status, words, arguments in ((5, "Hum has no --temperature", ("--temperature", "0.5")), (2, "from 0.5 to 2", ("--pitch", "3")),
                                         (5, "computed in f32", ("--precision", "int4"))):
            self.check_fails(status, words, "speak", "--model", self.hum, "Aaaa.", "--out", output, *arguments)

    def test_help_lists_options_of_family(self):
        self.assertIn(b"Hum: 0.5 to 2 times", self.run_it("speak", "--help")[1])
        self.assertIn(b"Hourglass: of the duration", self.run_it("transcribe", "--help")[1])

    def test_voices_are_those_of_model(self):
        code, output, errors = self.run_it("voices", "--model", self.hum, "--names")
        self.assertEqual((code, output), (0, b"high\nlow\n"), errors)

    def test_inspect_names_family(self):
        self.assertIn(b"model: hum", self.run_it("inspect", self.hum / "model.safetensors")[1])

    def test_other_families_speak_as_before(self):
        pocket = ("--model", ENGLISH, "--voice", ENGLISH / "voice.safetensors", "Hello there.")
        for arguments in ((*TINY, "həlˈO wˈɜɹld"), pocket):
            after = self.spoken(*arguments)
            added, program.BINARY = program.BINARY, self.before
            try:
                self.assertEqual(self.spoken(*arguments), after)
            finally:
                program.BINARY = added

    def test_recordings_are_transcribed(self):
        sound = self.folder / "tone.wav"
        sound.write_bytes(wav(tone(1.5)))
        for expected, arguments in (("1.5 seconds", ()), ("0.0 minutes", ("--unit", "minutes"))):
            code, output, errors = self.run_it("transcribe", "--model", self.hourglass, sound, *arguments)
            self.assertEqual((code, output.decode().strip()), (0, expected), errors)
        self.check_fails(5, "Hourglass has no --translate", "transcribe", "--model", self.hourglass, sound, "--translate")

    def test_server_speaks_and_transcribes(self):
        self.start_server(model=["--speech-model", self.hum, "--recognition-model", self.hourglass])
        status, headers, sound = self.request("POST", "/v1/audio/speech", {
            "input": "Aaaa.", "response_format": "wav", "sample_rate": RATE_HZ, "pitch": 0.5, "temperature": 0.3, "speed": 2})
        self.assertEqual((status, headers["X-Syrinx-Ignored"]), (200, "temperature, speed"), sound[:200])
        path = self.folder / "served.wav"
        path.write_bytes(sound)
        self.assertEqual(samples_of(path), self.hummed("Aaaa.", "--pitch", "0.5"))
        self.check_refused(400, None, "pitch", "POST", "/v1/audio/speech", {"input": "Aaaa.", "pitch": 3})
        status, headers, body = self.request("POST", "/v1/audio/transcriptions", form(wav(tone(1.5)), response_format="text"), FORM)
        self.assertEqual((status, body.decode().strip()), (200, "1.5 seconds"))
        fields = json.loads(self.request("GET", "/openapi.json")[2])["components"]["schemas"]["SpeechRequest"]["properties"]
        self.assertIn("Hum: 0.5 to 2 times", fields["pitch"]["description"])


if __name__ == "__main__":
    unittest.main()
