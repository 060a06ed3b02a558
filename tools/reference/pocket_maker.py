"""The maker's package (pip pocket-tts 4.0.1) on a checkpoint, with the noise given and every stage listened to."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import sys
import threading

# One code path on every x86 processor, so that the same script gives the same bytes there; before torch is loaded.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "default")
os.environ.setdefault("MKL_CBWR", "COMPATIBLE")

import numpy as np  # noqa: E402
import torch  # noqa: E402

_PATH = sys.path
# Not our own scripts of that name.
sys.path = [folder for folder in _PATH if not (pathlib.Path(folder) / "pocket_tts.py").is_file()]
try:
    from pocket_tts import TTSModel
    from pocket_tts.data import audio  # noqa: F401  for the other scripts, which cannot import it by its name
    from pocket_tts.data.audio_utils import convert_audio, end_on_pause  # noqa: F401
    from pocket_tts.models import text_chunking  # noqa: F401
    from pocket_tts.models.model_state import export_model_state  # noqa: F401
    from pocket_tts.modules import text_conditioner  # noqa: F401
    from pocket_tts.modules.stateful_module import increment_steps, init_states  # noqa: F401
    from pocket_tts.utils.config import CONFIGS_DIR, Config  # noqa: F401
except ImportError as error:
    raise SystemExit(f"the maker's package is missing ({error}): docs/pocket_tts.md says how to install it") from error
finally:
    sys.path = _PATH

torch.backends.mkldnn.enabled = False
torch.use_deterministic_algorithms(True)
logging.disable(logging.WARNING)
torch.set_grad_enabled(False)


def array(x: torch.Tensor) -> np.ndarray:
    return x.detach().to(torch.float32).numpy().copy()


def columns(x: torch.Tensor) -> np.ndarray:
    """[1, C, T] as [T, C]."""
    return array(x[0].T)


class Noise:
    """Stands in for the normal fill of the package: rows of `values` for generation steps, zeros for prompts."""

    def __init__(self, model):
        self.values, self.used, self.stepping = np.zeros((0, model.flow_lm.ldim), np.float32), 0, False
        run = model._run_flow_lm_and_increment_step

        def step(*args, **kwargs):
            self.stepping = kwargs.get("backbone_input_latents") is not None
            normal, torch.nn.init.normal_ = torch.nn.init.normal_, self._fill
            try:
                return run(*args, **kwargs)
            finally:
                torch.nn.init.normal_ = normal

        model._run_flow_lm_and_increment_step = step

    def give(self, values: np.ndarray) -> None:
        self.values, self.used = values, 0

    def _fill(self, tensor: torch.Tensor, mean: float = 0.0, std: float = 1.0) -> torch.Tensor:
        del mean, std
        if not self.stepping:
            return tensor.zero_()
        self.used += 1
        return tensor.copy_(torch.from_numpy(self.values[self.used - 1]).view(tensor.shape))


class Listener:
    """Collects outputs of modules under names; `with listener:` removes the hooks again."""

    def __init__(self):
        self.seen: dict[str, list[np.ndarray]] = {}
        self._hooks = []

    def after(self, module: torch.nn.Module, name: str, pick=array) -> None:
        self._hooks.append(module.register_forward_hook(
            lambda _m, _i, out: self.seen.setdefault(name, []).append(pick(out))))

    def before(self, module: torch.nn.Module, name: str, pick=array) -> None:
        self._hooks.append(module.register_forward_pre_hook(
            lambda _m, inputs: self.seen.setdefault(name, []).append(pick(inputs[0]))))

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_) -> None:
        for hook in self._hooks:
            hook.remove()

    def joined(self, name: str) -> np.ndarray:
        return np.concatenate(self.seen[name])


def load(folder: pathlib.Path, **options):
    """The model of a folder with config.yaml; relative paths in it are the folder's.  Names must match exactly."""
    before = pathlib.Path.cwd()
    os.chdir(folder)
    try:
        model = TTSModel.load_model(config="config.yaml", **options)
    finally:
        os.chdir(before)
    model.max_decoder_frames_per_call = 1   # else the blocks, and with them the rounding, depend on the threads' timing
    return model.eval()


def speak(model, *args, **kwargs) -> np.ndarray:
    """generate_audio, and the end of its threads: one that is left behind can abort the interpreter's exit."""
    sound = model.generate_audio(*args, **kwargs).numpy()
    for thread in threading.enumerate():
        if thread.daemon:
            thread.join()
    return sound


def text_options(model) -> dict:
    names = ("pad_with_spaces_for_short_inputs", "remove_semicolons", "append_terminal_punctuation",
             "capitalize_first_letter", "replace_characters")
    return {name: getattr(model, name) for name in names}


@contextlib.contextmanager
def erf_gelu(wanted: bool):
    """GELU as version 2.1.0 had it."""
    gelu = torch.nn.functional.gelu
    if wanted:
        torch.nn.functional.gelu = lambda x, approximate="none": gelu(x)
    try:
        yield
    finally:
        torch.nn.functional.gelu = gelu
