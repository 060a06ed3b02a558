#!/usr/bin/env python3
"""Word errors in noisy human speech: Syrinx's Whisper beside faster-whisper's, with the same weights, greedily and by a beam of 5,
with voice activity and without.

The recordings are those of Debian's pocketsphinx-testdata: five sentences of LibriVox and goforward. Each is heard as it is and in
ten degradations that are made here, from fixed seeds. Both sides keep their defaults otherwise: fallback by temperature, best of 5.

  python3 tools/judge/noisy.py --model whisper-base --json noisy.json     # a folder with model.bin and tokenizer.json
  python3 tools/judge/noisy.py --model whisper-base --racers syrinx-beam fw-beam --list
  python3 tools/judge/noisy.py --keep sounds --racers                      # makes the sounds alone
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "reference"), str(ROOT / "tools" / "judge")]

import words  # noqa: E402
from speech_wav import RATE_HZ, read_speech, samples  # noqa: E402

RECORDINGS = pathlib.Path("/usr/share/pocketsphinx/test/data")
RACERS = ("syrinx-greedy", "syrinx-beam", "fw-greedy", "fw-beam")


def recordings() -> dict[str, tuple[np.ndarray, str]]:
    """Sound and what is said in it, by name."""
    made = {}
    for line in (RECORDINGS / "librivox/transcription").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"<s> (.*) </s> \((.*)\)", line.strip()):
            made[match[2][-4:]] = (read_speech(RECORDINGS / f"librivox/{match[2]}.wav"), match[1])
    made["goforward"] = (samples((RECORDINGS / "goforward.raw").read_bytes()), "go forward ten meters")
    return made


def at_snr(sound: np.ndarray, noise: np.ndarray, snr_db: float) -> np.ndarray:
    power = np.mean(sound**2) / max(np.mean(noise**2), 1e-12)
    return sound + noise * np.sqrt(power / 10 ** (snr_db / 10))


def shaped(rng: np.random.Generator, count: int, shape) -> np.ndarray:
    """Noise whose amplitude at a frequency in Hz is shape(frequency)."""
    spectrum = np.fft.rfft(rng.standard_normal(count)) * shape(np.maximum(np.fft.rfftfreq(count, 1 / RATE_HZ), 20))
    return np.fft.irfft(spectrum, count)


def band(sound: np.ndarray, low_hz: float, high_hz: float) -> np.ndarray:
    spectrum, hz = np.fft.rfft(sound), np.fft.rfftfreq(len(sound), 1 / RATE_HZ)
    return np.fft.irfft(spectrum * ((hz >= low_hz) & (hz <= high_hz)), len(sound))


def babble(rng: np.random.Generator, sound: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    sum_of = np.zeros(len(sound))
    for other in others:
        sum_of += np.resize(np.roll(other[::-1], int(rng.integers(len(other)))), len(sound))  # backwards: no word of theirs
    return sum_of


def reverberant(rng: np.random.Generator, sound: np.ndarray, seconds: float) -> np.ndarray:
    count = int(seconds * RATE_HZ)
    tail = rng.standard_normal(count) * 10 ** (-3 * np.arange(count) / count) * 0.05
    tail[0] = 1
    size = len(sound) + count
    return np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(tail, size), size)[:len(sound)]


def mu_law(sound: np.ndarray) -> np.ndarray:
    coded = np.round(np.sign(sound) * np.log1p(255 * np.abs(np.clip(sound, -1, 1))) / np.log(256) * 127)
    return np.sign(coded) * np.expm1(np.abs(coded) / 127 * np.log(256)) / 255


def holes(rng: np.random.Generator, sound: np.ndarray, share: float) -> np.ndarray:
    packet = RATE_HZ // 50
    lost = rng.random(len(sound) // packet + 1) < share
    return sound * ~np.repeat(lost, packet)[:len(sound)]


DEGRADATIONS = {
    "clean": lambda rng, sound, others: sound,
    "white_10": lambda rng, sound, others: at_snr(sound, rng.standard_normal(len(sound)), 10),
    "white_0": lambda rng, sound, others: at_snr(sound, rng.standard_normal(len(sound)), 0),
    "pink_0": lambda rng, sound, others: at_snr(sound, shaped(rng, len(sound), lambda hz: hz**-0.5), 0),
    "brown_-5": lambda rng, sound, others: at_snr(sound, shaped(rng, len(sound), lambda hz: 1 / hz), -5),
    "babble_3": lambda rng, sound, others: at_snr(sound, babble(rng, sound, others), 3),
    "reverb": lambda rng, sound, others: at_snr(reverberant(rng, sound, 0.8), rng.standard_normal(len(sound)), 25),
    "telephone": lambda rng, sound, others: mu_law(band(at_snr(sound, rng.standard_normal(len(sound)), 12), 300, 3400)),
    "clipped": lambda rng, sound, others: np.clip(at_snr(sound, rng.standard_normal(len(sound)), 15) * 30, -1, 1) * 0.5,
    "holes": lambda rng, sound, others: holes(rng, at_snr(sound, rng.standard_normal(len(sound)), 20), 0.15),
    "faint": lambda rng, sound, others: np.round(at_snr(sound, rng.standard_normal(len(sound)), 8) * 0.003 * 32768) / 32768,
}


def make(folder: pathlib.Path, kinds: list[str]) -> list[tuple[pathlib.Path, str, str]]:
    """(file, degradation, what is said) of every sound, as 16-bit WAV."""
    import wave

    clean, made = recordings(), []
    for kind in kinds:
        for name, (sound, said) in clean.items():
            rng = np.random.default_rng(zlib.crc32(f"{kind} {name}".encode()))
            noisy = DEGRADATIONS[kind](rng, sound.astype(np.float64), [other for key, (other, _) in clean.items() if key != name])
            if (peak := np.abs(noisy).max()) > 1:
                noisy = noisy / peak
            path = folder / f"{kind}_{name}.wav"
            with wave.open(str(path), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(RATE_HZ)
                file.writeframes(np.round(np.clip(noisy, -1, 1) * 32767).astype("<i2").tobytes())
            made.append((path, kind, said))
    return made


def hear_syrinx(args: argparse.Namespace, paths: list[pathlib.Path], beam: int, voice: bool) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        command = [str(args.syrinx), "transcribe", "--model", str(args.model), "--language", "en", "--precision", args.precision, "--beam",
                   str(beam), "--threads", str(args.threads), "--jobs", "1", "--out-dir", folder, *([] if voice else ["--all-sound"])]
        done = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"syrinx transcribe ended with status {done.returncode}: {done.stderr.strip()}")
        return [(pathlib.Path(folder) / f"{path.stem}.txt").read_text(encoding="utf-8") for path in paths]


def hear_peer(args: argparse.Namespace, paths: list[pathlib.Path], beam: int, voice: bool) -> list[str]:
    import faster_whisper

    compute = {"int8": "int8", "f32": "float32"}[args.precision]
    model = faster_whisper.WhisperModel(str(args.model), device="cpu", compute_type=compute, cpu_threads=args.threads)
    heard = []
    for path in paths:
        segments, _ = model.transcribe(str(path), language="en", beam_size=max(beam, 1), vad_filter=voice)
        heard.append(" ".join(segment.text for segment in segments))
    return heard


def errors(want: list[str], got: list[str]) -> int:
    row = list(range(len(got) + 1))
    for i, word in enumerate(want, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(got, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (word != other))
    return row[-1]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, help="folder of Whisper base for CTranslate2")
    parser.add_argument("--syrinx", type=pathlib.Path, default=ROOT / "build/release/syrinx", help="the built binary")
    parser.add_argument("--racers", nargs="*", choices=RACERS, default=RACERS, help="by default all")
    parser.add_argument("--kinds", nargs="+", choices=DEGRADATIONS, default=list(DEGRADATIONS), help="of sounds (default all)")
    parser.add_argument("--precision", choices=("int8", "f32"), default="int8", help="of both (default int8)")
    parser.add_argument("--threads", type=int, default=2, help="of both (default 2)")
    parser.add_argument("--voice", choices=("with", "without", "both"), default="both", help="voice activity (default both)")
    parser.add_argument("--keep", type=pathlib.Path, help="folder to keep the sounds in")
    parser.add_argument("--list", action="store_true", help="list what was heard wrongly")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures and what was heard")
    args = parser.parse_args()
    if args.racers and args.model is None:
        parser.error("--model is missing")
    return args


def main() -> None:
    args = parse()
    with tempfile.TemporaryDirectory() as folder:
        place = args.keep or pathlib.Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        sounds, figures = make(place, args.kinds), []
        print(f"{len(sounds)} sounds of {len(args.kinds)} kinds, {sum(len(words.normalise(said)) for _, _, said in sounds)} words", flush=True)
        for racer in args.racers:
            for voice in [True, False] if args.voice == "both" else [args.voice == "with"]:
                beam = 5 if racer.endswith("beam") else 0
                hear = hear_syrinx if racer.startswith("syrinx") else hear_peer
                heard = hear(args, [path for path, _, _ in sounds], beam, voice)
                wrong = {kind: 0 for kind in args.kinds}
                listing = []
                for (path, kind, said), text in zip(sounds, heard):
                    count = errors(words.normalise(said), words.normalise(text))
                    wrong[kind] += count
                    listing.append(dict(file=path.name, errors=count, heard=text.strip()))
                    if args.list and count:
                        print(f"  {path.name}: {count}: {text.strip()}")
                total = sum(wrong.values())
                figures.append(dict(racer=racer, voice_activity=voice, errors=total, by_kind=wrong, listing=listing))
                kinds = ", ".join(f"{kind} {count}" for kind, count in wrong.items())
                print(f"{racer}{'' if voice else ', all sound'}: {total} errors ({kinds})", flush=True)
        if args.json:
            args.json.write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
