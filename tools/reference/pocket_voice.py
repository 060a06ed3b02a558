"""Reference of what Pocket TTS does with a recording before its encoder, and of PyTorch's noise."""

from __future__ import annotations

import pathlib
import struct
import wave

import numpy as np
import soundfile
import torch

import pocket_maker as maker

RATE = 24000
# Name, rate, channels, subtype: what a user may bring.
_FILES = (("stereo_48000", 48000, 2, "PCM_16"), ("mono_44100", 44100, 1, "PCM_16"), ("bytes_8000", 8000, 1, "PCM_U8"),
          ("s24_22050", 22050, 1, "PCM_24"), ("s32_24000", 24000, 1, "PCM_32"), ("float_32000", 32000, 2, "FLOAT"),
          ("ulaw_11025", 11025, 1, "ULAW"))


def _sound(rate: int, seconds: float, seed: int) -> np.ndarray:
    """A gliding buzz with breath: voiced, finite, with energy at all frequencies."""
    rng = np.random.default_rng([seed, rate])
    t = np.arange(int(rate * seconds)) / rate
    buzz = sum(np.sin(2 * np.pi * k * (110 + 60 * t) * t) / k for k in range(1, 9))
    return 0.15 * buzz * np.sin(np.pi * t / seconds) ** 0.5 + 0.01 * rng.standard_normal(t.size)


def _write_float(path: pathlib.Path, sound: np.ndarray, rate: int) -> None:
    """libsndfile would put the time of day into the file."""
    data, channels = sound.astype("<f4").tobytes(), sound.shape[1]
    form = struct.pack("<HHIIHH", 3, channels, rate, 4 * channels * rate, 4 * channels, 32)
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + b"fact" + struct.pack("<II", 4, len(sound))
    chunks += b"data" + struct.pack("<I", len(data)) + data
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)


def write_files(folder: pathlib.Path) -> None:
    """voice.wav, the prompt of all small models, ends on a quiet part; the others are short."""
    voice = _sound(16000, 0.42, 1)
    voice[5600:] *= 1e-2
    soundfile.write(folder / "voice.wav", voice, 16000, "PCM_16")
    for number, (name, rate, channels, subtype) in enumerate(_FILES):
        sound = np.stack([_sound(rate, 0.03, 2 + number + 10 * c) for c in range(channels)], 1)
        path = folder / f"{name}.wav"
        if subtype == "FLOAT":
            _write_float(path, sound, rate)
        else:
            soundfile.write(path, sound, rate, subtype)


def _read(path: pathlib.Path) -> tuple[torch.Tensor, int]:
    """As the package reads it; Python's wave module refuses float and mu-law before libsndfile is asked."""
    try:
        return maker.audio.audio_read(path)
    except wave.Error:
        return maker.audio._audio_read_with_soundfile(path)


def _pauses() -> list[np.ndarray]:
    """Inputs of end_on_pause, 24 kHz."""
    rng = np.random.default_rng(3)
    noise = lambda count, level: level * rng.choice([-1.0, 1.0], count)  # noqa: E731  its RMS is its level
    db = lambda value: 10 ** (value / 20)  # noqa: E731
    return [np.concatenate(parts).astype(np.float32) for parts in (
        [noise(960, 0.1), noise(960, 0.5), noise(1440, 0.5 * db(-40))],                  # a quiet end is cut
        [noise(480, 0.5), noise(480, 0.5 * db(-34.9)), noise(480, 0.5 * db(-35.1))],     # around the limit
        [np.zeros(1440)],                                                                # silence: all is as loud
        [noise(300, 0.5)],                                                               # no whole frame: unchanged
        [noise(960, 0.5), noise(470, 0.5)],                                              # part of a frame is dropped
        [noise(480, 0.5), np.zeros(960)],                                                # faded from its first sample
    )]


def _noise(out: dict[str, np.ndarray]) -> None:
    """As the package draws it after torch.manual_seed(42): blocks of 32, and of 8, which PyTorch fills another way."""
    draw = lambda count, fill: np.stack([fill(torch.empty(1, count))[0].numpy().copy() for _ in range(6)])  # noqa: E731
    std = 0.3**0.5
    for name, count, fill in (
            ("normal", 32, lambda x: torch.nn.init.normal_(x, mean=0.0, std=std)),
            ("short", 8, lambda x: torch.nn.init.normal_(x, mean=0.0, std=std)),
            ("clamped", 32, lambda x: torch.nn.init.trunc_normal_(x, mean=0.0, std=std, a=-0.6, b=0.6)),
            # Less than three tenths of the normal numbers lie here: PyTorch then draws uniform ones.
            ("tight", 32, lambda x: torch.nn.init.trunc_normal_(x, mean=0.0, std=std, a=-0.2, b=0.2))):
        torch.manual_seed(42)
        out[f"noise.{name}"] = draw(count, fill)


def reference(folder: pathlib.Path) -> dict[str, np.ndarray]:
    write_files(folder)
    out: dict[str, np.ndarray] = {}
    for name in ("voice", *(entry[0] for entry in _FILES)):
        sound, rate = _read(folder / f"{name}.wav")
        resampled = maker.convert_audio(sound, rate, RATE, 1)
        if name != "voice":
            out[f"{name}.read"] = sound[0].numpy()
        if name != "voice" and rate != RATE:
            out[f"{name}.resampled"] = resampled[0].numpy()
        if name == "voice":
            out["voice.prepared"] = maker.end_on_pause(resampled, RATE)[0].numpy()
    for number, sound in enumerate(_pauses()):
        ended = maker.end_on_pause(torch.from_numpy(sound)[None], RATE)[0].numpy()
        pause = 0 if len(ended) == len(sound) and len(sound) < 480 else int(0.08 * RATE)
        if pause and np.abs(ended[-pause:]).max() > 0:
            raise SystemExit(f"pause {number} does not end on silence")
        out |= {f"pause.{number}.in": sound, f"pause.{number}.kept": ended[:len(ended) - pause],
                f"pause.{number}.length": np.array([len(ended)], np.int32)}
    _noise(out)
    return out
