#!/usr/bin/env python3
"""What the race of Pocket TTS (pocket_tts.py) runs in an interpreter that has the maker's package.

  pocket_peer.py speak FOLDER THREADS QUANTIZE   the package as a racer; ptts_worker/src/main.rs has the commands.
                                                 THREADS of torch; 0: what the package sets (one, and two of Python)
  pocket_peer.py prepare FOLDER OUT              a checkpoint as the Rust port wants it
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time

# Python puts this folder first, where pocket_tts.py is not the package.
sys.path = [p for p in sys.path if pathlib.Path(p or ".").resolve() != pathlib.Path(__file__).resolve().parent]

TOKENS, VOICE_FRAMES = 41, 125
# Cut to the wanted number of tokens; no full stop in it, so that it stays one chunk.
WORDS = ("it was a fine morning in the spring and she walked along the river to the old house where her sister had lived "
         "before the war with a dog and two cats and a very small garden full of roses and beans").split()


# ---- the maker's Python package, in a child process ------------------------------------------------------------------


def speak(folder: str, threads: int, quantize: bool) -> None:
    """Answers each line of standard input with one line of JSON: the commands are those of ptts_worker/src/main.rs."""
    start = time.perf_counter()
    import copy
    import logging

    import torch

    logging.disable(logging.WARNING)
    import pocket_tts.quantization
    from pocket_tts import TTSModel
    from pocket_tts.modules.stateful_module import increment_steps, init_states

    # torchao, where it is installed, is slower than f32 here; a plain install has torch's own kernels (FBGEMM).
    pocket_tts.quantization._get_backend = lambda: "torch.ao"
    if threads:
        torch.set_num_threads(threads)
    now = lambda: time.perf_counter()  # noqa: E731
    say = lambda **fields: print(json.dumps(fields), flush=True)  # noqa: E731
    os.chdir(folder)
    imported = now()
    model = TTSModel.load_model(config="config.yaml", eos_threshold=1e9, quantize=quantize)
    model.eval()
    say(load_ms=1e3 * (now() - imported), import_ms=1e3 * (imported - start),
        version=f"pocket-tts 4.0.1, torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}")
    prompt = torch.randn(1, VOICE_FRAMES, model.flow_lm.dim, generator=torch.Generator().manual_seed(7)) * 0.5

    def prepare_voice(conditioning):
        state = init_states(model.flow_lm, batch_size=1, sequence_length=conditioning.shape[1])
        model._run_flow_lm_and_increment_step(model_state=state, audio_conditioning=conditioning)
        return state

    def say_text(text: str, frames: int) -> tuple[float, float]:
        model._estimate_max_gen_len = lambda tokens: frames
        start, first, samples = now(), None, 0
        for chunk in model.generate_audio_stream(voice, text):
            first = first or now() - start
            samples += chunk.shape[-1]
        assert samples == frames * 1920, samples
        return 1e3 * first, 1e3 * (now() - start)

    def stages(text: str, frames: int) -> dict:
        spent = [0.0]
        forward = model.flow_lm.flow_net.forward

        def timed(*args):
            start = now()
            result = forward(*args)
            spent[0] += 1e3 * (now() - start)
            return result

        state = copy.deepcopy(voice)
        tokens = model.flow_lm.conditioner.prepare(text)
        model._expand_kv_cache(state, sequence_length=VOICE_FRAMES + tokens.shape[1] + frames)
        start = now()
        model._run_flow_lm_and_increment_step(model_state=state, text_tokens=tokens)
        text_ms = 1e3 * (now() - start)
        steps = int(model.mimi.encoder_frame_rate / model.mimi.frame_rate)
        codec_state = init_states(model.mimi, batch_size=1, sequence_length=frames * steps)
        latent = torch.full((1, 1, model.flow_lm.ldim), float("nan"))
        flow_lm, head, codec = [], [], []
        model.flow_lm.flow_net.forward = timed
        for _ in range(frames):
            spent[0], start = 0.0, now()
            latent, end = model._run_flow_lm_and_increment_step(model_state=state, backbone_input_latents=latent)
            end.item()
            flow_lm.append(1e3 * (now() - start) - spent[0])
            head.append(spent[0])
            start = now()
            q = model.mimi.quantizer((latent * model.flow_lm.emb_std + model.flow_lm.emb_mean).transpose(-1, -2))
            q = model.mimi._to_encoder_framerate(q, codec_state)
            (q,) = model.mimi.decoder_transformer(q, codec_state)
            model.mimi.decoder(q, codec_state)
            increment_steps(model.mimi, codec_state, increment=steps)
            codec.append(1e3 * (now() - start))
        model.flow_lm.flow_net.forward = forward
        return dict(text=text_ms, flow_lm=flow_lm, head=head, codec=codec, tokens=tokens.shape[1])

    def clone(seconds: float) -> dict:
        sound = torch.randn(1, 1, int(seconds * 24000), generator=torch.Generator().manual_seed(8)) * 0.1
        encode = []
        for _ in range(4):
            start = now()
            model._encode_audio(sound)
            encode.append(1e3 * (now() - start))
        return dict(encode=encode[1:])

    def memory() -> dict:
        fields = dict(line.split(":", 1) for line in open("/proc/self/status") if line.startswith("Vm"))
        size = lambda key: int(fields[key].split()[0]) * 1024  # noqa: E731
        return dict(peak_rss_bytes=size("VmHWM"), rss_bytes=size("VmRSS"))

    with torch.no_grad():
        voice = prepare_voice(prompt)
        for line in sys.stdin:
            command, _, rest = line.strip().partition(" ")
            if command == "text":
                say(text=text_of(lambda text: model.flow_lm.conditioner.prepare(text).shape[1]))
            elif command == "prompt":
                start = now()
                prepare_voice(prompt)
                say(ms=1e3 * (now() - start))
            elif command == "first":
                say(ms=say_text(rest, 1)[0])
            elif command in ("run", "stages"):
                count, _, text = rest.partition(" ")
                if command == "stages":
                    say(**stages(text, int(count)))
                else:
                    first, total = say_text(text, int(count))
                    say(first_ms=first, ms=total)
            elif command == "clone":
                say(**clone(float(rest)))
            elif command == "rss":
                say(**memory())
    sys.stdout.flush()
    os._exit(0)   # the package's generation thread is not joined and may abort at the interpreter's end


def text_of(tokens_of) -> str:
    """A prepared sentence of exactly TOKENS tokens: its beginning from WORDS, and a word at the end that makes it fit."""
    for count in range(len(WORDS), 1, -1):
        for last in ("", *WORDS[:24]):
            text = " ".join([*WORDS[:count], last]).strip().capitalize() + "."
            if tokens_of(text) == TOKENS:
                return text
    raise SystemExit(f"no text of {TOKENS} tokens can be made with this tokenizer")


# ---- what the Rust port needs of a checkpoint ------------------------------------------------------------------------


def prepare(folder: str, out: str) -> None:
    """Its own JSON configuration; weights without what it does not know; a voice of random rows.  Runs under PYTHON."""
    import shutil

    import torch
    import yaml
    from safetensors.torch import load_file, save_file

    source, target = pathlib.Path(folder), pathlib.Path(out)
    target.mkdir(parents=True, exist_ok=True)
    config = yaml.safe_load((source / "config.yaml").read_text(encoding="utf-8"))
    lm, codec = config["flow_lm"], config["mimi"]
    layers = lm["transformer"]
    seanet = codec.get("decoder_seanet") or codec["seanet"]
    decoder = codec.get("decoder_transformer") or codec["transformer"]
    flow_lm = dict(d_model=layers["d_model"], num_heads=layers["num_heads"], num_layers=layers["num_layers"],
                   dim_feedforward=layers.get("dim_feedforward") or layers["d_model"] * layers["hidden_scale"],
                   max_period=10000.0, n_bins=lm["lookup_table"]["n_bins"], lut_dim=lm["lookup_table"]["dim"],
                   flow_dim=lm["flow"]["dim"], flow_depth=lm["flow"]["depth"], ldim=codec["quantizer"]["dimension"],
                   gelu="tanh", flow_type=lm["flow"].get("type", "lsd"))
    flow_lm |= {key: value for key, value in (("z_dim", lm.get("z_dim")), ("attn_dim", layers.get("attn_dim")),
                                              ("num_kv_heads", layers.get("num_kv_heads"))) if value}
    mimi = dict(channels=1, sample_rate=24000, frame_rate=12.5, dimension=seanet["dimension"], quantizer_dimension=32,
                quantizer_output_dimension=codec["quantizer"]["output_dimension"], n_filters=seanet["n_filters"],
                n_residual_layers=1, ratios=seanet["ratios"], kernel_size=seanet["kernel_size"],
                last_kernel_size=seanet["last_kernel_size"], residual_kernel_size=seanet["residual_kernel_size"],
                dilation_base=2, compress=2, transformer_d_model=decoder["d_model"],
                transformer_num_heads=decoder["num_heads"], transformer_num_layers=decoder["num_layers"],
                transformer_layer_scale=0.01, transformer_context=decoder["context"], transformer_max_period=10000.0,
                transformer_dim_feedforward=decoder["dim_feedforward"], inner_dim=codec["inner_dim"], gelu="tanh")
    (target / "config.json").write_text(json.dumps(dict(flow_lm=flow_lm, mimi=mimi, lsd_decode_steps=1,
                                                        eos_threshold=1e9, model_id=None)))
    weights = load_file(source / "model.safetensors")
    weights.pop("flow_lm.bos_before_voice", None)
    if codec.get("decoder_seanet"):   # it knows one codec a checkpoint, so the small models cannot clone
        weights = {name: value for name, value in weights.items()
                   if not name.startswith(("mimi.encoder", "mimi.downsample", "flow_lm.speaker_proj"))}
    fold = weights.pop("flow_lm.conditioner.proj.weight", None)   # nor a low-rank table
    if fold is not None:
        table = weights["flow_lm.conditioner.embed.weight"].float() @ fold.float().T
        weights["flow_lm.conditioner.embed.weight"] = table.bfloat16()
    save_file(weights, target / "model.safetensors")
    rows = torch.randn(1, VOICE_FRAMES, layers["d_model"], generator=torch.Generator().manual_seed(7)) * 0.5
    save_file({"emb": rows}, target / "voice.safetensors")
    shutil.copy(source.parent / "tokenizer.json", target)


def main() -> int:
    if sys.argv[1:2] == ["speak"]:
        speak(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
    elif sys.argv[1:2] == ["prepare"]:
        prepare(sys.argv[2], sys.argv[3])
    else:
        raise SystemExit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
