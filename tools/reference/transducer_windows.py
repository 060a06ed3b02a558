#!/usr/bin/env python3
"""What the maker's buffered streaming finds with the checkpoints of tools/checkpoints/transducer.py.

Follows the loop of the maker's speech_to_text_streaming_infer_rnnt.py (NVIDIA-NeMo/Speech, 0362829) with its own buffer
and decoders: windows of frames before, in and behind each chunk, each a sound of its own for features and encoder, of
which the chunk's frames are decoded and the decoder's state goes on.  Models with chunks and frames behind them get the
window as their attention's context, as with the script's att_context_size_as_chunk.  Writes
DIR/windows.reference.safetensors: of each family and each window L.C.R in frames `NAME.L.C.R.tokens` and `.frames`, of
TDT `.durations` too, and `.encoded`, the chunks' frames one behind the other, for the first SAMPLES of the noise.

  python3 tools/reference/transducer_windows.py tests/data/transducer
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np
import torch

import transducer as reference

SAMPLES = 1280 * 61
# The maker's buffer takes no window without frames behind it.
ANY = ((10, 5, 5), (0, 3, 1), (25, 4, 2), (125, 25, 25))
# Of the model's menu: frames before them that are whole chunks, and that are not, as are the published 70 before 13.
MENU = ((6, 2, 2), (6, 1, 1), (6, 3, 2), (5, 3, 2))
WINDOWS = {"tdt_1_1b": ANY, "rnnt_1_1b": ANY, "medium": ANY, "unified": MENU}


def frames_of_windows(model, sound: torch.Tensor, window: tuple[int, int, int]):
    """The chunk's frames [1, n, d] of one window after the other."""
    from nemo.collections.asr.parts.utils.streaming_utils import ContextSize, StreamingBatchedAudioBuffer
    factor = model.encoder.subsampling_factor * 160
    context = ContextSize(*(n * factor for n in window))
    if model.encoder.att_context_style == "chunked_limited_with_rc":
        model.encoder.set_default_att_context_size(list(window))
    buffer = StreamingBatchedAudioBuffer(1, context, sound.dtype, sound.device)
    left, right, rest = 0, min(context.chunk + context.right, len(sound)), len(sound)
    while left < len(sound):
        length, last = right - left, right >= len(sound)
        added = torch.tensor([rest if last else length])
        buffer.add_audio_batch_(sound[None, left:right], audio_lengths=added, is_last_chunk=last,
                                is_last_chunk_batch=torch.tensor([last]))
        out, _ = model(input_signal=buffer.samples, input_signal_length=buffer.context_size_batch.total())
        sizes = buffer.context_size.subsample(factor)
        yield out.transpose(1, 2)[:, sizes.left:sizes.left + sizes.chunk]
        rest -= length
        left, right = right, min(right + context.chunk, len(sound))


def found_in_windows(model, sound: torch.Tensor, window: tuple[int, int, int]) -> dict[str, np.ndarray]:
    from nemo.collections.asr.parts.utils.rnnt_utils import batched_hyps_to_hypotheses
    computer = model.decoding.decoding.decoding_computer
    state, found, encoded = None, None, []
    for frames in frames_of_windows(model, sound, window):
        more, *_, state = computer(x=frames, out_len=torch.tensor([frames.shape[1]]), prev_batched_state=state)
        found = found.merge_(more) or found if found is not None else more
        encoded.append(frames[0].numpy())
    hypothesis = batched_hyps_to_hypotheses(found, batch_size=1)[0]
    arrays = dict(tokens=hypothesis.y_sequence, frames=hypothesis.timestamp)
    if model.joint.num_extra_outputs:
        arrays["durations"] = hypothesis.token_duration
    numbers = {name: np.asarray([int(v) for v in values], np.int32) for name, values in arrays.items()}
    return numbers | {"encoded": np.concatenate(encoded)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    import nemo.collections.asr as nemo_asr
    torch.set_num_threads(1)
    sound, arrays = reference.noise(SAMPLES), {}
    for name, windows in WINDOWS.items():
        path = folder / f"{name}.nemo"
        model = nemo_asr.models.ASRModel.restore_from(str(path), map_location="cpu", strict=False).eval().float()
        model.preprocessor.featurizer.dither = 0.0
        reference.decode_all(model)
        for window in windows:
            with torch.inference_mode():
                found = found_in_windows(model, sound, window)
            arrays |= {".".join((name, *map(str, window), key)): value for key, value in found.items()}
            print(name, window, {key: value.shape for key, value in found.items()})
    reference.save(folder / "windows.reference.safetensors", arrays)


if __name__ == "__main__":
    main()
