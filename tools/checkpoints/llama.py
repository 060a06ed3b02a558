#!/usr/bin/env python3
"""Write seeded small language models of Llama's kind with transformers' classes, some as GGUF by ggml's package, and the logits
that transformers computes of each.

usage: llama.py DEST          needs numpy, torch, transformers 5.24, accelerate, gguf 0.19, safetensors

DEST/NAME/: config.json and model.safetensors, or NAME.gguf; and expected.safetensors with `ids` [T] and `logits` [T, V], of a GGUF
file those of the weights that transformers de-quantises from it.

DEST/chat_NAME/: the same with the vocabulary and template of a test of them, and expected.json with conversations, their ids, and the
greedy answers by transformers.
"""
import argparse
import json
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
ANSWER = 40  # tokens
TEXTS = pathlib.Path(__file__).resolve().parents[2] / "tests/data"
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


def add_vocabulary(writer, chat):
    tokenizer = json.loads((TEXTS / f"text/bpe_{chat.vocabulary}.json").read_text())
    tokens, types = dict((i, token) for token, i in tokenizer["model"]["vocab"].items()), {}
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = 3 if added["special"] else 4
    writer.add_tokenizer_pre(chat.pre)
    writer.add_token_list([tokens[i] for i in range(len(tokens))])
    writer.add_token_types([types.get(i, 1) for i in range(len(tokens))])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(next(i for i, token in tokens.items() if token == "<|im_end|>"))
    writer.add_chat_template((TEXTS / f"llama/chat/{chat.template}.jinja").read_text())


def write_gguf(model, kind, path, chat=None):
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
    if chat is not None:
        add_vocabulary(writer, chat)
    else:
        writer.add_token_list([chr(0x21 + i) for i in range(config.vocab_size)])
        writer.add_token_types([1] * config.vocab_size)
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


class Chat:
    """A model with a vocabulary of tests/data/text and a template of tests/data/llama/chat."""

    def __init__(self, name, config, vocabulary, template, pre=None):
        self.name, self.config, self.vocabulary, self.template, self.pre = name, config, vocabulary, template, pre

    def tokenizer(self):
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(TEXTS / f"text/bpe_{self.vocabulary}.json"))
        tokenizer.chat_template = (TEXTS / f"llama/chat/{self.template}.jinja").read_text()
        return tokenizer


def chats():
    common = COMMON | dict(vocab_size=708, max_position_embeddings=512, eos_token_id=None, pad_token_id=None, bos_token_id=None)
    yield Chat("chat_smollm", transformers.LlamaConfig(**common, tie_word_embeddings=True), "smollm", "smollm2", "smollm")
    yield Chat("chat_qwen2", transformers.Qwen2Config(**common, tie_word_embeddings=True), "qwen2", "qwen2_5")


CONVERSATIONS = [
    [("user", "Hello, who are you?")],
    [("system", "You answer in one short sentence, and never tell a lie."), ("user", "Why is the sky blue?")],
    [("system", "You answer in one short sentence, and never tell a lie."), ("user", "Why is the sky blue?"), ("assistant", "Air scatters blue light."),
     ("user", "And at 19:45, ‘dusk’, in Ångström?")],
]


def expected_chat(chat, model, to):
    tokenizer, rows = chat.tokenizer(), []
    for turns in CONVERSATIONS:
        messages = [{"role": role, "content": content} for role, content in turns]
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)
        with torch.no_grad():
            whole = model.generate(torch.tensor([ids]), max_new_tokens=ANSWER, do_sample=False, eos_token_id=None, pad_token_id=0)[0].tolist()
        answer = whole[len(ids):]
        rows.append({"messages": messages, "ids": ids, "answer": answer, "text": tokenizer.decode(answer, skip_special_tokens=True)})
    (to / "expected.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")


def write_chat(chat, dest):
    to = dest / chat.name
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    model = seeded(chat.config)
    if chat.pre is not None:
        write_gguf(model, Type.Q8_0, to / f"{chat.name}.gguf", chat)
        model = transformers.AutoModelForCausalLM.from_pretrained(to, gguf_file=f"{chat.name}.gguf", dtype=torch.float32).eval()
    else:
        with tempfile.TemporaryDirectory() as folder:
            model.to(torch.bfloat16).save_pretrained(folder)
            for file in ("config.json", "model.safetensors"):
                shutil.copyfile(pathlib.Path(folder) / file, to / file)
        shutil.copyfile(TEXTS / f"text/bpe_{chat.vocabulary}.json", to / "tokenizer.json")
        (to / "tokenizer_config.json").write_text(json.dumps({"chat_template": chat.tokenizer().chat_template}, indent=1) + "\n")
        (to / "generation_config.json").write_text(json.dumps({"do_sample": True, "eos_token_id": [702], "temperature": 0.5, "top_k": 7,
                                                               "top_p": 0.75, "repetition_penalty": 1.25}, indent=1) + "\n")
        model = transformers.AutoModelForCausalLM.from_pretrained(to, dtype=torch.float32).eval()
        model.generation_config = transformers.GenerationConfig()
    expected_chat(chat, model, to)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dest", type=pathlib.Path)
    dest = parser.parse_args().dest
    for chat in chats():
        write_chat(chat, dest)
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
