#!/usr/bin/env python3
"""Writes the weights of one .nemo file as torch saves them elsewhere, with what describes them beside them.

  OUT/lightning.ckpt      under `state_dict`, beside what a trainer of Lightning keeps with it: an optimiser's tensors,
                          counters, settings
  OUT/plain.pt            the dictionary alone
  OUT/model_config.yaml, OUT/tokenizer.model

  python3 tools/checkpoints/transducer_torch.py tests/data/transducer/small.nemo --out tests/data/transducer/torch
"""

from __future__ import annotations

import argparse
import collections
import io
import pathlib
import tarfile

import torch


def members(path: pathlib.Path) -> dict[str, bytes]:
    with tarfile.open(path, "r:*") as tar:
        return {info.name.removeprefix("./"): tar.extractfile(info).read() for info in tar if info.isfile()}


def lightning(weights: dict[str, torch.Tensor]) -> dict:
    """As Trainer.save_checkpoint() nests it, behind one step of Adam for the joint network's first bias."""
    name = "joint.enc.bias"
    parameter = torch.nn.Parameter(weights[name].float())
    optimiser = torch.optim.AdamW([parameter], lr=1e-3)
    parameter.sum().backward()
    optimiser.step()
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 10)
    progress = dict(total=dict(ready=1, completed=1), current=dict(ready=1, completed=1), is_last_batch=True)
    return {
        "epoch": 3, "global_step": 1200, "pytorch-lightning_version": "2.4.0", "state_dict": weights,
        "loops": dict(fit_loop=dict(state_dict={}, epoch_progress=progress), validate_loop=None),
        "callbacks": {"ModelCheckpoint{'monitor': 'val_wer'}": dict(monitor="val_wer", best_model_score=torch.tensor(0.25),
                                                                    best_k_models={}, kth_value=torch.tensor([0.5]))},
        "optimizer_states": [optimiser.state_dict()], "lr_schedulers": [schedule.state_dict()],
        "hparams_name": "cfg", "hyper_parameters": dict(cfg=dict(train_ds=dict(batch_size=16, shuffle=True), lr=1e-3)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(1)
    found = members(options.archive)
    weights = torch.load(io.BytesIO(found["model_weights.ckpt"]), weights_only=True)
    options.out.mkdir(parents=True, exist_ok=True)
    torch.save(lightning(weights), options.out / "lightning.ckpt")
    torch.save(collections.OrderedDict((k, torch.nn.Parameter(v, requires_grad=False)) for k, v in weights.items()),
               options.out / "plain.pt")
    (options.out / "model_config.yaml").write_bytes(found["model_config.yaml"])
    tokenizer = next(content for name, content in found.items() if name.endswith("tokenizer.model"))
    (options.out / "tokenizer.model").write_bytes(tokenizer)


if __name__ == "__main__":
    main()
