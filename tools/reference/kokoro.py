#!/usr/bin/env python3
"""Reference of Kokoro-82M: reads either published checkpoint, computes every stage in numpy, writes them all.

The output is a safetensors file of [time, channels] arrays: tokens, style, bert, bert_encoder, duration_encoder,
duration_raw, durations, text_encoder, asr, shared, f0, n, source, har (magnitudes then angles), decoder_encode,
decoder_front, generator_0, generator_1, spectrum (log magnitudes then angles) and audio.

  python3 tools/reference/kokoro.py MODEL --phonemes 'həlˈO wˈɜɹld' --voice af_heart.bin --out stages.safetensors
  python3 tools/reference/kokoro.py MODEL --ids 50,83,54 --voice V --inject har=ort.safetensors --out stages.safetensors
  python3 tools/reference/kokoro.py --compare a.safetensors b.safetensors
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import wave

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import container  # noqa: E402
import kokoro_phonemes  # noqa: E402
from kokoro_forward import SAMPLE_RATE, STAGES, Forward  # noqa: E402
from kokoro_weights import load  # noqa: E402


def relative_rms(x: np.ndarray, reference: np.ndarray) -> float:
    x, reference = x.astype(np.float64), reference.astype(np.float64)
    scale = np.sqrt((reference**2).mean())
    return float(np.sqrt(((x - reference) ** 2).mean()) / scale) if scale else float(np.abs(x).max())


def difference(name: str, x: np.ndarray, reference: np.ndarray) -> str:
    """One line; magnitudes and angles apart, and angles only where there is something to have an angle."""
    if x.shape != reference.shape:
        return f"{name:18} shapes differ: {x.shape} and {reference.shape}"
    if name in ("har", "spectrum"):
        half = x.shape[1] // 2
        loud = np.abs(reference[:, :half]) > 0.05 if name == "har" else np.ones_like(reference[:, :half], bool)
        turn = np.angle(np.exp(1j * (x[:, half:].astype(np.float64) - reference[:, half:])))
        angles = f"angles differ by at most {np.abs(turn[loud]).max(initial=0):.1e} rad in {loud.sum()} of {loud.size} bins"
        return f"{name:18} magnitudes {relative_rms(x[:, :half], reference[:, :half]):.2e} relative RMS; {angles}"
    if name in ("tokens", "durations"):
        return f"{name:18} {(x == reference).sum()} of {x.size} equal, sums {x.sum()} and {reference.sum()}"
    return f"{name:18} {relative_rms(x, reference):.2e} relative RMS, {np.abs(x - reference).max():.2e} at most"


def compare(paths: list[pathlib.Path]) -> int:
    ours, reference = (container.load(p) for p in paths)
    shared = [name for name in ("tokens", *STAGES) if name in ours and name in reference]
    if not shared:
        raise SystemExit(f"{paths[0]} and {paths[1]} have no stage in common")
    for name in shared:
        print(difference(name, ours[name], reference[name]))
    return 0


def numbers(text: str, kind) -> list:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise SystemExit(f"'{text}' is not a list of numbers with commas") from None


def injected(pairs: list[str]) -> dict[str, np.ndarray]:
    given = {}
    for pair in pairs:
        name, _, path = pair.partition("=")
        if name not in STAGES or not path:
            raise SystemExit(f"--inject {pair}: write STAGE=FILE with a stage out of {', '.join(STAGES)}")
        if not pathlib.Path(path).is_file():
            raise SystemExit(f"--inject {pair}: {path} is not a file")
        stages = container.load(pathlib.Path(path))
        if name not in stages:
            raise SystemExit(f"--inject {pair}: the file has no stage {name}")
        given[name] = stages[name]
    return given


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, nargs="?", help="ONNX export or .pth, told by its first bytes")
    parser.add_argument("--ids", help="phoneme ids with commas, without the zeros at the ends")
    parser.add_argument("--phonemes", help="or the phonemes themselves")
    parser.add_argument("--voice", type=pathlib.Path, help="voice file (510 rows of f32); the row is count - 1")
    parser.add_argument("--style", help="or the style's numbers with commas")
    parser.add_argument("--speed", type=float, default=1.0, help="divides the durations (default 1)")
    parser.add_argument("--durations", help="frames of each token, zeros included, with commas: replaces the predicted")
    parser.add_argument("--inject", action="append", default=[], metavar="STAGE=FILE", help="take a stage from a file")
    parser.add_argument("--double", action="store_true", help="compute in float64; the file still holds f32")
    parser.add_argument("--settle-angles", type=float, default=0.0, metavar="E",
                        help="angle 0 for magnitudes below E, +pi for angles within E of -pi (default: leave them)")
    parser.add_argument("--stages", help="stages to write, with commas (default all)")
    parser.add_argument("--out", type=pathlib.Path, help="safetensors file to write")
    parser.add_argument("--wav", type=pathlib.Path, help="write the sound too")
    parser.add_argument("--compare", type=pathlib.Path, nargs=2, metavar=("FILE", "REFERENCE"),
                        help="print how two such files differ, stage by stage, and do nothing else")
    args = parser.parse_args(argv)
    if args.compare is None:
        if args.model is None or args.out is None:
            parser.error("give a model and --out")
        if (args.ids is None) == (args.phonemes is None):
            parser.error("give either --ids or --phonemes")
        if (args.voice is None) == (args.style is None):
            parser.error("give either --voice or --style")
    for path in filter(None, (args.model, args.voice, *(args.compare or ()))):
        if not path.is_file():
            parser.error(f"{path} is not a file")
    return args


def write_wav(path: pathlib.Path, audio: np.ndarray) -> None:
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(SAMPLE_RATE)
        out.writeframes((np.clip(audio, -1, 1) * 32767).astype("<i2").tobytes())


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    if args.compare:
        return compare(args.compare)
    model = Forward(load(args.model), np.float64 if args.double else np.float32, injected(args.inject),
                    args.settle_angles)
    ids = kokoro_phonemes.ids(args.phonemes) if args.phonemes is not None else numbers(args.ids, int)
    rows = len(model.w["text_encoder.embedding.weight"])
    if not 1 <= len(ids) <= 510 or not all(0 <= i < rows for i in ids):
        raise SystemExit(f"1 to 510 ids below {rows} are needed, {len(ids)} were given")
    if args.voice:
        count = len(args.phonemes) if args.phonemes is not None else len(ids)
        style = kokoro_phonemes.voice_row(args.voice, 2 * model.style_width, count)
    else:
        style = np.array(numbers(args.style, float), np.float32)
    if style.shape != (2 * model.style_width,):
        raise SystemExit(f"the style has {style.size} numbers, this model takes {2 * model.style_width}")
    if args.durations:
        durations = np.array(numbers(args.durations, int), np.int32)
        if len(durations) != len(ids) + 2 or durations.min() < 1:
            raise SystemExit(f"--durations needs {len(ids) + 2} numbers of 1 or more, one for each token and both zeros")
        model.given["durations"] = durations
    stages = model.run([0, *ids, 0], style, args.speed)
    wanted = args.stages.split(",") if args.stages else ["tokens", *STAGES]
    kept = {n: stages[n] if stages[n].dtype == np.int32 else stages[n].astype(np.float32) for n in wanted if n in stages}
    container.save(args.out, kept)
    if args.wav:
        write_wav(args.wav, stages["audio"])
    frames = int(stages["durations"].sum())
    print(f"{args.out}: {len(ids)} ids, {frames} frames, {frames * 600 / SAMPLE_RATE:.2f} s, "
          f"peak {np.abs(stages['audio']).max():.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
