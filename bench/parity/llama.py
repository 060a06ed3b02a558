#!/usr/bin/env python3
"""Compares a language model in a GGUF file with transformers, which de-quantises the same file: the logits of greedily chosen tokens
behind prompts, and the perplexity of a text.

  python3 bench/parity/llama.py MODEL.gguf --text prose.txt        # needs torch, transformers 5.24, accelerate, gguf, safetensors

Prints a line a precision; ends with status 1 where f32 has another token, or a logit that is farther off than 1e-4 of the largest.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors.numpy
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPTS = ["What is the capital of France?", "Write a short story about a lighthouse.", "Explain how a bicycle stays upright.",
           "List five fruits.", "Translate 'good morning' into Spanish.", "Who wrote Hamlet, and when?",
           "Give me a recipe for pancakes.", "What is 17 times 23?", "Describe the colour blue to a person who cannot see.",
           "Summarise the story of the tortoise and the hare."]
BOUND = 1e-4


def reference(model_path, tokens, text, windows, window):
    folder, file = str(model_path.parent), model_path.name
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32).eval()
    out = {}
    for n, prompt in enumerate(PROMPTS):
        ids = tokenizer.apply_chat_template([{"role": "user", "content": prompt}], add_generation_prompt=True, return_dict=False)
        out[f"prompt.{n}"] = np.array(ids, np.int32)
        chosen, logits, cache, following = [], [], None, torch.tensor([ids])
        with torch.no_grad():
            for _ in range(tokens):
                step = model(following, past_key_values=cache, use_cache=True)
                cache = step.past_key_values
                logits.append(step.logits[0, -1].numpy())
                chosen.append(int(step.logits[0, -1].argmax()))
                following = torch.tensor([chosen[-1:]])
        out[f"ids.{n}"], out[f"logits.{n}"] = np.array(chosen, np.int32), np.stack(logits).astype(np.float32)
        print(f"reference: prompt {n + 1} of {len(PROMPTS)}", file=sys.stderr)
    perplexity = None
    if text:
        ids = tokenizer(text.read_text(encoding="utf-8"), add_special_tokens=False).input_ids[:windows * window]
        rows = torch.tensor(ids[:len(ids) // window * window]).view(-1, window)
        with torch.no_grad():
            losses = [torch.nn.functional.cross_entropy(model(row[None]).logits[0, :-1], row[1:]).item() for row in rows]
        out["text"], perplexity = rows.numpy().astype(np.int32), float(np.exp(np.mean(losses)))
    return out, perplexity


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="file of GGUF")
    parser.add_argument("--tokens", type=int, default=200, help="behind each prompt (default 200)")
    parser.add_argument("--text", type=pathlib.Path, help="whose perplexity is compared")
    parser.add_argument("--windows", type=int, default=8, help="of the text (default 8)")
    parser.add_argument("--window", type=int, default=512, help="tokens of each (default 512)")
    parser.add_argument("--precisions", default="f32,bf16,int8,int4", help="with commas (default all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path, help="file of the reference, made if it is not there")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bench/llama_parity", help="the built program")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kept = args.keep or pathlib.Path(folder) / "reference.safetensors"
        if not kept.exists():
            tensors, perplexity = reference(args.model, args.tokens, args.text, args.windows, args.window)
            safetensors.numpy.save_file(tensors, kept, metadata={"perplexity": str(perplexity)})
        with safetensors.safe_open(kept, "np") as file:
            print(f"transformers: perplexity {file.metadata()['perplexity']}")
        status = 0
        for precision in args.precisions.split(","):
            done = subprocess.run([args.program, args.model, precision, str(args.threads), kept], capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(done.stderr.strip())
            row = json.loads(done.stdout)
            print(f"{precision}: {row['same_tokens']} of {row['tokens']} tokens the same, {row['same_prompts']} of {row['prompts']} prompts, "
                  f"worst logit {row['worst_relative']:.2g} of the largest, perplexity {row['perplexity']:.4f}", flush=True)
            if precision == "f32" and (row["same_tokens"] < row["tokens"] or row["worst_relative"] > BOUND):
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
