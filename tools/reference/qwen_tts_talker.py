#!/usr/bin/env python3
"""Prompts, talker stages, code predictor stages and greedy codes of seeded Qwen3-TTS checkpoints, by the maker's package.

usage: qwen_tts_talker.py [tests/data/qwen_tts]      writes talker.safetensors and talker.json into it

The folder holds checkpoints by kind, custom_voice, base, voice_design or some of them, and the codec beside them or in each.

needs qwen-tts 0.1.1 with its pins (torch, transformers 4.57.3) and safetensors; all in f32 with eager attention on the CPU.
"""
import argparse
import importlib.machinery
import json
import pathlib
import sys
import tempfile
import types

for name in ("torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi"):  # imported for the unpublished codec only
    module = sys.modules.setdefault(name, types.ModuleType(name))
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from qwen_tts import Qwen3TTSModel  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from transformers.generation.logits_process import LogitsProcessorList  # noqa: E402

FRAMES = 10    # of each case
DETAILED = 3   # of them with logits and the predictor's stages
LONG = "A longer text that has more tokens than the reference has frames, so some of it trails."

# `reference`: frames and transcript of a recording.
CASES = [
    dict(name="english", kind="custom_voice", text="Hello there, iPhone users!", language="English", speaker="Ryan", text_first=True),
    dict(name="dialect", kind="custom_voice", text="Straight on, then left. 你好吗?", language="auto", speaker="eric", text_first=False),
    dict(name="plain", kind="custom_voice", text="No speaker in particular.", language="auto", speaker="", text_first=True),
    dict(name="instructed", kind="voice_design", text="The sea is in a calm mood.", language="german",
         instruction="\nA low voice, slow and warm.", text_first=True),
    dict(name="voice", kind="base", text="With a voice as a vector.", language="english", text_first=False),
    dict(name="reference_short", kind="base", text="Yes.", language="auto", reference=(12, "Na."), text_first=False),
    dict(name="reference_long", kind="base", text=LONG, language="english", reference=(7, "That was the user."), text_first=False),
    dict(name="reference_first", kind="base", text="Now the text comes first.", language="chinese", reference=(5, "In the rain."),
         text_first=True),
]

# Texts for the tokenizer alone.
TEXTS = ["iPhone and MacBook, HTMLParser", "the user is in a meeting", "I'm sure they'll say it's THEIRS", "1234 5/6 a/b //", "Zwölf Boxkämpfer",
         "e\u0301te\u0301 caf\u00e9 \u212b", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u6e21\u3057\u8239\u306f\u4e03\u6642ABC", "\u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439\u0442\u0435", "\uff21\uff22\uff23",
         "line\n\nbreaks \n here\t!", "\U0001f600 smile\u200d!", "assistant", "<|reserved", "x<tts_pa d>"]


def load(data, kind):
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        for file in (data / kind).iterdir():
            (here / file.name).symlink_to(file.resolve())
        if not (here / "speech_tokenizer").exists():
            (here / "speech_tokenizer").symlink_to((data / "speech_tokenizer").resolve())
        return Qwen3TTSModel.from_pretrained(folder, device_map="cpu", dtype=torch.float32, attn_implementation="eager")


class Stages:
    """The stages of a model's talker and predictor, call by call."""

    def __init__(self, model):
        self.seen = {}
        talker, predictor = model.talker, model.talker.code_predictor
        self.vocabulary = talker.config.vocab_size
        talker.model.register_forward_pre_hook(lambda _, args, named: self.add("input", named["inputs_embeds"]), with_kwargs=True)
        for i, layer in enumerate(talker.model.layers):
            self.hook(layer, f"layer.{i}")
        self.hook(talker.model.norm, "norm")
        self.hook(talker.codec_head, "logits")
        self.hook(predictor.model.norm, "predictor.hidden")
        for head in predictor.lm_head:
            self.hook(head, "predictor.logits")
        plain = LogitsProcessorList.__call__

        def processed(processors, ids, scores, **named):
            scores = plain(processors, ids, scores, **named)
            if scores.shape[-1] == self.vocabulary:
                self.add("scores", scores)
            return scores

        LogitsProcessorList.__call__ = processed

    def add(self, name, rows):
        self.seen.setdefault(name, []).append(rows.detach().clone())

    def hook(self, module, name):
        module.register_forward_hook(lambda _, args, out: self.add(name, out[0] if isinstance(out, tuple) else out))


