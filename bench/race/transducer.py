#!/usr/bin/env python3
"""FastConformer-TDT on whole recordings: Syrinx's features and encoder beside nano-parakeet (PyTorch), whisper.cpp's
parakeet-cli and NVIDIA's NeMo-Speech.cpp, in one run; or, with --stream, cache-aware chunks beside NeMo-Speech.cpp's.

The checkpoint is random, of tools/checkpoints/transducer.py (--family tdt: no biases, which the peers need); --ggml takes
it as tools/convert/parakeet_ggml.py writes it and parakeet-quantize makes it smaller, --gguf as NeMo-Speech.cpp's
convert_model.py does.  All are timed on features and encoder (NeMo-Speech.cpp's with the joint's projection of it); with
--whole on decoding too, which says less: random weights find labels where they like, whose number is printed for the two
that find the same ones.  Racers take turns; each figure is time of computing divided by time of
sound, the median of all runs; "times" is over the faster peer of those run.  The sound is noise that swells and falls,
or --speech: 16 kHz recordings one behind the other, again and again until there is enough.

  python3 bench/race/transducer.py --model tdt.nemo --syrinx build/release/syrinx --seconds 11 60 --threads 1 2 \\
      --speech CLIP.wav ... --whole --parakeet-cli bin/parakeet-cli --ggml tdt.ggml tdt-q8_0.ggml \\
      --nemo-speech bin/nemo-speech --gguf tdt-nemo.gguf
  python3 bench/race/transducer.py --model rnnt.nemo --stream 1 --seconds 60 --nemo-speech bin/nemo-speech --gguf rnnt.gguf

A stream's chunks come one upon the other, and what is timed is the encoder, whose time does not depend on what is said:
Syrinx hears noise.  The peer decodes between its chunks, untimed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import wave

import numpy as np

from machine import machine


def noise(seconds: float) -> bytes:
    count = int(16000 * seconds)
    rows = np.random.default_rng(0).standard_normal(count) * 0.05 * (1 + np.sin(np.arange(count) / 3000))
    return (rows.clip(-1, 1) * 32767).astype("<i2").tobytes()


def speech(clips: list[str], seconds: float) -> bytes:
    said = b""
    for clip in clips:
        with wave.open(clip) as file:
            if file.getparams()[:3] != (1, 2, 16000):
                raise SystemExit(f"{clip} is not 16 kHz, 16 bit, one channel")
            said += file.readframes(file.getnframes())
    wanted = 2 * int(16000 * seconds)
    return (said * (wanted // len(said) + 1))[:wanted]


def write_wave(path: str, samples: bytes) -> None:
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(samples)


def peer(path: str, clip: str, threads: int, runs: int, whole: bool) -> dict:
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
    with wave.open(clip) as file:
        samples = torch.frombuffer(bytearray(file.readframes(file.getnframes())), dtype=torch.int16) / 32768
    times, labels = [], []
    with torch.inference_mode():
        for run in range(runs + 1):
            start = time.perf_counter()
            if whole:
                labels = model.transcribe_audio(samples)
            else:
                features = model.preprocessor(samples)
                model.encoder(features, torch.tensor([features.shape[-1]]))
            if run > 0:
                times.append((time.perf_counter() - start) * 16000 / len(samples))
    return {"rtf": times, "labels": len(labels)}


def run_peer(options, clip: str, threads: int) -> dict:
    command = [sys.executable, __file__, "--peer", clip, "--model", options.model, "--threads", str(threads), "--runs",
               str(options.runs)] + ["--whole"] * options.whole
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def run_parakeet(options, ggml: str, clip: str, seconds: float, threads: int) -> dict:
    """The clip once to warm up and then once a run; the timings that it prints behind each clip are sums so far."""
    command = [options.parakeet_cli, "-m", ggml, "-t", str(threads), "-ng"] + ["-f", clip] * (options.runs + 1)
    printed = subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stderr
    stages = ("mel", "encode", "decode") if options.whole else ("mel", "encode")
    sums = [[float(ms) for ms in re.findall(name + r" time = +([0-9.]+) ms", printed)] for name in stages]
    totals = [sum(parts) / 1000 for parts in zip(*sums)]
    if len(totals) != options.runs + 1 or totals != sorted(totals):
        raise SystemExit(f"{options.parakeet_cli} printed no sums of {stages}: {printed[-400:]}")
    return {"rtf": [(later - before) / seconds for before, later in zip(totals, totals[1:])]}


def nemo_speech(options, gguf: str, clip: str, threads: int, *settings: str) -> str:
    """What it prints of its stages: its warm-up and the clip once to warm up, then the clip once a run.  It asks OpenMP for
    four threads whatever the machine has, and has no setting for it: OpenMP's own limit gives it as many as the others."""
    command = [options.nemo_speech, "bench", "asr", clip, "--model", gguf, "--device", "cpu", "--concurrency", "1",
               "--warmup", "1", "--repetitions", str(options.runs), *settings]
    environment = {**os.environ, "NEMO_SPEECH_TIMING": "1"}
    if not options.own_threads:
        environment["OMP_THREAD_LIMIT"] = str(threads)
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace", env=environment).stderr


