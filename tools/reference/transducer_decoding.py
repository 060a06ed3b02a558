#!/usr/bin/env python3
"""Decoding of small random transducers by the maker's own classes: prediction network, joint, greedy, beam, boosting.

usage: transducer_decoding.py DEST          needs torch, nemo_toolkit 3.0 and numpy

Writes a folder DEST/NAME for each case: config.json and model.safetensors, a checkpoint without an encoder, and
reference.safetensors, the frames that an encoder might have given and what the maker's classes make of them.  Arrays,
with T frames of d, U labels found:
  frames [T, d] · pred.labels, pred.g · joint.logits (of frame 0 behind each of pred.labels)
  greedy.labels, .frames, .durations, .tsallis, .max_prob [U] · forced.* the same with at most two labels a frame
  boosted.labels, .frames · phrases (label ids, each phrase ended by -1)
  beam.N.labels, .frames and beam.scores: the hypotheses of maes, the best first, blank in front taken off
  ctc.log_probs [T, V + 1]
"""
from __future__ import annotations

import argparse
import json
import pathlib
from types import SimpleNamespace

import numpy as np
import torch
from nemo.collections.asr.modules.rnnt import RNNTDecoder, RNNTJoint
from nemo.collections.asr.parts.context_biasing.boosting_graph_batched import GPUBoostingTreeModel
from nemo.collections.asr.parts.context_biasing.context_graph_universal import ContextGraph
from nemo.collections.asr.parts.submodules.rnnt_beam_decoding import BeamRNNTInfer
from nemo.collections.asr.parts.submodules.tdt_beam_decoding import BeamTDTInfer
from nemo.collections.asr.parts.submodules.transducer_decoding.rnnt_label_looping import (
    GreedyBatchedRNNTLabelLoopingComputer)
from nemo.collections.asr.parts.submodules.transducer_decoding.tdt_label_looping import (
    GreedyBatchedTDTLabelLoopingComputer)

import container

FRAMES, WIDTH, BLANKS = 60, 32, 0.7
CASES = {
    "rnnt": SimpleNamespace(seed=1, labels=20, hidden=16, joint=24, layers=1, durations=[], ctc=True),
    "rnnt_2": SimpleNamespace(seed=2, labels=33, hidden=20, joint=16, layers=2, durations=[], ctc=False),
    "tdt": SimpleNamespace(seed=3, labels=24, hidden=16, joint=16, layers=1, durations=[0, 1, 2, 3, 4], ctc=False),
    "tdt_2": SimpleNamespace(seed=4, labels=30, hidden=20, joint=24, layers=2, durations=[0, 1, 2, 4, 8], ctc=False),
}
WEIGHTS = ("decoder.", "joint.", "ctc_decoder.")