def last_rows(calls):
    return torch.cat([rows.reshape(-1, rows.shape[-1])[-1:] for rows in calls])


def run(tts, stages, case, seed):
    model, draw = tts.model, np.random.default_rng(seed)
    ids = tts._tokenize_texts([tts._build_assistant_text(case["text"])])
    facts = {key: value for key, value in case.items() if key != "reference"} | dict(ids=ids[0][0].tolist())
    named = dict(input_ids=ids, languages=[case["language"]], non_streaming_mode=case["text_first"])
    arrays = {}
    if case.get("instruction"):
        instruction = tts._tokenize_texts([tts._build_instruct_text(case["instruction"])])[0]
        named["instruct_ids"] = [instruction]
        facts["instruction_ids"] = instruction[0].tolist()
    if case["kind"] == "base":
        config = model.config.talker_config
        voice = torch.from_numpy(draw.standard_normal(config.hidden_size).astype("float32"))
        frames, transcript = case.get("reference", (0, ""))
        codes = torch.from_numpy(draw.integers(0, config.code_predictor_config.vocab_size, (frames, config.num_code_groups)))
        named["voice_clone_prompt"] = dict(ref_code=[codes if frames else None], ref_spk_embedding=[voice], x_vector_only_mode=[not frames],
                                           icl_mode=[bool(frames)])
        arrays["x_vector"] = voice
        if frames:
            reference = tts._tokenize_texts([tts._build_ref_text(transcript)])
            named["ref_ids"] = reference
            facts |= dict(reference_text=transcript, reference_ids=reference[0][0].tolist(), reference_codes=codes.tolist())
    else:
        named["speakers"] = [case.get("speaker")]
    stages.seen.clear()
    with torch.no_grad():
        # One token more: its frame would be made by the pass behind it.
        codes = model.generate(**named, do_sample=False, subtalker_dosample=False, repetition_penalty=1.05, max_new_tokens=FRAMES + 1)[0][0]
    seen, steps = stages.seen, DETAILED * (model.config.talker_config.num_code_groups - 1)
    kept = model.config.talker_config.vocab_size - 1024 + 3  # the end is among them, the others are suppressed
    prompt = seen["input"][0][0]
    arrays |= {"prompt": prompt, "next": last_rows(seen["input"][1:]), "norm": last_rows(seen["norm"]),
               "logits": last_rows(seen["logits"][:DETAILED]), "scores": last_rows(seen["scores"])[:, :kept],
               "predictor.hidden": last_rows(seen["predictor.hidden"][:steps]), "predictor.logits": last_rows(seen["predictor.logits"][:steps])}
    arrays |= {name: rows[0][0] for name, rows in seen.items() if name.startswith("layer.")}
    facts["codes"] = codes.tolist()
    print(case["name"], len(prompt), "positions,", len(codes), "frames,", len(set(codes[:, 0].tolist())), "first codes")
    return facts, {f"{case['name']}.{name}": rows.contiguous().clone() for name, rows in arrays.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, nargs="?", default=pathlib.Path("tests/data/qwen_tts"))
    data = parser.parse_args().data
    facts, arrays, loaded = [], {}, {}
    for seed, case in enumerate(CASES):
        if not (data / case["kind"]).is_dir():
            continue
        if case["kind"] not in loaded:
            loaded.clear()
            tts = None  # two of full size are too large
            tts = load(data, case["kind"])
            loaded[case["kind"]] = (tts, Stages(tts.model))
        own, rows = run(*loaded[case["kind"]], case, seed)
        facts.append(own)
        arrays |= rows
    tts = loaded[next(iter(loaded))][0]
    texts = [[text, tts._tokenize_texts([tts._build_assistant_text(text)])[0][0].tolist()] for text in TEXTS]
    save_file(arrays, data / "talker.safetensors")
    cases = ",\n".join(json.dumps(case, ensure_ascii=False) for case in facts)
    rows = ",\n".join(json.dumps(text) for text in texts)
    (data / "talker.json").write_text('{"cases": [\n' + cases + '\n],\n"texts": [\n' + rows + "\n]}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
