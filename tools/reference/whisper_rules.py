#!/usr/bin/env python3
"""Reference of Whisper's rules by openai-whisper's own classes and functions, on the small vocabulary: which logits the
filters leave, attention to word times, words and their punctuation, and the segments that transcribe() makes of
scripted windows.

  python3 tools/reference/whisper_rules.py tests/data/whisper
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random

import numpy as np
import torch
import whisper
import whisper.decoding as decoding
import whisper.timing as timing
import whisper_small
from whisper_small import Draws

V = 2014


def runs(kept: np.ndarray) -> list[int]:
    """Begins and ends of what is kept, one after the other."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], kept.astype(int), [0]])))
    return edges.tolist()


def sequence(rng: random.Random, begin: int) -> list[int]:
    """Tokens as a decoder samples them, now and then as it never would."""
    ids, time = [], rng.randrange(50)
    for _ in range(rng.randrange(4)):
        ids += [begin + time] + [rng.randrange(500) for _ in range(rng.randrange(3))]
        time = min(1500, time + rng.randrange(200))
        ids.append(begin + time)
        if rng.random() < 0.3:
            time = min(1500, time + rng.randrange(30))
    if rng.random() < 0.5 and ids:
        ids = ids[:rng.randrange(len(ids)) + 1]
    if rng.random() < 0.1:
        ids = [rng.randrange(500)] + ids
    return ids


def masks(tokenizer) -> list[dict]:
    """logits: floats(V, -4, 4) of the seed, and `lift` added to the times."""
    rng = random.Random(11)
    rows = []
    for seed in range(1, 141):
        timestamps = seed % 7 != 0
        task = decoding.DecodingTask.__new__(decoding.DecodingTask)
        task.tokenizer, task.options = tokenizer, decoding.DecodingOptions(language="en")
        prefix = [tokenizer.sot_prev, 5, 6, *tokenizer.sot_sequence]
        filters = [decoding.SuppressBlank(tokenizer, len(prefix)), decoding.SuppressTokens(task._get_suppress_tokens())]
        if timestamps:
            filters.append(decoding.ApplyTimestampRules(tokenizer, len(prefix), 50))
        ids = sequence(rng, tokenizer.timestamp_begin) if seed > 3 else []
        lift = rng.choice([-9.0, -4.5, -3.5, -3.0, -2.0, 0.0])
        values = Draws(seed).floats(V, -4, 4)
        values[tokenizer.timestamp_begin:] += np.float32(lift)
        logits = torch.from_numpy(values)[None]
        for rule in filters:
            rule.apply(logits, torch.tensor([prefix + ids]))
        rows.append(dict(seed=seed, timestamps=timestamps, lift=lift, ids=ids, kept=runs(np.isfinite(logits[0].numpy()))))
    return rows


def alignments() -> list[dict]:
    """attention: floats(H * T * A) of the seed; the maker's steps of find_alignment from the softmax on."""
    rows = []
    for seed, (heads, tokens, everything, positions) in enumerate(((2, 5, 30, 20), (3, 9, 24, 24), (1, 3, 12, 3), (2, 12, 40, 9)), 1):
        scores = torch.from_numpy(np.log(Draws(seed).floats(heads * tokens * everything) + np.float32(1e-3)))
        weights = scores.reshape(heads, tokens, everything)[:, :, :positions].softmax(dim=-1)
        std, mean = torch.std_mean(weights, dim=-2, keepdim=True, unbiased=False)
        weights = timing.median_filter((weights - mean) / std, 7)
        matrix = weights.mean(axis=0)
        rows_, columns = timing.dtw(-matrix)
        rows.append(dict(seed=seed, heads=heads, tokens=tokens, everything=everything, positions=positions,
                         matrix=[round(float(v), 7) for v in matrix.flatten()], rows=rows_.tolist(), columns=columns.tolist()))
    return rows


