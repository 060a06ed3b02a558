"""Runs the built program as a user would; shared by the tests of this folder.

SYRINX_BINARY is the program, SYRINX_TEST_DATA the folder tests/data; ctest sets both.
"""
import array
import math
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time
import unittest

BINARY = os.environ["SYRINX_BINARY"]
DATA = pathlib.Path(os.environ["SYRINX_TEST_DATA"])
TINY = ["--model", str(DATA / "kokoro/tiny.onnx"), "--voice", str(DATA / "kokoro/tiny_voice.bin"), "--phonemes"]
FIGURES = ["model", "voice", "precision", "threads", "load_ms", "first_audio_ms", "total_ms", "audio_seconds", "rtf",
           "finish_reason", "retried_pieces", "measured_pieces", "uneven_rate_pieces", "uneven_loudness_pieces", "least_rate",
           "greatest_rate", "least_loudness_db", "greatest_loudness_db", "peak_rss_bytes"]


def tiny_whisper(folder):
    """Makes `folder` and puts the small random checkpoint of Whisper there, with its vocabulary."""
    shutil.copytree(DATA / "whisper/ct2", folder)
    for name in ("tokenizer.json", "vocabulary.txt"):
        shutil.copy(DATA / "whisper" / name, folder)
    return folder


def noise(count):
    """As tools/reference/transducer.py, 16-bit samples."""
    state, out = 12345, array.array("h")
    for i in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append((state >> 16) - 32768 >> 1 + i // 1600 % 5)
    return out.tobytes()


def wav(samples, rate=16000, channels=1, form=1, bits=16):
    """Bytes of a WAV file; samples are bytes already."""
    frame = channels * bits // 8
    return (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, form, channels, rate, rate * frame, frame, bits) + b"data" +
            struct.pack("<I", len(samples)) + samples)


def tone(seconds, rate=16000, channels=1):
    frames = (int(8000 * math.sin(i * 0.1)) for i in range(int(seconds * rate)))
    return b"".join(struct.pack("<h", value) * channels for value in frames)


def cloning_qwen(folder):
    """Makes `folder` with the small random Qwen3-TTS that clones, and two recordings; the words of one are known."""
    shutil.copytree(DATA / "qwen_tts/base", folder)
    shutil.copytree(DATA / "qwen_tts/speech_tokenizer", folder / "speech_tokenizer")
    (folder / "voices").mkdir()
    for name in ("ann", "bob"):
        (folder / "voices" / f"{name}.wav").write_bytes(wav(tone(1.0, 24000), 24000))
    (folder / "voices/bob.txt").write_text("What is said.")
    return folder


class Program(unittest.TestCase):
    """Each test has an empty folder of its own, which is also the home of models and caches unless `home` is set."""

    home = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        self.out = self.folder / "out"
        self.out.mkdir()

    def tearDown(self):
        self._folder.cleanup()

    def environment(self):
        environment = dict(os.environ)
        environment.pop("SYRINX_LOG", None)
        if self.home is None:
            environment["SYRINX_HOME"] = str(self.folder / "home")
        return environment

    def start(self, *arguments, variables=None, **options):
        """`variables` are added to the environment."""
        options.setdefault("stdin", subprocess.PIPE)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([BINARY, *map(str, arguments)], cwd=self.out,
                                env={**self.environment(), **(variables or {})}, **options)

    def last_lines(self):
        """What a reader of a wait in vain wants to know."""
        return ""

    def wait_for(self, condition, seconds=120):
        """For a state that is to come: so long that no busy machine is late."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                self.fail(f"this did not come in {seconds} s; {self.last_lines()}")
            time.sleep(0.01)

    def run_it(self, *arguments, text=b"", timeout=500, variables=None):
        process = self.start(*arguments, variables=variables)
        output, errors = process.communicate(text, timeout)
        return process.returncode, output, errors.decode()

    def check_fails(self, status, words, *arguments, text=b""):
        """One sentence that holds `words`, this exit status, and no file left behind."""
        code, _, errors = self.run_it(*arguments, text=text)
        self.assertEqual(code, status, errors)
        self.assertTrue(errors.startswith("syrinx: "), errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn(words, errors)
        self.assertEqual(list(self.out.iterdir()), [])
