#!/usr/bin/env python3
"""Reference outputs of Pocket TTS: the maker's package (pip pocket-tts 4.0.1) on a checkpoint, stage by stage.

  model   FOLDER/model.safetensors and config.yaml -> reference.safetensors, reference.json and voice.safetensors there,
          or in --out
  text    FOLDER/tokenizer.model, tokenizer.json and mapped.model -> text.json: prepared texts, chunks, token ids
  voice   FOLDER/*.wav, written first -> recordings.safetensors: reading, resampling, end on a pause, PyTorch's noise
  check   any folder with config.yaml: every name and shape must match; speaks a sentence
  configs compares the configurations of tools/checkpoints with the maker's own

docs/pocket_tts.md says how to install the package, and what each array is.

  python3 tools/reference/pocket_tts.py model tests/data/pocket_tts/english --voice tests/data/pocket_tts/voice.wav
  python3 tools/reference/pocket_tts.py check DIR/english_18m_2026-10 --voice voice.wav --wav out.wav
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import pathlib
import sys
import time
import wave

import numpy as np

_TOOLS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_TOOLS), str(_TOOLS.parent / "checkpoints")]

import container  # noqa: E402
import pocket_maker as maker  # noqa: E402
from pocket_configs import PUBLISHED, config  # noqa: E402
from pocket_generate import EDGES, PLAIN, generate  # noqa: E402
from pocket_stages import STEPS, TEXT, Stages  # noqa: E402


def _notes(command: str) -> dict[str, str]:
    versions = {name: importlib.metadata.version(name) for name in ("torch", "pocket-tts")}
    return {"made_by": f"tools/reference/pocket_tts.py {command}"} | versions


def _decode_steps(folder: pathlib.Path) -> int:
    return 16 if "type: flow_matching" in (folder / "config.yaml").read_text(encoding="utf-8") else 1


def _extra_steps(args: argparse.Namespace, out: dict[str, np.ndarray]) -> None:
    """Two steps with three evaluations of the head each, and everything with the older GELU."""
    three = Stages(args.folder, args.voice, 3)
    three.steps(three.text(three.voice()), 2, "lsd3")
    out |= {name: x for name, x in three.out.items() if name.startswith(("lsd3.velocity", "lsd3.latent", "lsd3.time"))}
    with maker.erf_gelu(True):
        older = Stages(args.folder, args.voice, 1)
        older.codec(older.steps(older.text(older.voice()), 2))
    for name in ("voice.latents", "text.keys", "step.hidden", "step.latent", "mimi.transformer.1"):
        out["erf." + name] = older.out[name]


def _older_voices(args: argparse.Namespace, stages: Stages, state: dict) -> list[str]:
    """The voice as earlier versions wrote it: its length as a shape, caches longer than that; or before the passes."""
    prompt = stages.out["voice.projected"]
    if not stages.lm.insert_bos_before_voice:      # the format of the models that know no vector before the voice
        container.save(args.out / "voice_prompt.safetensors", {"audio_prompt": prompt[None]}, _notes("model"))
        return ["voice_prompt.safetensors"]
    older = {}
    for name, entry in state.items():
        cache = entry["cache"].numpy()
        older[name + "/cache"] = np.pad(cache, [(0, 0)] * 2 + [(0, 2)] + [(0, 0)] * 2, constant_values=np.nan)
        older[name + "/current_end"] = np.zeros(cache.shape[2], np.float32)
    container.save(args.out / "voice_older.safetensors", older, _notes("model"))
    again = stages.model.get_state_for_audio_prompt(args.out / "voice_older.safetensors")
    if any(int(again[name]["offset"][0]) != int(state[name]["offset"][0]) for name in state):
        raise SystemExit("the maker reads another length from voice_older.safetensors")
    return ["voice_older.safetensors"]


def _prepared(recording: pathlib.Path) -> np.ndarray:
    """What the encoder gets of a recording."""
    sound, rate = maker.audio.audio_read(recording)
    return maker.end_on_pause(maker.convert_audio(sound, rate, 24000, 1), 24000)[0].numpy()


def model(args: argparse.Namespace) -> None:
    args.out = args.out or args.folder
    stages = Stages(args.folder, args.voice, _decode_steps(args.folder), args.whole)
    state = stages.voice()
    exported = args.out / "voice.safetensors"
    maker.export_model_state(state, exported)
    files = ["reference.safetensors", "reference.json", "voice.safetensors"]
    if args.older_voices:
        files += _older_voices(args, stages, state)
    latents = stages.steps(stages.text(state, args.steps), args.steps)
    stages.codec(latents)
    out = stages.out
    if args.whole:
        out["voice.prepared"] = _prepared(args.voice)
    notes = []
    for number, case in enumerate(PLAIN + (EDGES if args.edges else ())):
        note, arrays = generate(stages, exported, number, case)
        notes.append(note)
        out |= arrays
    if args.voice_file:
        note, arrays = generate(stages, args.out / args.voice_file, len(notes), PLAIN[0])
        notes.append(note | {"voice": args.voice_file})
        out |= arrays
    if args.extra:
        _extra_steps(args, out)
    bad = [name for name, x in out.items() if not np.isfinite(x).all()]
    if bad:
        raise SystemExit(f"{args.folder}: not finite: {', '.join(bad)}")
    container.save(args.out / "reference.safetensors", out, _notes("model"))
    lines = ",\n".join("  " + json.dumps(note, ensure_ascii=False) for note in notes)
    about = dict(text=TEXT, frames=args.steps, decode_steps=stages.decode_steps, temperature=stages.model.temp)
    (args.out / "reference.json").write_text(
        json.dumps(about)[:-1] + f',\n "generate": [\n{lines}\n ]}}\n', encoding="utf-8")
    for name in files:
        print(f"{args.out / name}: {(args.out / name).stat().st_size:,} bytes")
    ends = [[chunk["eos_step"] for chunk in note["chunks"]] for note in notes]
    peak = np.abs(out["mimi.samples"]).max()
    print(f"{len(out)} arrays; ends at steps {ends}; peak {peak:.2f}, latents' RMS {np.sqrt((latents**2).mean()):.2f}")


def _text(args: argparse.Namespace) -> None:
    import pocket_text

    pocket_text.reference(args.folder, args.folder / "text.json")


def _voice(args: argparse.Namespace) -> None:
    import pocket_voice

    path = args.folder / "recordings.safetensors"
    container.save(path, pocket_voice.reference(args.folder), _notes("voice"))
    print(f"{path}: {path.stat().st_size:,} bytes")


def check(args: argparse.Namespace) -> None:
    start = time.monotonic()
    speaker = maker.load(args.folder, sampler_decode_steps=_decode_steps(args.folder))
    loaded = time.monotonic()
    sound = maker.speak(speaker, speaker.get_state_for_audio_prompt(args.voice), args.say)
    rms = np.sqrt((sound**2).mean())
    numbers = sum(p.numel() for p in speaker.state_dict().values())
    print(f"{args.folder}: {len(speaker.state_dict())} tensors, {numbers:,} numbers, loaded in {loaded - start:.1f} s; "
          f"{len(sound) / 24000:.2f} s of sound in {time.monotonic() - loaded:.1f} s, RMS {rms:.3f}, "
          f"peak {np.abs(sound).max():.2f}")
    if not np.isfinite(sound).all() or rms < 1e-3:
        raise SystemExit(f"{args.folder}: the sound is not finite, or silent")
    if args.wav:
        with wave.open(str(args.wav), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(24000)
            out.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())


def _without_paths(values: dict) -> dict:
    values = json.loads(json.dumps(values))
    for key in ("weights_path", "weights_path_without_voice_cloning"):
        values.pop(key, None)
    values["flow_lm"]["lookup_table"].pop("tokenizer_path")
    return values


def configs(_args: argparse.Namespace) -> None:
    import yaml

    theirs = {path.stem: path for path in maker.CONFIGS_DIR.glob("*.yaml")}
    ours = [name for names in PUBLISHED.values() for name in names]
    if set(theirs) != set(ours):
        raise SystemExit(f"only one side knows {', '.join(sorted(set(theirs) ^ set(ours)))}")
    for name in ours:
        a, b = (_without_paths(maker.Config(**values).model_dump())
                for values in (config(name, "full", 4000), yaml.safe_load(theirs[name].read_text(encoding="utf-8"))))
        if a != b:
            raise SystemExit(f"{name}: {a}\nis not the maker's\n{b}")
    print(f"{len(ours)} configurations are the maker's")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(dest="job", required=True, metavar="model|text|voice|check|configs")
    for name, action, folder in (("model", model, "folder of one model"), ("text", _text, "folder of the tokenizers"),
                                 ("voice", _voice, "folder to write into"), ("check", check, "folder of one model"),
                                 ("configs", configs, None)):
        job = jobs.add_parser(name)
        job.set_defaults(action=action)
        if folder:
            job.add_argument("folder", type=pathlib.Path, help=folder)
        if name in ("model", "check"):
            job.add_argument("--voice", type=pathlib.Path, required=True, help="recording of a voice, WAV")
        if name == "model":
            job.add_argument("--edges", action="store_true",
                             help="also generations at the cap and with ends at every step")
            job.add_argument("--extra", action="store_true",
                             help="also three evaluations of the head and the older GELU")
            job.add_argument("--older-voices", action="store_true", help="also the voice in a form of earlier versions")
            job.add_argument("--out", type=pathlib.Path, help="folder to write into (default the model's)")
            job.add_argument("--whole", action="store_true", help="all rows of long arrays, and the prepared recording")
            job.add_argument("--steps", type=int, default=STEPS,
                             help=f"frames that are followed through every stage (default {STEPS})")
            job.add_argument("--voice-file", metavar="NAME",
                             help="also a generation after this exported voice, of whatever program, in --out")
        if name == "check":
            job.add_argument("--say", default="Hello world.", help="what to speak (default 'Hello world.')")
            job.add_argument("--wav", type=pathlib.Path, help="write the sound too")
    args = parser.parse_args()
    for path in filter(None, (getattr(args, name, None) for name in ("folder", "voice", "out"))):
        if not path.exists():
            parser.error(f"{path} does not exist")
    if args.job in ("model", "check") and not (args.folder / "config.yaml").is_file():
        parser.error(f"{args.folder} has no config.yaml")
    args.action(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
