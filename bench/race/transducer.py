#!/usr/bin/env python3
"""FastConformer-TDT on whole recordings: Syrinx's features and encoder beside nano-parakeet (PyTorch) and whisper.cpp's
parakeet-cli, in one run.

The checkpoint is random, of tools/checkpoints/transducer.py (--family tdt: no biases, which the peers need); --ggml takes
it as tools/convert/parakeet_ggml.py writes it and parakeet-quantize makes it smaller.  All are timed on features and
encoder, since what random weights say, and so how long it takes to decode, is no measure.  Racers take turns; each figure
is time of computing divided by time of sound, the median of all runs; "times" is over the faster peer of those run.

  python3 bench/race/transducer.py --model tdt.nemo --syrinx build/release/syrinx --seconds 11 60 --threads 1 2 \\
      --parakeet-cli bin/parakeet-cli --ggml tdt.ggml tdt-q8_0.ggml
"""

from __future__ import annotations

import argparse
import io
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import wave

from machine import machine


def sound(seconds: float):
    """Noise that swells and falls."""
    import torch

    count = int(16000 * seconds)
    noise = torch.randn(count, generator=torch.Generator().manual_seed(0)) * 0.05
    return noise * (1 + torch.sin(torch.arange(count) / 3000))


def write_wave(path: str, seconds: float) -> None:
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes((sound(seconds).clamp(-1, 1) * 32767).short().numpy().tobytes())


def peer(path: str, seconds: float, threads: int, runs: int) -> list[float]:
    """In this process: seconds of computing for each second of sound, once a run."""
    import torch
    import yaml
    from nano_parakeet import model as maker
    from nano_parakeet._loader import remap_state_dict

    archive = tarfile.open(path)

    def member(end: str):
        return archive.extractfile(next(name for name in archive.getnames() if name.endswith(end)))

    config = yaml.safe_load(member("model_config.yaml"))
    encoder, decoder = config["encoder"], config["decoder"]
    labels, hidden = decoder["vocab_size"], decoder["prednet"]["pred_hidden"]
    model = maker.ParakeetTDT()  # of one published size; its parts take others
    model.preprocessor = maker.LogMelPreprocessor(n_mels=encoder["feat_in"])
    model.encoder = maker.FastConformerEncoder(encoder["d_model"], encoder["n_layers"], encoder["n_heads"],
                                               4 * encoder["d_model"], encoder["feat_in"], encoder["conv_kernel_size"])
    model.decoder = maker.RNNTDecoder(labels, hidden, decoder["prednet"]["pred_rnn_layers"])
    model.joint = maker.TDTJoint(encoder["d_model"], hidden, hidden, labels, 5)
    model.BLANK_ID = model.VOCAB_SIZE = labels
    weights = torch.load(io.BytesIO(member("model_weights.ckpt").read()), map_location="cpu")
    missing, _ = model.load_state_dict(remap_state_dict(weights), strict=False)
    missing = [name for name in missing if not name.startswith("preprocessor")]
    if missing:
        raise SystemExit(f"{path} lacks {missing[:4]}")
    model.eval()
    torch.set_num_threads(threads)
    samples = sound(seconds)
    times = []
    with torch.inference_mode():
        for run in range(runs + 1):
            start = time.perf_counter()
            features = model.preprocessor(samples)
            model.encoder(features, torch.tensor([features.shape[-1]]))
            if run > 0:
                times.append((time.perf_counter() - start) / seconds)
    return times


def run_peer(options, seconds: float, threads: int) -> list[float]:
    command = [sys.executable, __file__, "--peer", "--model", options.model, "--seconds", str(seconds), "--threads",
               str(threads), "--runs", str(options.runs)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def run_parakeet(options, ggml: str, seconds: float, threads: int) -> list[float]:
    """The clip once to warm up and then once a run; the timings that it prints behind each clip are sums so far."""
    with tempfile.TemporaryDirectory() as folder:
        clip = folder + "/clip.wav"
        write_wave(clip, seconds)
        command = [options.parakeet_cli, "-m", ggml, "-t", str(threads), "-ng"] + ["-f", clip] * (options.runs + 1)
        printed = subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stderr
    mel, encode = ([float(ms) for ms in re.findall(name + r" time = +([0-9.]+) ms", printed)] for name in ("mel", "encode"))
    totals = [(a + b) / 1000 for a, b in zip(mel, encode)]
    if len(totals) != options.runs + 1 or totals != sorted(totals):
        raise SystemExit(f"{options.parakeet_cli} printed no sums of mel and encode time: {printed[-400:]}")
    return [(later - before) / seconds for before, later in zip(totals, totals[1:])]


def run_syrinx(options, precision: str, seconds: float, threads: int) -> list[float]:
    command = [options.syrinx, "bench", "transducer", "--model", options.model, "--precision", precision, "--seconds",
               str(seconds), "--threads", str(threads), "--runs", str(options.runs), "--json"]
    if options.cache:
        command += ["--cache", options.cache]
    return [json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["rtf"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--syrinx", default="syrinx")
    parser.add_argument("--cache", default="")
    parser.add_argument("--seconds", type=float, nargs="+", default=[11.0, 60.0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--precision", nargs="+", default=["f32", "bf16", "int8"])
    parser.add_argument("--parakeet-cli", default="parakeet-cli")
    parser.add_argument("--ggml", nargs="*", default=[], help="files of the same weights; without, it does not race")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        print(json.dumps(peer(options.model, options.seconds[0], options.threads[0], options.runs)))
        return
    print(machine())
    names = ["nano-parakeet"] + [pathlib.Path(path).stem for path in options.ggml]
    titles = " ".join(f"{name:>14}" for name in names) + " " + " ".join(f"{p:>8} {'times':>6}" for p in options.precision)
    print(f"{'sound':>6} {'threads':>7} {titles}", flush=True)
    for seconds in options.seconds:
        for threads in options.threads:
            times: dict[str, list[float]] = {}
            for _ in range(options.blocks):
                times.setdefault(names[0], []).extend(run_peer(options, seconds, threads))
                for name, path in zip(names[1:], options.ggml):
                    times.setdefault(name, []).extend(run_parakeet(options, path, seconds, threads))
                for precision in options.precision:
                    times.setdefault(precision, []).extend(run_syrinx(options, precision, seconds, threads))
            medians = {name: statistics.median(values) for name, values in times.items()}
            best = min(medians[name] for name in names)
            cells = [f"{medians[name]:14.4f}" for name in names]
            cells += [f"{medians[p]:8.4f} {best / medians[p]:6.2f}" for p in options.precision]
            print(f"{seconds:6.0f} {threads:7} {' '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