def config(case):
    labels = [("\u2581" if i % 3 == 0 else "") + chr(ord("a") + i % 26) + str(i // 26) for i in range(case.labels)]
    target = "EncDecHybridRNNTCTCBPEModel" if case.ctc else "EncDecRNNTBPEModel"
    return {"target": target, "preprocessor": {"features": 16},
            "encoder": {"feat_in": 16, "n_layers": 1, "d_model": WIDTH, "n_heads": 4},
            "decoder": {"prednet": {"pred_hidden": case.hidden, "pred_rnn_layers": case.layers}},
            "joint": {"num_classes": case.labels, "num_extra_outputs": len(case.durations), "vocabulary": labels,
                      "jointnet": {"joint_hidden": case.joint, "activation": "relu"}},
            "model_defaults": {"tdt_durations": case.durations}}


def make(case):
    torch.manual_seed(case.seed)
    decoder = RNNTDecoder(prednet={"pred_hidden": case.hidden, "pred_rnn_layers": case.layers, "dropout": 0.0},
                          vocab_size=case.labels, blank_as_pad=True).eval()
    joint = RNNTJoint(jointnet={"encoder_hidden": WIDTH, "pred_hidden": case.hidden, "joint_hidden": case.joint,
                                "activation": "relu", "dropout": 0.1 if case.layers > 1 else 0.0},
                      num_classes=case.labels, num_extra_outputs=len(case.durations), log_softmax=False).eval()
    with torch.no_grad():
        for module in (decoder, joint):
            for name, tensor in module.named_parameters():
                # What was said must count beside what is heard, or one label goes on until it is forced to end.
                gain = 3.0 if "lstm" in name or "pred" in name else 1.6
                scale = 0.3 if "bias" in name else 1.5 if "embed" in name else gain / tensor.shape[-1] ** 0.5
                tensor.normal_(0.0, scale)
        decoder.prediction["embed"].weight[case.labels] = 0.0
    return decoder, joint


def computer(case, decoder, joint, symbols=10, measure=None, **more):
    if measure:
        method = {"name": "max_prob", "alpha": 1.0} if measure == "max_prob" else {"name": "entropy"}
        more |= {"preserve_step_confidence": True, "exclude_blank_from_confidence": True, "confidence_method_cfg": method}
    common = dict(decoder=decoder, joint=joint, blank_index=case.labels, max_symbols_per_step=symbols,
                  allow_cuda_graphs=False, **more)
    if case.durations:
        return GreedyBatchedTDTLabelLoopingComputer(durations=case.durations, include_duration=True, **common)
    return GreedyBatchedRNNTLabelLoopingComputer(**common)


def greedy(case, decoder, joint, frames, **options):
    hyps, _ = computer(case, decoder, joint, **options).torch_impl(frames[None], torch.tensor([len(frames)]))
    count = int(hyps.current_lengths[0])
    out = {"labels": hyps.transcript[0, :count], "frames": hyps.timestamps[0, :count]}
    if case.durations:
        out["durations"] = hyps.token_durations[0, :count]
    if hyps.step_confidence is not None:
        out["confidence"] = hyps.step_confidence[0, :count]
    return {name: value.numpy() for name, value in out.items()}


def set_blank_bias(case, decoder, joint, frames):
    """Moves the blank's bias until about the wanted share of evaluations is blank.  Roughly: where the share turns, the
    blank and a label are alike."""
    head = joint.joint_net[-1]
    low, high = -20.0, 20.0
    for _ in range(10):
        head.bias[case.labels] = (low + high) / 2
        found = greedy(case, decoder, joint, frames)
        used = FRAMES - (found["durations"].sum() if case.durations else 0)
        blanks = max(used, 0) / (max(used, 0) + len(found["labels"]))
        low, high = ((low + high) / 2, high) if blanks < BLANKS else (low, (low + high) / 2)


def stages(case, decoder, joint, frames):
    labels = [3, 0, case.labels - 1, 3]
    state, outputs = None, []
    g, state, *_ = decoder.predict(torch.tensor([[case.labels]]), None, add_sos=False, batch_size=1)
    logits = [joint.joint(frames[None, :1], g)[0, 0, 0]]
    outputs.append(g[0, 0])
    for label in labels:
        g, state, *_ = decoder.predict(torch.tensor([[label]]), state, add_sos=False, batch_size=1)
        outputs.append(g[0, 0])
        logits.append(joint.joint(frames[None, :1], g)[0, 0, 0])
    return {"pred.labels": np.array(labels), "pred.g": torch.stack(outputs).numpy(),
            "joint.logits": torch.stack(logits).numpy()}


def boosted(case, decoder, joint, frames, labels):
    """Favours phrases of labels that almost came, one of them with a common beginning."""
    rng = np.random.default_rng(case.seed)
    phrases = [[int(x) for x in rng.integers(0, case.labels, n)] for n in (3, 2, 4, 1)]
    phrases.append(phrases[0][:2] + [int(labels[0])])
    phrases.append([int(x) for x in labels[3:5]] + phrases[2][:2])
    graph = ContextGraph(context_score=1.5, depth_scaling=2.0)
    graph.build(token_ids=phrases, phrases=[str(p) for p in phrases], scores=[0.0] * len(phrases))
    tree = GPUBoostingTreeModel.from_context_graph(graph, vocab_size=case.labels, use_triton=False, uniform_weights=False)
    found = greedy(case, decoder, joint, frames, fusion_models=[tree], fusion_models_alpha=[1.5])
    flat = [x for phrase in phrases for x in [*phrase, -1]]
    return {"phrases": np.array(flat), "boosted.labels": found["labels"], "boosted.frames": found["frames"]}


def beam(case, decoder, joint, frames):
    common = dict(decoder_model=decoder, joint_model=joint, beam_size=4, search_type="maes", score_norm=True,
                  return_best_hypothesis=False, maes_num_steps=2, maes_prefix_alpha=1, maes_expansion_gamma=2.3,
                  maes_expansion_beta=2)
    search = BeamTDTInfer(durations=case.durations, **common) if case.durations else BeamRNNTInfer(**common)
    encoded = frames[None].transpose(1, 2)
    result = search(encoder_output=encoded, encoded_lengths=torch.tensor([len(frames)]))[0][0]
    hyps = result.n_best_hypotheses
    out = {"beam.scores": np.array([float(h.score) for h in hyps], np.float32)}
    for i, hyp in enumerate(hyps):
        out[f"beam.{i}.labels"] = np.array([int(x) for x in hyp.y_sequence])
        out[f"beam.{i}.frames"] = np.array([int(x) for x in hyp.timestamp])
    return out


def run(name, case, dest):
    decoder, joint = make(case)
    frames = torch.randn(FRAMES, WIDTH, generator=torch.Generator().manual_seed(case.seed + 100)) * 1.5
    with torch.no_grad():
        set_blank_bias(case, decoder, joint, frames)
        arrays = {f"decoder.{k}": v.numpy() for k, v in decoder.state_dict().items()}
        arrays |= {f"joint.{k}": v.numpy() for k, v in joint.state_dict().items() if not k.startswith("_")}
        arrays |= {"frames": frames.numpy()} | stages(case, decoder, joint, frames)
        found = greedy(case, decoder, joint, frames, measure="tsallis")
        arrays |= {f"greedy.{k}": v for k, v in found.items() if k != "confidence"}
        arrays["greedy.tsallis"] = found["confidence"]
        arrays["greedy.max_prob"] = greedy(case, decoder, joint, frames, measure="max_prob")["confidence"]
        forced = greedy(case, decoder, joint, frames, symbols=2)
        arrays |= {f"forced.{k}": v for k, v in forced.items()}
        arrays |= boosted(case, decoder, joint, frames, found["labels"])
        arrays |= beam(case, decoder, joint, frames)
        if case.ctc:
            torch.manual_seed(case.seed + 200)
            head = torch.nn.Conv1d(WIDTH, case.labels + 1, 1)
            arrays["ctc_decoder.decoder_layers.0.weight"] = head.weight.numpy()
            arrays["ctc_decoder.decoder_layers.0.bias"] = head.bias.numpy()
            arrays["ctc.log_probs"] = torch.log_softmax(head(frames.T[None])[0].T, -1).numpy()
    folder = dest / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(case), ensure_ascii=False, indent=1) + "\n")
    weights = {k: v for k, v in arrays.items() if k.startswith(WEIGHTS) and k != "joint.logits"}
    container.save(folder / "model.safetensors", weights)
    container.save(folder / "reference.safetensors", {k: v for k, v in arrays.items() if k not in weights})
    print(name, "labels", len(found["labels"]), "durations", sorted(set(found.get("durations", []))), "forced",
          len(forced["labels"]), "boosted", len(arrays["boosted.labels"]), "beams",
          [len(arrays[f"beam.{i}.labels"]) for i in range(len(arrays["beam.scores"]))], "differ",
          arrays["boosted.labels"].tolist() != found["labels"].tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dest", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    for name, case in CASES.items():
        run(name, case, options.dest)


if __name__ == "__main__":
    main()