def words(tokenizer) -> list[dict]:
    """Words of tokens; then words with drawn times, joined and placed into segments by add_word_timestamps."""
    rng = random.Random(12)
    texts = (" The dog, it's \"there\" (isn't it?) said he. And then...", " - What? (No!) he said: \"it is\"", " wait -- what , no .",
             " 今日は良い天気です。 世界", " Voilà l'été, où", " a", "", " . ! ?", " they heard what her brother thought. They went on!")
    rows = []
    for number, text in enumerate(texts * 6):
        language = "ja" if number % len(texts) == 3 and number > 20 else "en"
        tokenizer.language = language
        ids = tokenizer.encode(text)
        if number >= len(texts) * 4:
            ids = [rng.choice([rng.randrange(500), rng.randrange(94, 256), rng.choice(ids or [0])]) for _ in range(rng.randrange(1, 14))]
        parts, part_ids = tokenizer.split_to_word_tokens(ids + [tokenizer.eot])
        if part_ids[-1] != [tokenizer.eot]:
            continue                   # malformed characters that OpenAI loses the thread of
        time, alignment = rng.randrange(40) / 50, []
        for word, tokens in zip(parts[:-1], part_ids[:-1]):
            end = time + rng.choice([0, 4, 8, 12, 20, 30, 150]) / 50
            alignment.append(timing.WordTiming(word, tokens, time, end, 0.5))
            time = end
        cut = sorted({0, len(ids), *(rng.randrange(len(ids) + 1) for _ in range(number % 3))})
        spans = list(zip(cut, cut[1:])) or [(0, 0)]
        seek, before = rng.choice([0, 700, 3210]), rng.choice([0.0, 1.0, 6.5])
        segments = [dict(seek=seek, tokens=ids[a:b], start=seek / 100 + rng.randrange(100) / 50, end=seek / 100 + 2 + rng.randrange(400) / 50)
                    for a, b in spans]
        row = dict(language=language, ids=ids, words=parts[:-1], times=[[w.start, w.end] for w in alignment], offset=seek / 100,
                   before=before, spans=[dict(count=b - a, start=s["start"], end=s["end"]) for (a, b), s in zip(spans, segments)])
        kept = timing.find_alignment
        timing.find_alignment = lambda *_a, given=alignment, **_k: given
        timing.add_word_timestamps(segments=segments, model=None, tokenizer=tokenizer, mel=None, num_frames=0,
                                   last_speech_timestamp=before)
        timing.find_alignment = kept
        row["placed"] = [dict(start=s["start"], end=s["end"], words=[[w["word"], w["start"], w["end"]] for w in s["words"]])
                         for s in segments]
        rows.append(row)
    tokenizer.language = "en"
    return rows


class Scripted:
    """A model whose decode() gives drawn windows and keeps what it was told."""

    device = torch.device("cpu")
    is_multilingual, num_languages = True, 5
    dims = whisper.model.ModelDimensions(80, 1500, 8, 1, 1, V, 448, 8, 1, 1)

    def __init__(self, seed: int):
        self.rng, self.windows = random.Random(seed), []

    def decode(self, mel, options):
        begin, rng, ids, time = 513, self.rng, [], self.rng.randrange(40)
        for _ in range(rng.randrange(1, 5)):
            ids += [begin + time] + [rng.randrange(258, 500) for _ in range(rng.choice([0, 1, 4, 9]))]
            time = min(1500, time + rng.choice([0, 40, 120, 300]))
            ids.append(begin + time)
            time = min(1500, time + rng.choice([0, 0, 10]))
        shape = rng.randrange(5)
        ids = [ids, ids + [begin + time, 300, 301], ids[:-1], [300, 301, 302], [begin, 303]][shape]
        result = decoding.DecodingResult(None, "en", None, ids, "", rng.choice([-0.3, -0.3, -1.4]), rng.choice([0.1, 0.1, 0.9]),
                                         rng.choice([0.0, 0.2, 0.8]), 1.5)
        self.windows.append(dict(prompt=list(options.prompt)[-223:], ids=ids, mean=result.avg_logprob,
                                 no_speech=result.no_speech_prob, temperature=result.temperature))
        return result


def long_forms() -> list[dict]:
    rows = []
    prompt = "the dog and the fox jump"
    for seed, samples, condition, said, carry in (
            (1, 16000 * 95 + 77, True, "", False), (2, 16000 * 61, False, "", False), (3, 16000 * 4 + 159, True, "", False),
            (4, 150, True, "", False), (5, 16000 * 130, True, "", False), (5, 16000 * 130, True, prompt, False),
            (5, 16000 * 130, True, prompt, True), (2, 16000 * 61, False, prompt, False), (2, 16000 * 61, False, prompt, True)):
        model = Scripted(seed)
        result = whisper.transcribe(model, np.zeros(samples, np.float32), language="en", temperature=0.0, fp16=False,
                                    condition_on_previous_text=condition, initial_prompt=said or None, carry_initial_prompt=carry)
        rows.append(dict(frames=samples // 160, condition=condition, said=said, carry=carry, windows=model.windows,
                         segments=[[round(s["start"], 4), round(s["end"], 4), s["tokens"], s["text"]] for s in result["segments"]]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="tests/data/whisper")
    folder = parser.parse_args().folder
    tokenizer = whisper_small.install(folder)
    parts = dict(masks=masks(tokenizer), alignments=alignments(), words=words(tokenizer), long_forms=long_forms())
    parts["suppressed"] = [decoding.DecodingTask._get_suppress_tokens.__get__(_Task(tokenizer))()]
    lines = []
    for name, rows in parts.items():
        body = ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in rows)
        lines.append(f'"{name}":[\n{body}\n]')
        print(f"{name}: {len(rows)}")
    (folder / "rules.json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


class _Task:
    options = decoding.DecodingOptions()

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer


if __name__ == "__main__":
    main()
