#!/usr/bin/env python3
"""Writes the weights of one .nemo file as a training run of NeMo leaves them: what Lightning's own
Trainer.save_checkpoint() writes behind one step of the optimiser, with the configuration as OmegaConf keeps it.

  OUT/trained.ckpt        model_config.yaml and tokenizer.model stand beside it already (transducer_torch.py)

  python3 tools/checkpoints/transducer_lightning.py tests/data/transducer/small.nemo --out tests/data/transducer/torch

Needs nemo_toolkit[asr] 3.0.0 and lightning.
"""

from __future__ import annotations

import argparse
import pathlib

import lightning.pytorch
import nemo.collections.asr
import omegaconf
import torch

SCHEDULE = dict(name="CosineAnnealing", warmup_steps=3, min_lr=1e-6, max_steps=10)
OPTIMISER = dict(name="adamw", lr=1e-3, betas=[0.9, 0.98], weight_decay=0.0, sched=SCHEDULE)


def trained(archive: pathlib.Path) -> lightning.pytorch.Trainer:
    """A trainer behind one step for the joint's first bias, which leaves it as it was: its gradient is 0."""
    model = nemo.collections.asr.models.ASRModel.restore_from(str(archive), map_location="cpu", strict=False)
    best = lightning.pytorch.callbacks.ModelCheckpoint(monitor="val_wer")
    best.best_model_score = torch.tensor(0.25)
    trainer = lightning.pytorch.Trainer(accelerator="cpu", logger=False, callbacks=[best], max_steps=10)
    trainer.strategy.connect(model)
    model.set_trainer(trainer)
    with omegaconf.open_dict(model.cfg):
        model.cfg.optim = omegaconf.OmegaConf.create(OPTIMISER)
    model.requires_grad_(False)
    model.joint.enc.bias.requires_grad_(True)
    trainer.strategy.setup_optimizers(trainer)
    (model.joint.enc.bias.sum() * 0).backward()
    trainer.strategy.optimizers[0].step()
    return trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    trained(options.archive).save_checkpoint(options.out / "trained.ckpt")


if __name__ == "__main__":
    main()