def run_nemo_speech(options, gguf: str, clip: str, seconds: float, threads: int) -> dict:
    """A long clip is encoded in segments, each with a line of its own, and one line for all with decoding follows them."""
    times, encoded = [], 0.0
    for line in nemo_speech(options, gguf, clip, threads, "--mode", "offline").splitlines():
        if stages := re.search(r"offline-transducer frames=.* fe=([0-9.]+) encoder\+encproj=([0-9.]+) ms", line):
            encoded += float(stages[1]) + float(stages[2])
        elif whole := re.search(r"offline-transducer decode frames=.* = ([0-9.]+) ms", line):
            times.append((float(whole[1]) if options.whole else encoded) / 1000 / seconds)
            encoded = 0.0
    if len(times) <= options.runs:
        raise SystemExit(f"{options.nemo_speech} printed {len(times)} timings of {options.runs} runs and a warm-up")
    return {"rtf": times[-options.runs:]}


def run_syrinx(options, precision: str, clip: str, threads: int) -> dict:
    command = [options.syrinx, "bench", "transducer", "--model", options.model, "--precision", precision, "--recording",
               clip, "--threads", str(threads), "--runs", str(options.runs), "--json"] + ["--labels"] * options.whole
    if options.cache:
        command += ["--cache", options.cache]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {"rtf": [printed["rtf"]], "labels": printed.get("labels", 0)}


def stream_nemo_speech(options, gguf: str, clip: str, chunks: int, threads: int) -> tuple[float, float]:
    printed = nemo_speech(options, gguf, clip, threads, "--mode", "stream", "--asr.streaming.rnnt_right_context",
                          str(options.stream))
    times = [float(ms) for ms in re.findall(r"cache-chunk enc_frames=[0-9]+ encode=([0-9.]+) ", printed)]
    if len(times) <= chunks:
        raise SystemExit(f"{options.nemo_speech} printed {len(times)} timings of {chunks} chunks and a warm-up")
    times = times[-chunks:]
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def stream_syrinx(options, precision: str, chunks: int, threads: int) -> tuple[float, float]:
    command = [options.syrinx, "bench", "transducer", "--model", options.model, "--precision", precision, "--stream",
               "--look-ahead", str(options.stream), "--chunks", str(chunks), "--threads", str(threads), "--json"]
    if options.cache:
        command += ["--cache", options.cache]
    chunk = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["chunk"]
    return chunk["p50_ms"], chunk["p99_ms"]


def race_streams(options, clip: str, seconds: float, threads: int) -> None:
    """A row a racer: the median over the blocks of each one's quantiles."""
    chunk_s = 0.08 * (options.stream + 1)
    chunks = options.runs * int(seconds / chunk_s)
    found: dict[str, list] = {}
    for _ in range(options.blocks):
        for path in options.gguf:
            found.setdefault(pathlib.Path(path).stem, []).append(stream_nemo_speech(options, path, clip, chunks, threads))
        for precision in options.precision:
            found.setdefault(precision, []).append(stream_syrinx(options, precision, chunks, threads))
    for name, blocks in found.items():
        p50, p99 = (statistics.median(quantile) for quantile in zip(*blocks))
        print(f"{1000 * chunk_s:6.0f} {threads:7} {name:>20} {p50:8.2f} {p99:8.2f} {chunks:6} x {len(blocks)}", flush=True)


