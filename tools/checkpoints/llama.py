#!/usr/bin/env python3
"""Write seeded small language models of Llama's kind with transformers' classes, some as GGUF by ggml's package, and the logits
that transformers computes of each.

usage: llama.py DEST          needs numpy, torch, transformers 5.24, accelerate, gguf 0.19, safetensors

DEST/NAME/: config.json and model.safetensors, or NAME.gguf; and expected.safetensors with `ids` [T] and `logits` [T, V], of a GGUF
file those of the weights that transformers de-quantises from it.
"""
import argparse
import pathlib
import shutil
import tempfile

import gguf
import numpy as np
import safetensors.numpy
import torch
import transformers
from gguf import GGMLQuantizationType as Type

TOKENS, VOCABULARY = 24, 64
COMMON = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
              max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0, rms_norm_eps=1e-5)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)


def models():
    """Name, configuration, and the type of the matrices in GGUF or None for safetensors."""
    yield "llama3", transformers.LlamaConfig(**COMMON, tie_word_embeddings=False, rope_parameters=LLAMA3), None
    yield "llama_biased", transformers.LlamaConfig(**COMMON, tie_word_embeddings=True, attention_bias=True), None
    yield "qwen2", transformers.Qwen2Config(**COMMON, tie_word_embeddings=True), None
    yield "qwen3", transformers.Qwen3Config(**COMMON, tie_word_embeddings=True, head_dim=32), None
    yield "smollm_gguf", transformers.LlamaConfig(**COMMON, tie_word_embeddings=True,
                                                  rope_parameters={"rope_type": "default", "rope_theta": 100000.0}), Type.Q4_1
    yield "qwen2_gguf", transformers.Qwen2Config(**COMMON, tie_word_embeddings=False), Type.Q8_0
    # transformers does not read the head's size out of GGUF: its own default.
    yield "qwen3_gguf", transformers.Qwen3Config(**COMMON | dict(num_attention_heads=2, num_key_value_heads=1), tie_word_embeddings=True,
                                                 head_dim=128), Type.Q5_0


def seeded(config):
    """Weights that are multiples of 2^-8 and so exact in bf16, with norms and biases that matter."""
    torch.manual_seed(27)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, values in model.named_parameters():
            size = 0.1 if values.ndim == 2 else 0.2
            values.copy_(torch.round((torch.randn(values.shape) * size + (1 if "norm" in name else 0)) * 256).clamp(-127, 384) / 256)
    return model


GGUF_PARTS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
              "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
GGUF_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(name):
    base, kind = name.rsplit(".", 1)
    if base in GGUF_NAMES:
        return f"{GGUF_NAMES[base]}.{kind}"
    _, _, layer, part = base.split(".", 3)
    return f"blk.{layer}.{GGUF_PARTS[part]}.{kind}"


def interleaved(values, heads):
    """Rows of queries or keys in the order of llama.cpp's converter, for pairs of neighbours."""
    return values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def write_gguf(model, kind, path):
    config, architecture = model.config, model.config.model_type
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    if architecture == "qwen3":
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    writer.add_tokenizer_model("gpt2")
    tokens = [chr(0x21 + i) for i in range(config.vocab_size)]
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges(["! !"])
    for name, values in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = values.numpy()
        if architecture == "llama" and name.split(".")[-2] in ("q_proj", "k_proj"):
            values = interleaved(values, config.num_attention_heads if ".q_proj." in name else config.num_key_value_heads)
        if values.ndim == 1:
            writer.add_tensor(gguf_name(name), values)
        else:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def expected(model, to):
    ids = np.random.default_rng(5).integers(3, VOCABULARY, TOKENS).astype(np.int32)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids).long()[None]).logits[0].float().numpy()
    safetensors.numpy.save_file({"ids": ids, "logits": np.ascontiguousarray(logits)}, to / "expected.safetensors")
    (to / "expected.safetensors").chmod(0o644)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dest", type=pathlib.Path)
    dest = parser.parse_args().dest
    for name, config, kind in models():
        to = dest / name
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir(parents=True)
        model = seeded(config)
        if kind is None:
            with tempfile.TemporaryDirectory() as folder:
                model.to(torch.bfloat16).save_pretrained(folder)
                for file in ("config.json", "model.safetensors"):
                    shutil.copyfile(pathlib.Path(folder) / file, to / file)
            model = transformers.AutoModelForCausalLM.from_pretrained(to, dtype=torch.float32).eval()
        else:
            write_gguf(model, kind, to / f"{name}.gguf")
            model = transformers.AutoModelForCausalLM.from_pretrained(to, gguf_file=f"{name}.gguf", dtype=torch.float32).eval()
        expected(model, to)


if __name__ == "__main__":
    main()
