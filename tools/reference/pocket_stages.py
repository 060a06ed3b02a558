"""Every stage of one Pocket TTS model by the maker's package: voice, text pass, steps, head, codec.

All arrays are [time, channels] in f32.  A long one keeps some rows only: NAME.rows says which.
"""

from __future__ import annotations

import copy
import pathlib

import numpy as np
import torch

import pocket_maker as maker
from pocket_maker import Listener, array, columns

STEPS = 6                      # frames that are followed through every stage
SEED = 1234                    # of the injected noise
TEXT = "hello world, it costs 3.50"
_FLOOR = 96                    # longer arrays of the codec are thinned, unless the whole of them is asked for


def thinned(name: str, x: np.ndarray, period: int, head: int = 24) -> dict[str, np.ndarray]:
    """Rows where something can go wrong: the first ones of each period, its last, and the ends."""
    if len(x) <= _FLOOR:
        return {name: x}
    rows = set()
    for start in range(0, len(x), period):
        rows |= {*range(start, start + 8), start + period - 3, start + period - 1}
    rows |= set(range(head)) | set(range(len(x) - 16, len(x)))
    kept = np.array(sorted(r for r in rows if r < len(x)), np.int32)
    return {name: x[kept], name + ".rows": kept}


def chosen(count: int) -> list[int]:
    """All of a few, the first, a middle one and the last of many."""
    return list(range(count)) if count <= 3 else [0, count // 2, count - 1]


class Stages:
    """Runs one model and gathers what it computed; long arrays thinned, unless `whole`."""

    def __init__(self, folder: pathlib.Path, voice: pathlib.Path, steps: int, whole: bool = False):
        self.model = maker.load(folder, sampler_decode_steps=steps)
        self.noise = maker.Noise(self.model)
        self.lm, self.mimi = self.model.flow_lm, self.model.mimi
        self.voice_file, self.decode_steps, self.whole = voice, steps, whole
        self.out: dict[str, np.ndarray] = {}

    def kept(self, name: str, x: np.ndarray, period: int, **head) -> dict[str, np.ndarray]:
        return {name: x} if self.whole else thinned(name, x, period, **head)

    def normal(self, count: int, case: int) -> np.ndarray:
        rng = np.random.default_rng([SEED, case])
        return (rng.standard_normal((count, self.lm.ldim)) * self.model.temp**0.5).astype(np.float32)

    def _listen_lm(self, listener: Listener, prefix: str) -> list[str]:
        names = []
        blocks = self.lm.transformer.layers
        for i in chosen(len(blocks)):
            listener.after(blocks[i], f"{prefix}.layer.{i}", lambda out: array(out[0]))
            names.append(f"{prefix}.layer.{i}")
        return names

    def voice(self) -> dict:
        """Encoder, projection and the pass through the language model; returns the voice's state."""
        with Listener() as listener:
            for i, module in enumerate(self.mimi.encoder.model):
                if not isinstance(module, torch.nn.ELU):
                    listener.after(module, f"voice.encoder.{i}", columns)
            for i, module in enumerate(self.mimi.encoder_transformer.transformer.layers):
                listener.after(module, f"voice.transformer.{i}", lambda out: array(out[0]))
            listener.after(self.mimi.downsample, "voice.latents", columns)
            names = self._listen_lm(listener, "voice")
            state = self.model.get_state_for_audio_prompt(self.voice_file)
            latents = torch.from_numpy(listener.joined("voice.latents"))
            self.out["voice.projected"] = array(torch.nn.functional.linear(latents, self.lm.speaker_proj_weight))
            for name in listener.seen:
                x = listener.joined(name)
                self.out |= {name: x} if name in names else self.kept(name, x, max(1, len(x) // 2))
        return state

    def text(self, state: dict, steps: int = STEPS) -> dict:
        """The text pass after a voice; returns the state after it, with room for so many steps."""
        tokenizer = self.lm.conditioner.tokenizer
        chunks = maker.text_chunking.split_into_best_sentences(tokenizer, TEXT, 50, **maker.text_options(self.model))
        prepared, _ = maker.text_chunking.prepare_text_prompt(chunks[0], **maker.text_options(self.model))
        ids = self.lm.conditioner.prepare(prepared)
        self.out["text.ids"] = ids[0].numpy().astype(np.int32)
        self.out["text.embedding"] = array(self.lm.conditioner(ids)[0])
        state, start = copy.deepcopy(state), self.model._flow_lm_current_end(state)
        self.model._expand_kv_cache(state, start + ids.shape[1] + steps)
        with Listener() as listener:
            names = self._listen_lm(listener, "text")
            self.model._run_flow_lm_and_increment_step(model_state=state, text_tokens=ids)
            self.out |= {name: listener.joined(name) for name in names}
        last = f"transformer.layers.{len(self.lm.transformer.layers) - 1}.self_attn"
        keys, values = state[last]["cache"][:, 0, start:start + ids.shape[1]]
        self.out["text.keys"], self.out["text.values"] = array(keys.flatten(1)), array(values.flatten(1))
        return state

    def steps(self, state: dict, count: int, prefix: str = "step") -> np.ndarray:
        """Steps of the language model and the head; returns the latents."""
        noise = self.normal(count, 0)
        self.noise.give(noise)
        latents, x = [], torch.full((1, 1, self.lm.ldim), float("nan"))
        with Listener() as listener:
            self._listen_lm(listener, prefix)
            listener.before(self.lm.out_eos, f"{prefix}.hidden")
            listener.after(self.lm.out_eos, f"{prefix}.logit", lambda out: array(out[0]))
            listener.after(self.lm.flow_net, f"{prefix}.velocity")
            net = self.lm.flow_net
            listener.after(net.cond_embed, f"{prefix}.condition")
            listener.after(net.input_proj, f"{prefix}.input")
            for i, module in enumerate(net.res_blocks):
                listener.after(module, f"{prefix}.block.{i}")
            for i, module in enumerate(net.time_embed):
                listener.after(module, f"{prefix}.time.{i}")
            for _ in range(count):
                x, _end = self.model._run_flow_lm_and_increment_step(model_state=state, backbone_input_latents=x)
                latents.append(array(x[0, 0]))
            for name in listener.seen:
                value = listener.joined(name)
                # The head's inside: only its first evaluations, those of the first step.
                inside = name.split(".")[1] in ("input", "block", "time")
                self.out[name] = value[:self.decode_steps] if inside else value
        self.out |= {f"{prefix}.noise": noise, f"{prefix}.latent": np.stack(latents)}
        return np.stack(latents)

    def codec(self, latents: np.ndarray, prefix: str = "mimi") -> None:
        """The decoder, frame by frame."""
        z = torch.from_numpy(latents) * self.lm.emb_std + self.lm.emb_mean
        up = int(self.mimi.encoder_frame_rate / self.mimi.frame_rate)
        count = len(latents)
        state, sound = maker.init_states(self.mimi, 1, count * up), []
        with Listener() as listener:
            listener.after(self.mimi.quantizer, f"{prefix}.quantizer", columns)
            listener.after(self.mimi.upsample, f"{prefix}.upsample", columns)
            for i, module in enumerate(self.mimi.decoder_transformer.transformer.layers):
                listener.after(module, f"{prefix}.transformer.{i}", lambda out: array(out[0]))
            for i, module in enumerate(self.mimi.decoder.model):
                if not isinstance(module, torch.nn.ELU):
                    listener.after(module, f"{prefix}.decoder.{i}", columns)
            for i in range(count):
                sound.append(array(self.mimi.decode_from_latent(z[None, i:i + 1], state)[0, 0]))
                maker.increment_steps(self.mimi, state, increment=up)
            last = f"{prefix}.decoder.{len(self.mimi.decoder.model) - 1}"
            for name in listener.seen:
                x = listener.joined(name)
                if name != last:
                    self.out |= self.kept(name, x, len(x) // count)
        self.out |= {f"{prefix}.denormalised": array(z), f"{prefix}.samples": np.concatenate(sound)}
        whole = array(self.mimi.decode_from_latent(z[None], maker.init_states(self.mimi, 1, count * up))[0, 0])
        apart = np.abs(whole - self.out[f"{prefix}.samples"]).max()
        if apart > 1e-5:
            raise SystemExit(f"frame by frame and all at once are {apart:.1e} apart")