def race(options, clip: str, seconds: float, threads: int) -> dict[str, dict]:
    """Each racer's times, and the number of labels that it found last."""
    found: dict[str, dict] = {}

    def add(name: str, figures: dict) -> None:
        racer = found.setdefault(name, {"rtf": [], "labels": 0})
        racer["rtf"] += figures["rtf"]
        racer["labels"] = figures.get("labels", 0)

    for _ in range(options.blocks):
        if not options.no_torch:
            add("nano-parakeet", run_peer(options, clip, threads))
        for path in options.ggml:
            add(pathlib.Path(path).stem, run_parakeet(options, path, clip, seconds, threads))
        for path in options.gguf:
            add(pathlib.Path(path).stem, run_nemo_speech(options, path, clip, seconds, threads))
        for precision in options.precision:
            add(precision, run_syrinx(options, precision, clip, threads))
    return found


def race_recordings(options, names: list[str], clip: str, seconds: float, threads: int) -> None:
    found = race(options, clip, seconds, threads)
    medians = {name: statistics.median(racer["rtf"]) for name, racer in found.items()}
    best = min(medians[name] for name in names)
    cells = [f"{medians[name]:14.4f}" for name in names]
    cells += [f"{medians[p]:8.4f} {best / medians[p]:6.2f}" for p in options.precision]
    counts = ", ".join(f"{name} {racer['labels']}" for name, racer in found.items() if racer["labels"])
    print(f"{seconds:6.0f} {threads:7} {' '.join(cells)} {counts and '  labels: ' + counts}", flush=True)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--syrinx", default="syrinx")
    parser.add_argument("--cache", default="")
    parser.add_argument("--seconds", type=float, nargs="+", default=[11.0, 60.0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--precision", nargs="+", default=["f32", "bf16", "int8"])
    parser.add_argument("--parakeet-cli", default="parakeet-cli")
    parser.add_argument("--ggml", nargs="*", default=[], help="files of the same weights; without, it does not race")
    parser.add_argument("--nemo-speech", default="nemo-speech")
    parser.add_argument("--gguf", nargs="*", default=[], help="files of the same weights; without, it does not race")
    parser.add_argument("--own-threads", action="store_true", help="NeMo-Speech.cpp with its own four threads")
    parser.add_argument("--no-torch", action="store_true", help="without nano-parakeet")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--speech", nargs="+", default=[], metavar="CLIP", help="recordings, 16 kHz; without, noise")
    parser.add_argument("--whole", action="store_true", help="decoding, too")
    parser.add_argument("--stream", type=int, metavar="LOOK_AHEAD", help="chunks of a cache-aware model instead")
    parser.add_argument("--peer", metavar="CLIP", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = read_options()
    if options.peer:
        print(json.dumps(peer(options.model, options.peer, options.threads[0], options.runs, options.whole)))
        return
    names = [] if options.no_torch else ["nano-parakeet"]
    names += [pathlib.Path(path).stem for path in options.ggml + options.gguf]
    if not names or len(set(names)) < len(names):
        raise SystemExit("each peer needs a name of its own, which is its file's, and one must race")
    print(machine())
    if options.stream is None:
        print(f"{'speech' if options.speech else 'noise'}; features, encoder{' and decoding' if options.whole else ''}")
        titles = " ".join(f"{name:>14}" for name in names)
        titles += " " + " ".join(f"{p:>8} {'times':>6}" for p in options.precision)
        print(f"{'sound':>6} {'threads':>7} {titles}", flush=True)
    else:
        print(f"{'chunk':>6} {'threads':>7} {'encoder, ms':>20} {'p50':>8} {'p99':>8} chunks", flush=True)
    for seconds in options.seconds:
        with tempfile.TemporaryDirectory() as folder:
            clip = folder + "/clip.wav"
            write_wave(clip, speech(options.speech, seconds) if options.speech else noise(seconds))
            for threads in options.threads:
                if options.stream is None:
                    race_recordings(options, names, clip, seconds, threads)
                else:
                    race_streams(options, clip, seconds, threads)


if __name__ == "__main__":
    main()
