#!/usr/bin/env python3
"""What the maker's own classes (nemo_toolkit) compute from the checkpoints of tools/checkpoints/transducer.py.

Writes DIR/NAME.reference.safetensors for each DIR/NAME.nemo: features, the encoder's stages and results for several
lengths and contexts, the maker's cache-aware steps, and greedy decisions.  tests/data/transducer/README.md says what each array is.

  python3 tools/reference/transducer.py tests/data/transducer
"""

from __future__ import annotations

import argparse
import logging
import pathlib
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from reference.container import save  # noqa: E402

SAMPLES = 20800                   # 130 frames of features
EDGES = (1, 2, 7, 8, 9, 17)       # frames of features
HISTORIES = 8                     # labels that the prediction network is given
LARGE = 1000                      # a vocabulary whose logits are not kept


def noise(count: int) -> torch.Tensor:
    """16-bit noise whose level changes every tenth of a second: the same numbers in every language."""
    state, out = 12345, []
    for i in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(((state >> 16) - 32768 >> 1 + i // 1600 % 5) / 32768)
    return torch.tensor(out)


def rows(x: torch.Tensor) -> np.ndarray:
    """[1, C, T] as [T, C]."""
    return x[0].T.contiguous().float().numpy()


class Stages:
    """What the encoder's modules gave, and what the sum was behind each module of the first block."""

    def __init__(self, encoder: torch.nn.Module):
        self.seen: dict[str, torch.Tensor] = {}
        self.handles = [encoder.pre_encode.register_forward_hook(self.keep("pre"))]
        for i, layer in enumerate(encoder.layers):
            self.handles.append(layer.register_forward_hook(self.keep(f"layer{i}")))
        first = encoder.layers[0]
        for name in ("feed_forward1", "self_attn", "conv"):
            self.handles.append(getattr(first, name).register_forward_hook(self.keep(name)))
        self.handles.append(first.register_forward_pre_hook(self.keep_input, with_kwargs=True))

    def keep(self, name: str):
        def hook(_, __, out) -> None:
            self.seen[name] = (out[0] if isinstance(out, tuple) else out).detach().clone()
        return hook

    def keep_input(self, _, args, kwargs) -> None:
        self.seen["input"] = (args[0] if args else kwargs["x"]).detach().clone()

    def arrays(self) -> dict[str, np.ndarray]:
        for handle in self.handles:
            handle.remove()
        s = self.seen
        s["layer0.ff1"] = s["input"] + 0.5 * s.pop("feed_forward1")
        s["layer0.att"] = s["layer0.ff1"] + s.pop("self_attn")
        s["layer0.conv"] = s["layer0.att"] + s.pop("conv")
        return {f"stage.{name}": value[0].float().numpy() for name, value in s.items()}


def features(model, samples: torch.Tensor) -> torch.Tensor:
    mels, length = model.preprocessor(input_signal=samples[None], length=torch.tensor([len(samples)]))
    return mels[:, :, :int(length)]


def encode(model, mels: torch.Tensor) -> np.ndarray:
    out, length = model.encoder(audio_signal=mels, length=torch.tensor([mels.shape[2]]))
    return rows(out[:, :, :int(length)])


def encode_prompted(model, mels: torch.Tensor, language: str = "auto") -> np.ndarray:
    """The same, of models that take a language with that language's prompt."""
    frames = encode(model, mels)
    if not hasattr(model, "set_inference_prompt"):
        return frames
    model.set_inference_prompt(language)
    return rows(model._apply_prompt_to_encoded(torch.from_numpy(frames).T[None]))


def stream(model, mels: torch.Tensor) -> np.ndarray:
    """The maker's own steps: cached features in front of each chunk but the first."""
    encoder = model.encoder
    encoder.setup_streaming_params()
    c = encoder.streaming_cfg
    pick = lambda value, step: value[min(step, 1)] if isinstance(value, (list, tuple)) else value  # noqa: E731
    cache, at, out = encoder.get_initial_cache_state(batch_size=1), 0, []
    step = 0
    while at + pick(c.chunk_size, step) <= mels.shape[2]:
        size, before = pick(c.chunk_size, step), pick(c.pre_encode_cache_size, step)
        chunk = mels[:, :, max(at - before, 0):at + size]
        chunk = torch.nn.functional.pad(chunk, (before + size - chunk.shape[2], 0))  # nothing was there before
        result = encoder.cache_aware_stream_step(
            processed_signal=chunk, processed_signal_length=torch.tensor([chunk.shape[2]]),
            cache_last_channel=cache[0], cache_last_time=cache[1], cache_last_channel_len=cache[2],
            keep_all_outputs=False, drop_extra_pre_encoded=0 if step == 0 else c.drop_extra_pre_encoded)
        out.append(rows(result[0]))
        cache, at, step = result[2:5], at + size, step + 1
    return np.concatenate(out)


def steps(model, mels: torch.Tensor) -> np.ndarray:
    """The maker's cache-aware steps on frames that the whole sound's subsampling gave, one new frame a step.

    Of models whose blocks look ahead: each step runs the frames ahead through again, and drops what they give.
    """
    encoder = model.encoder
    encoder.setup_streaming_params()
    frames, _ = encoder.pre_encode(x=mels.transpose(1, 2), lengths=torch.tensor([mels.shape[2]]))
    ahead, out = encoder.streaming_cfg.cache_drop_size, []
    cache = encoder.get_initial_cache_state(batch_size=1)
    for at in range(frames.shape[1] - ahead):
        chunk = frames[:, at:at + ahead + 1]
        result = encoder.cache_aware_stream_step(
            processed_signal=chunk, processed_signal_length=torch.tensor([chunk.shape[1]]),
            cache_last_channel=cache[0], cache_last_time=cache[1], cache_last_channel_len=cache[2],
            keep_all_outputs=False, bypass_pre_encode=True)
        out.append(rows(result[0]))
        cache = result[2:5]
    return np.concatenate(out)


def decode_all(model) -> None:
    """Makes the maker's decoders tell durations, and of a CTC head times and confidences."""
    from omegaconf import OmegaConf, open_dict
    transducer = hasattr(model, "joint")
    if transducer:
        with open_dict(model.cfg.decoding):
            model.cfg.decoding.tdt_include_token_duration = model.joint.num_extra_outputs > 0
        model.change_decoding_strategy(model.cfg.decoding, verbose=False)
    if not transducer or hasattr(model, "ctc_decoder"):
        sure = dict(preserve_frame_confidence=True, preserve_token_confidence=True)
        ctc = OmegaConf.create(dict(strategy="greedy", compute_timestamps=True, confidence_cfg=sure))
        model.change_decoding_strategy(ctc, **(dict(decoder_type="ctc") if transducer else {}), verbose=False)


def ctc_decisions(model, out: torch.Tensor, length: torch.Tensor) -> dict[str, np.ndarray]:
    from nemo.core.classes import typecheck
    hybrid = hasattr(model, "joint")
    log_probs = (model.ctc_decoder if hybrid else model.decoder)(encoder_output=out)
    decoding = model.ctc_decoding if hybrid else model.decoding
    found = decoding.ctc_decoder_predictions_tensor(log_probs, length, return_hypotheses=True)[0]
    # The maker's offsets end where a label begins; what they are made of says how long it lasts.
    with typecheck.disable_checks():
        raw = decoding.decoding(decoder_output=log_probs, decoder_lengths=length)[0]
    tokens, distances, repetitions = decoding.decode_hypothesis(raw, fold_consecutive=True)[0].text
    begin = np.cumsum(distances)
    return {"ctc.logprobs": log_probs[0].float().numpy(), "ctc.tokens": np.asarray(tokens, np.int32),
            "ctc.frames": begin, "ctc.ends": begin + np.asarray(repetitions),
            "ctc.confidence": np.asarray([float(c) for c in found.token_confidence], np.float32)}


def histories(model, frames: torch.Tensor, labels: list[int]) -> dict[str, np.ndarray]:
    """The prediction network behind the start and each of the labels, and the joint's logits with a frame of each."""
    at = [i * (frames.shape[2] - 1) // len(labels) for i in range(len(labels) + 1)]
    state, hidden, logits = None, [], []
    encoded = model.joint.project_encoder(frames.transpose(1, 2))
    for i, label in zip(at, [None, *labels]):
        y = None if label is None else torch.tensor([[label]])
        row, state = model.decoder.predict(y, state, add_sos=False, batch_size=1)
        hidden.append(row[0, -1])
        logits.append(model.joint.joint_net(encoded[0, i] + model.joint.project_prednet(row)[0, -1]))
    return {"pred.labels": np.asarray(labels, np.int32), "pred.g": torch.stack(hidden).numpy(),
            "joint.frames": np.asarray(at, np.int32), "joint.logits": torch.stack(logits).numpy()}


def decisions(model, mels: torch.Tensor) -> dict[str, np.ndarray]:
    out, length = model.encoder(audio_signal=mels, length=torch.tensor([mels.shape[2]]))
    if not hasattr(model, "joint"):
        return ctc_decisions(model, out, length)
    arrays = ctc_decisions(model, out, length) if hasattr(model, "ctc_decoder") else {}
    if hasattr(model, "set_inference_prompt"):
        out = model._apply_prompt_to_encoded(out)
    found = model.decoding.rnnt_decoder_predictions_tensor(encoder_output=out, encoded_lengths=length,
                                                           return_hypotheses=True)
    found = found[0][0] if isinstance(found[0], list) else found[0]
    arrays |= dict(tokens=found.y_sequence, frames=found.timestamp)
    if model.joint.num_extra_outputs:
        arrays["durations"] = found.token_duration
    for name in ("tokens", "frames", "durations"):
        if name in arrays:
            arrays[name] = np.asarray([int(v) for v in arrays[name]], np.int32)
    blank = model.decoder.blank_idx
    if blank < LARGE:
        arrays |= histories(model, out, [3, 0, blank - 1, *arrays["tokens"].tolist()][:HISTORIES])
    return arrays


def prompted(model, mels: torch.Tensor) -> dict[str, np.ndarray]:
    """Of models that take a language: frames and labels of each, and the steps of a stream."""
    out = {}
    for language, index in model.cfg.model_defaults.prompt_dictionary.items():
        frames, length = model.forward(processed_signal=mels, processed_signal_length=torch.tensor([mels.shape[2]]),
                                       prompt_indices=torch.tensor([index]))
        out[f"prompted.{language}"] = rows(frames[:, :, :int(length)])
        model.set_inference_prompt(language)
        out[f"tokens.{language}"] = decisions(model, mels)["tokens"]
    return out


def windows(model, mels: torch.Tensor) -> dict[str, np.ndarray]:
    """Of models with menus of contexts: the mask of some, as in the maker's script for streams in windows."""
    out = {}
    for context in ((6, 3, 2), (6, 1, 0), (6, 2, 1)):
        model.encoder.set_default_att_context_size(list(context))
        out["window." + ".".join(map(str, context))] = encode(model, mels)
    return out


def reference(path: pathlib.Path) -> dict[str, np.ndarray]:
    import nemo.collections.asr as nemo_asr
    model = nemo_asr.models.ASRModel.restore_from(str(path), map_location="cpu", strict=False).eval().float()
    model.preprocessor.featurizer.dither = 0.0
    decode_all(model)
    samples, out = noise(SAMPLES), {}
    for count in (200, 400, 4000):
        out[f"mel.{count}"] = rows(features(model, samples[:count]))
    mels = features(model, samples)
    stages = Stages(model.encoder)
    out["encoded"] = encode(model, mels)
    out |= stages.arrays()
    for frames in EDGES:
        out[f"encoded.{frames}"] = encode(model, features(model, samples[:160 * frames]))
    if hasattr(model, "set_inference_prompt"):
        out |= prompted(model, mels)
        model.set_inference_prompt("auto")
    out |= decisions(model, mels)
    if model.encoder.att_context_style == "chunked_limited_with_rc":
        return out | windows(model, mels)
    for i, context in enumerate(model.encoder.att_context_size_all):
        if len(model.encoder.att_context_size_all) > 1:
            model.encoder.set_default_att_context_size(list(context))
            out[f"encoded.context{i}"] = encode(model, mels)
        style = model.encoder.att_context_style
        if style == "chunked_limited" or style == "regular" and model.encoder.conv_context_size[1] == context[1] == 0:
            out[f"stream.context{i}"] = stream(model, mels)
        if style == "regular" and model.encoder.conv_context_size[1] == 0 and min(context) >= 0:
            out[f"steps.context{i}"] = steps(model, mels)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", action="append", help="a file without its ending")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for path in sorted(options.folder.glob("*.nemo")):
        if options.only and path.stem not in options.only:
            continue
        with torch.no_grad():
            arrays = reference(path)
        save(options.folder / f"{path.stem}.reference.safetensors", arrays)
        print(path.stem, {name: value.shape for name, value in arrays.items()})


if __name__ == "__main__":
    main()
