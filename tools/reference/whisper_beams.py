#!/usr/bin/env python3
"""openai-whisper's beam search: of drawn logits alone, with many sequences that end; of drawn sounds with the tiny checkpoint,
whose window is 1 s: tokens and sums of log-probabilities; then whole transcriptions with a beam and with an initial prompt.

  python3 tools/reference/whisper_beams.py tests/data/whisper
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib

import torch
import whisper
import whisper.decoding
import whisper.model
import whisper_openai
import whisper_small
import whisper_tiny

PROMPT = "the dog and the fox jump"
VOCABULARY, END = 23, 7  # of the drawn logits


class Sources(whisper.decoding.Inference):
    """Which sequence each goes on from, step by step."""

    def __init__(self):
        self.steps = []

    def rearrange_kv_cache(self, source_indices):
        self.steps.append(list(source_indices))


def drawn_logits(seed: int, ids: list[int], lift: float) -> list[float]:
    """Of a sequence alone, so that both sides draw the same."""
    state = seed
    for token in ids:
        state = (state * 31 + token + 1) % 2**32
    values = whisper_small.Draws(state).floats(VOCABULARY, -2, 2)
    values[END] += lift
    return values.tolist()


def search(seed: int, beam: int, patience: float | None, penalty: float | None, steps: int, lift: float) -> dict:
    """The maker's loop (DecodingTask._main_loop and run) over drawn logits."""
    sources = Sources()
    decoder = whisper.decoding.BeamSearchDecoder(beam, END, sources, patience)
    tokens, sums = torch.zeros(beam, 1, dtype=torch.long), torch.zeros(beam)
    for _ in range(steps):
        logits = torch.tensor([drawn_logits(seed, row[1:], lift) for row in tokens.tolist()])
        if tokens.shape[1] == 1:
            logits[:, END] = -float("inf")
        tokens, completed = decoder.update(tokens, logits, sums)
        if completed:
            break
    finished = len(decoder.finished_sequences[0])
    found, sums = decoder.finalize(tokens.reshape(1, beam, -1), sums.reshape(1, beam))
    found = [[t[1:(t == END).nonzero()[0, 0]] for t in s] for s in found]
    best = int(whisper.decoding.MaximumLikelihoodRanker(penalty).rank(found, sums)[0])
    return dict(seed=seed, beam=beam, patience=patience or 1, penalty=penalty, steps=steps, lift=lift, sources=sources.steps[1:],
                finished=finished, all=len(found[0]), ids=found[0][best].tolist(), sum=round(sums[0][best], 6))


def searches() -> list[dict]:
    rows = []
    for seed, beam, patience, lift in itertools.product((1, 2), (1, 2, 5), (None, 0.5, 2.0), (-0.5, 0.3, 1.0)):
        if round(beam * (patience or 1)) > 0:
            for penalty in (None, 0.6):
                rows.append(search(seed, beam, patience, penalty, 10, lift))
    told = {(r["beam"], r["patience"], r["finished"], r["all"]) for r in rows}
    print(len(rows), "searches; beam, patience, finished, ranked:", sorted(told))
    print("steps on which a sequence has two that go on from it:", sum(len(set(s)) < len(s) for r in rows for s in r["sources"]))
    print("results that end before the last step:", sum(len(r["ids"]) < 10 for r in rows))
    return rows


def window(model, seed: int, timed: bool, prompt: str, **options) -> dict:
    """A drawn second through encoder and search."""
    mel = whisper.log_mel_spectrogram(torch.from_numpy(whisper_tiny.sound(seed, 16000)).float())
    result = whisper.decode(model, mel, whisper.DecodingOptions(language="en", without_timestamps=not timed, fp16=False,
                                                                prompt=prompt or None, **options))
    return dict(seed=seed, timed=timed, prompt=prompt, beam=options.get("beam_size", 0), patience=options.get("patience") or 1,
                penalty=options.get("length_penalty"), ids=result.tokens, sum=round(result.avg_logprob * (len(result.tokens) + 1), 6),
                no_speech=round(result.no_speech_prob, 8), ratio=round(result.compression_ratio, 6))


def windows(model) -> list[dict]:
    rows = []
    for seed, timed, prompt in itertools.product((1, 2), (True, False), ("", PROMPT)):
        kinds = set()
        for beam, patience, penalty in ((0, None, None), (1, None, None), (1, 2.0, 0.6), (2, None, 0.6), (2, 2.0, None), (5, None, None), (5, 2.0, 0.6)):
            options = dict(length_penalty=penalty) | (dict(beam_size=beam, patience=patience) if beam else {})
            rows.append(window(model, seed, timed, prompt, **options))
            kinds.add(tuple(rows[-1]["ids"]))
        print(seed, timed, bool(prompt), len(kinds), "different results")
    return rows


def transcripts(model) -> list[dict]:
    rows = []
    for seed, samples, condition, words, options in (
            (6, 80000, True, True, dict(beam_size=5)), (8, 70000, False, True, dict(beam_size=3, patience=2.0)),
            (2, 59999, True, False, dict(beam_size=2, length_penalty=0.6)), (3, 40000, True, True, dict(beam_size=5, initial_prompt=PROMPT))):
        row = whisper_tiny.heard(model, seed, samples, "en", "transcribe", condition, words, **options)
        row |= dict(beam=options.get("beam_size", 0), patience=options.get("patience", 1), penalty=options.get("length_penalty"),
                    prompt=options.get("initial_prompt", ""))
        rows.append(row)
        print(seed, options, len(row["segments"]), "segments,", sum(len(s["ids"]) for s in row["segments"]), "tokens")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="tests/data/whisper")
    folder = parser.parse_args().folder
    torch.set_num_threads(1)
    whisper_small.install(folder)
    model = whisper_openai.load(folder / "ct2")
    whisper_tiny.shorten(model)
    whisper.model.Whisper.is_multilingual, whisper.model.Whisper.num_languages = True, 5  # of the small vocabulary
    parts = dict(searches=searches(), windows=windows(model))
    whisper_tiny.TokenTimes()
    parts["transcripts"] = transcripts(model)
    lines = []
    for name, rows in parts.items():
        body = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        lines.append(f'"{name}":[\n{body}\n]')
    (folder / "beams.json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
