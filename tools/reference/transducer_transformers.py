#!/usr/bin/env python3
"""What transformers' own classes compute from the checkpoints of tools/checkpoints/transducer_transformers.py.

Writes DIR/NAME/reference.safetensors: features, what goes into the encoder's blocks and comes out of them, greedy
labels; of streaming models the frames of each look-ahead, chunk by chunk with transformers' caches.
tests/data/transducer/README.md says what each array is.

  python3 tools/reference/transducer_transformers.py tests/data/transducer/transformers
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402

transformers.logging.set_verbosity_error()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from reference.container import save  # noqa: E402
from reference.transducer import noise  # noqa: E402

SAMPLES = 20800                   # 130 frames of features
STREAM_SAMPLES = 64000            # 400


def features(extractor, samples: torch.Tensor) -> torch.Tensor:
    out = extractor(samples.numpy(), sampling_rate=16000, return_tensors="pt")
    return out["input_features"][:, out["attention_mask"][0].bool()]


def encode(model, mels: torch.Tensor, prompt: int | None, **more):
    """What the encoder gives for features [1, F, mels], and the frames [T, d] that the joint network's projection reads: with a
    prompt those of the model's own method, as it passes them on."""
    if prompt is None:
        out = model.encoder(mels, **more)
        return out, out.last_hidden_state[0]
    seen = []
    handle = model.prompt_projector.register_forward_hook(lambda _, __, frames: seen.append(frames[0]))
    out = model.get_audio_features(mels, prompt_ids=torch.tensor([prompt]), **more)
    handle.remove()
    return out, seen[0]


def stream(model, mels: torch.Tensor, prompt: int | None, ahead: int) -> np.ndarray:
    """Chunks of 1 + 8 R frames of features, then 8 + 8 R; what is left over at the end is not run."""
    keys, padding, rows, at = None, None, [], 0
    while at + (size := 8 * ahead + (8 if at else 1)) <= mels.shape[1]:
        out, frames = encode(model, mels[:, at:at + size], prompt, num_lookahead_tokens=ahead, use_cache=True,
                             past_key_values=keys, padding_cache=padding)
        keys, padding, at = out.past_key_values, out.padding_cache, at + size
        rows.append(frames)
    return torch.cat(rows).numpy()


def encoded(model, mels: torch.Tensor) -> dict[str, np.ndarray]:
    seen = {}

    def keep(name):
        def hook(_, __, out) -> None:
            seen[name] = (out[0] if isinstance(out, tuple) else out).detach()[0].clone()
        return hook

    handles = [model.encoder.subsampling.register_forward_hook(keep("stage.pre"))]
    handles += [layer.register_forward_hook(keep(f"stage.layer{i}")) for i, layer in enumerate(model.encoder.layers)]
    model.encoder(mels)
    for handle in handles:
        handle.remove()
    seen["stage.pre"] *= model.encoder.input_scale
    return {name: value.numpy() for name, value in seen.items()}


def labels(model, mels: torch.Tensor, **more) -> np.ndarray:
    mask = torch.ones(mels.shape[:2], dtype=torch.long)
    blank, ctc = model.config.vocab_size - 1, model.config.model_type == "parakeet_ctc"
    # Its own limit counts blanks as labels, and cuts what has many of both.
    found = model.generate(input_features=mels, attention_mask=mask, **more,
                           **({} if ctc else dict(decoder_start_token_id=blank, max_new_tokens=4000)))
    found = getattr(found, "sequences", found)[0].tolist()
    if ctc:
        found = [label for i, label in enumerate(found) if i == 0 or label != found[i - 1]]
    return np.asarray([label for label in found if label != blank], np.int32)


def reference(folder: pathlib.Path) -> dict[str, np.ndarray]:
    kind = transformers.AutoConfig.from_pretrained(folder).architectures[0]
    model = getattr(transformers, kind).from_pretrained(folder, dtype=torch.float32).eval()
    extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
    mels = features(extractor, noise(SAMPLES))
    out = {"mel.4000": features(extractor, noise(4000))[0].numpy()}
    out |= encoded(model, mels) | {"tokens": labels(model, mels)}
    if kind.startswith("Nemotron"):
        long = features(extractor, noise(STREAM_SAMPLES))
        processor = transformers.AutoProcessor.from_pretrained(folder)
        languages = getattr(processor, "prompt_dictionary", {})
        usual = model.config.default_prompt_id if languages else None
        for name, prompt in languages.items():
            out[f"prompted.{name}"] = encode(model, mels, prompt, use_cache=False)[1].numpy()
            out[f"tokens.{name}"] = labels(model, mels, prompt_ids=torch.tensor([prompt]))
        for ahead in processor.supported_num_lookahead_tokens:
            out[f"stream.{ahead}"] = stream(model, long, usual, ahead)
            all_at_once = encode(model, long, usual, num_lookahead_tokens=ahead, use_cache=False)[1].numpy()
            # The maker's steps must be its own whole, or they would be no oracle.
            count = len(out[f"stream.{ahead}"]) // (ahead + 1) * (ahead + 1)
            assert np.abs(all_at_once[:count] - out[f"stream.{ahead}"][:count]).max() < 1e-4
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for path in sorted(options.folder.iterdir()):
        with torch.no_grad():
            arrays = reference(path)
        save(path / "reference.safetensors", arrays)
        print(path.name, {name: value.shape for name, value in arrays.items()}, arrays["tokens"].tolist())


if __name__ == "__main__":
    main()
