"""Racers of qwen_tts.py that are built elsewhere: qwentts.cpp and llama.cpp's llama-tts, with files that their own converters made.

Both print what their parts take.  llama-tts tells them in hundredths of a second, and decodes sound amid its frames: its codec is not told apart.
It has no speakers of CustomVoice: its files are those of a Base, and its prompt has one position less.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from measured import figure, run_measured

FRAME_S = 0.08


class Qwentts:
    """qwentts.cpp computes with half as many threads as it finds processors, and has no option for it: it is told of twice as many."""

    def __init__(self, args, files, threads, held):
        self.talker, self.codec = files.split(",")
        self.name = f"qwentts.cpp {kind(self.talker)}"
        self.program, self.text, self.frames, self.threads, self.held = args.qwentts, args.text, args.frames, threads, held

    def speak(self, seed, frames):
        with tempfile.TemporaryDirectory() as folder:
            told = pathlib.Path(folder) / "told.so"
            subprocess.run(["cc", "-shared", "-fPIC", "-o", told, "-xc", "-"], input=f"int get_nprocs(void) {{ return {2 * self.threads}; }}\n",
                           text=True, check=True)
            command = [*self.held, "env", f"LD_PRELOAD={told}", self.program, "--model", self.talker, "--codec", self.codec, "--speaker", "ryan",
                       "--lang", "english", "--max-new", frames, "--seed", seed, "-o", f"{folder}/out.wav"]
            said, peak_mb = run_measured(command, self.text)
        if figure(r"CPU threads: (\d+)", said) != self.threads:
            sys.exit(f"qwentts.cpp does not compute with {self.threads} threads")
        return said, peak_mb

    def measure(self, seed):
        said, peak_mb = self.speak(seed, self.frames)
        frames = figure(r"Generation done : (\d+) frames", said)
        parts = {name: figure(rf"\[Perf\] {name} ([\d.]+) ms", said) for name in ("Prefill", "TalkerDecode", "CodePredictor", "CodecDecode", "Total")}
        first, _ = self.speak(seed, 1)
        return {"frames": frames, "time / sound": parts["Total"] / 1e3 / (frames * FRAME_S),
                "frame, ms": (parts["Total"] - parts["Prefill"] - parts["CodecDecode"]) / frames, "talker, ms": parts["TalkerDecode"] / frames,
                "codec, ms": parts["CodecDecode"] / frames, "prompt, ms": parts["Prefill"],
                "first sound, ms": figure(r"\[Perf\] Total ([\d.]+) ms", first), "peak, MB": peak_mb}


class Llama:
    def __init__(self, args, files, threads, held):
        self.talker, self.parts = files.split(",")
        self.name = f"llama-tts {kind(self.talker)}"
        self.command = [*held, args.llama, "-m", self.talker, "-mm", self.parts, "-p", args.text, "--tts-lang", "en", "-t", threads, "-tb", threads,
                        "-c", "512", "--temp", "0.9", "--top-k", "50", "--top-p", "1"]
        self.frames = args.frames

    def speak(self, seed, frames):
        with tempfile.TemporaryDirectory() as folder:
            said, peak_mb = run_measured([*self.command, "-n", frames, "--seed", seed, "-o", f"{folder}/out.wav"])
        found = re.search(r"prompt eval ([\d.]+)s \+ generation ([\d.]+)s \+ vocoder ([\d.]+)s = total ([\d.]+)s", said)
        if not found:
            sys.exit(f"llama-tts printed no timings: {said[-800:]}")
        return [1e3 * float(part) for part in found.groups()], figure(r"generated (\d+) frames", said), peak_mb

    def measure(self, seed):
        (prompt, making, rest, total), frames, peak_mb = self.speak(seed, self.frames)
        (_, _, _, first), _, _ = self.speak(seed, 1)
        return {"frames": frames, "time / sound": total / 1e3 / (frames * FRAME_S), "frame and codec, ms": (making + rest) / frames,
                "prompt, ms": prompt, "first sound, ms": first, "peak, MB": peak_mb}


def kind(path):
    """The precision in a file's name."""
    found = re.search(r"(q\d_\w+|bf16|f16|f32)(?=\.gguf$)", str(path), re.IGNORECASE)
    return found[1] if found else pathlib.Path(path).stem
