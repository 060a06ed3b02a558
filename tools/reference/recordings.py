#!/usr/bin/env python3
"""Writes the recordings of tests/data/audio: FLAC, MP3 and Ogg files and what FFmpeg decodes of each.

usage: tools/reference/recordings.py FOLDER        needs numpy, soundfile and av (FFmpeg as a package)

FFmpeg's own decoders judge: they share no code with libsndfile and the libraries behind it, which Syrinx reads with.
Made again, all files are the same byte for byte but vorbis_22050.ogg, whose serial number libsndfile draws anew.
Of each NAME.* the result lies in NAME.wav: 16 bits, one channel, the mean of the channels.
"""

from __future__ import annotations

import fractions
import pathlib
import sys
import wave

import av
import numpy as np
import soundfile

# file, rate, channels, FFmpeg's encoder and its options, or None for libsndfile's (FFmpeg has no mono Vorbis encoder).
# opus_48000 is partly SILK, whose step to 48 kHz each decoder is free to choose: libopus decodes it under FFmpeg too.
LIBOPUS_DECODES = "opus_48000.opus"
FILES = (
    ("flac_24000.flac", 24000, 1, "flac", {"sample_fmt": "s16"}),
    ("flac_stereo_44100.flac", 44100, 2, "flac", {"sample_fmt": "s32", "bits_per_raw_sample": "24"}),
    ("mp3_24000.mp3", 24000, 1, "libmp3lame", {"bit_rate": 48000}),
    ("mp3_stereo_44100.mp3", 44100, 2, "libmp3lame", {"bit_rate": 96000}),
    ("vorbis_22050.ogg", 22050, 1, None, {}),
    ("vorbis_stereo_48000.ogg", 48000, 2, "vorbis", {}),
    ("opus_48000.opus", 48000, 1, "libopus", {"bit_rate": 32000}),
    ("opus_stereo_48000.ogg", 48000, 2, "libopus", {"bit_rate": 64000}),
)
SECONDS = 0.4


def voice_like(rate: int, channels: int) -> np.ndarray:
    """A gliding pitch with falling harmonics, swelling twice; the second channel is another pitch.  [frames, channels]"""
    t = np.arange(int(SECONDS * rate)) / rate
    loudness = 0.5 - 0.5 * np.cos(2 * np.pi * 5 * t)
    columns = []
    for channel in range(channels):
        phase = 2 * np.pi * np.cumsum(140 + 60 * channel + 30 * np.sin(2 * np.pi * 2 * t)) / rate
        columns.append(0.35 * loudness * sum(np.sin(k * phase) / k**2 for k in range(1, 13)))
    return np.stack(columns, axis=1).astype(np.float32)


def encode(path: pathlib.Path, sound: np.ndarray, rate: int, codec: str, options: dict) -> None:
    layout = "mono" if sound.shape[1] == 1 else "stereo"
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        container.metadata["title"] = "voice"  # so that the MP3 file begins with a tag
        raw_bits = {name: text for name, text in options.items() if name == "bits_per_raw_sample"}
        stream = container.add_stream(codec, rate=rate, layout=layout, options={"strict": "experimental", **raw_bits})
        if "bit_rate" in options:
            stream.bit_rate = options["bit_rate"]
        if "sample_fmt" in options:
            stream.codec_context.format = options["sample_fmt"]
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(sound.T), format="fltp", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, 0, fractions.Fraction(1, rate)
        resampler = av.AudioResampler(format=stream.codec_context.format, layout=layout, rate=rate,
                                      frame_size=stream.codec_context.frame_size or 1024)
        for piece in resampler.resample(frame) + resampler.resample(None):
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))


def decode(path: pathlib.Path) -> tuple[np.ndarray, int]:
    blocks = []
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        rate = stream.codec_context.sample_rate
        decoder = av.CodecContext.create("libopus", "r") if path.name == LIBOPUS_DECODES else stream.codec_context
        if decoder is not stream.codec_context:
            decoder.extradata = stream.codec_context.extradata
        resampler = av.AudioResampler(format="fltp", layout=stream.layout, rate=rate)
        for packet in container.demux(stream):
            for frame in decoder.decode(packet):
                blocks += [piece.to_ndarray() for piece in resampler.resample(frame)]
        blocks += [piece.to_ndarray() for piece in resampler.resample(None)]
    return np.concatenate(blocks, axis=1).astype(np.float64).mean(axis=0), rate


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, rate, channels, codec, options in FILES:
        path = folder / name
        sound = voice_like(rate, channels)
        if codec is None:
            soundfile.write(path, sound, rate, format="OGG", subtype="VORBIS")
        else:
            encode(path, sound, rate, codec, options)
        decoded, decoded_rate = decode(path)
        with wave.open(str(path.with_suffix(".wav")), "wb") as out:
            out.setparams((1, 2, decoded_rate, 0, "NONE", ""))
            out.writeframes(np.clip(np.rint(decoded * 32768), -32768, 32767).astype("<i2").tobytes())
        print(f"{name}: {path.stat().st_size} bytes, {decoded_rate} Hz, {len(decoded)} of {len(sound)} samples")
    return 0


sys.exit(main())
