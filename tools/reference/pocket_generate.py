"""Whole generations by the maker's generate_audio, with the noise given, and what every step of them said."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np

import pocket_maker as maker
from pocket_maker import Listener, columns
from pocket_stages import Stages
from pocket_text import split

_TEXT = "hello world, it costs 3.50 dollars. How are you today? I do not know"
MARGIN = 0.05      # an end that hangs on less would hang on rounding: another seed is taken then
LEAST_MARGIN = 0.002   # where hundreds of steps must keep it; two implementations of full size are 1e-4 apart


@dataclasses.dataclass(frozen=True)
class Case:
    text: str = _TEXT
    max_tokens: int = 50
    temperature: float | None = None
    eos_threshold: float | None = None
    frames_after_eos: int | None = None

    def settings(self) -> dict:
        return {k: v for k, v in dataclasses.asdict(self).items() if v is not None}


PLAIN = (Case(), Case(max_tokens=24))
# The cap with zero noise; an end at each step, where the first six are passed over; no frame after the end.
EDGES = (Case("Hi.", temperature=0.0, eos_threshold=1e9), Case("Hi.", eos_threshold=-1e9),
         Case("Hi.", eos_threshold=-1e9, frames_after_eos=0))


def _chunk(logits: list[float], threshold: float, chunk: dict, frames_after: int | None, least: int) -> dict:
    """Where a chunk ended, told from its logits."""
    after = chunk["frames_after_eos"] if frames_after is None else frames_after
    end = next((i for i, logit in enumerate(logits) if logit > threshold and i >= least), -1)
    stopped = end >= 0 and len(logits) > end + after
    if not stopped and len(logits) != chunk["max_steps"]:
        raise SystemExit(f"{len(logits)} steps of {chunk['max_steps']}, and no end")
    return chunk | dict(steps=len(logits), frames=len(logits) - stopped, eos_step=end, frames_after_eos=after)


def _run(stages: Stages, voice: pathlib.Path, case: Case, chunks: list[dict], noise: np.ndarray) -> tuple:
    """Samples, latents as the codec takes them, and the logits of each chunk's steps."""
    model, logits, at = stages.model, [[] for _ in chunks], -1
    stages.noise.give(noise)

    def step(_module, _inputs, out):
        nonlocal at
        if stages.noise.stepping:
            logits[at].append(float(out[0, 0]))
        else:
            at += 1                    # the text pass of the next chunk

    state = model.get_state_for_audio_prompt(str(voice))
    hook = model.flow_lm.out_eos.register_forward_hook(step)
    with Listener() as listener:
        listener.before(model.mimi.quantizer, "latent", columns)
        sound = maker.speak(model, state, case.text, case.max_tokens, case.frames_after_eos)
    hook.remove()
    return sound, listener.joined("latent"), logits


def generate(stages: Stages, voice: pathlib.Path, number: int, case: Case) -> tuple[dict, dict[str, np.ndarray]]:
    """The case as JSON and its arrays."""
    model, key = stages.model, f"generate.{number}"
    before = model.temp, model.eos_threshold
    model.temp = model.temp if case.temperature is None else case.temperature
    model.eos_threshold = threshold = model.eos_threshold if case.eos_threshold is None else case.eos_threshold
    chunks = split(model.flow_lm.conditioner.tokenizer, case.text, case.max_tokens, maker.text_options(model))
    for seed in range(1, 100):
        noise = stages.normal(sum(chunk["max_steps"] for chunk in chunks), seed)
        sound, latents, logits = _run(stages, voice, case, chunks, noise)
        flat = np.array(sum(logits, []), np.float32)
        nearest = np.abs(flat - threshold).min()
        if nearest >= (LEAST_MARGIN if stages.whole else MARGIN):
            break
    model.temp, model.eos_threshold = before
    chunks = [_chunk(row, threshold, chunk, case.frames_after_eos, model._MIN_FRAMES_BEFORE_EOS)
              for row, chunk in zip(logits, chunks)]
    frames = sum(chunk["frames"] for chunk in chunks)
    if frames * 1920 != len(sound) or frames != len(latents):
        raise SystemExit(f"{key}: {len(sound)} samples are not the frames of {chunks}")
    arrays = {f"{key}.noise": noise[:len(flat)], f"{key}.logit": flat, f"{key}.denormalised": latents}
    arrays |= stages.kept(f"{key}.samples", sound[:, None], 1920, head=128)
    note = dict(chunks=chunks, samples=len(sound), nearest_to_threshold=round(float(nearest), 3))
    return case.settings() | note, arrays
