#!/usr/bin/env python3
"""Write seeded random checkpoints of Qwen3-TTS in the published form: small ones of every variant, or one at full size.

usage: qwen_tts.py small DEST            DEST/{custom_voice,base,voice_design}, and the codec beside them in DEST/speech_tokenizer
       qwen_tts.py 0.6b|1.7b DEST [base|custom_voice|voice_design]      the codec is DEST/speech_tokenizer

needs numpy, ml_dtypes and safetensors.  Names and shapes are those of the maker's classes (qwen-tts 0.1.1); reference/qwen_tts.py loads
them with these.  The small ones differ in form: custom_voice is one file of bf16, base two shards of it, voice_design, whose talker is
wider than its code predictor as in 1.7B, one file of f16.
"""
import argparse
import json
import pathlib

import ml_dtypes
import numpy as np
import safetensors.numpy

SEED = 28
DIALECTS = {"dylan": "beijing_dialect", "eric": "sichuan_dialect"}
SPEAKERS = {"serena": 3066, "vivian": 3065, "uncle_fu": 3010, "ryan": 3061, "aiden": 2861, "ono_anna": 2873, "sohee": 2864, "eric": 2875,
            "dylan": 2878}
LANGUAGES = {"chinese": 2055, "english": 2050, "german": 2053, "italian": 2070, "portuguese": 2071, "spanish": 2054, "japanese": 2058,
             "korean": 2064, "french": 2061, "russian": 2069, "beijing_dialect": 2074, "sichuan_dialect": 2062}
SPECIAL = {"im_start_token_id": "<|im_start|>", "im_end_token_id": "<|im_end|>", "tts_pad_token_id": "<tts_pad>",
           "tts_bos_token_id": "<tts_text_bos>", "tts_eos_token_id": "<tts_text_eod>"}


def transformer(hidden, mlp, layers, heads, key_heads, head, **more):
    return dict(hidden_size=hidden, intermediate_size=mlp, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=key_heads,
                head_dim=head, hidden_act="silu", **more)


def model_config(size, kind):
    small, wide = size == "small", size == "1.7b" or (size == "small" and kind == "voice_design")
    codes = 32 if small else 2048
    vocabulary = codes + 1024
    control = codes if small else 2148  # the first of the ids that are no codes
    hidden = (48 if wide else 32) if small else (2048 if wide else 1024)
    predictor = transformer(*((32, 64, 2, 4, 2, 16) if small else (1024, 3072, 5, 16, 8, 128)), model_type="qwen3_tts_talker_code_predictor",
                            vocab_size=codes, num_code_groups=16, rms_norm_eps=1e-6, rope_theta=1e6, max_position_embeddings=65536)
    languages = {name: control + 32 + i for i, name in enumerate(LANGUAGES)} if small else LANGUAGES
    speakers = {name: control + 64 + i for i, name in enumerate(SPEAKERS)} if small else SPEAKERS
    has_speakers = kind == "custom_voice"
    talker = transformer(
        *((hidden, 96, 2, 4, 2, 16) if small else (hidden, 3 * hidden, 28, 16, 8, 128)), model_type="qwen3_tts_talker", vocab_size=vocabulary,
        text_hidden_size=24 if small else 2048, text_vocab_size=352 if small else 151936, num_code_groups=16, rms_norm_eps=1e-6,
        rope_theta=1e6, rope_scaling=dict(rope_type="default", interleaved=True, mrope_section=[4, 2, 2] if small else [24, 20, 20]),
        max_position_embeddings=32768, attention_bias=False, codec_pad_id=control, codec_bos_id=control + 1, codec_eos_token_id=control + 2,
        codec_think_id=control + 6, codec_nothink_id=control + 7, codec_think_bos_id=control + 8, codec_think_eos_id=control + 9,
        codec_language_id=languages, spk_id=speakers if has_speakers else {},
        spk_is_dialect={name: DIALECTS.get(name, False) for name in SPEAKERS} if has_speakers else {}, position_id_per_seconds=13,
        code_predictor_config=predictor)
    special = 256 + len(merges())  # the ids behind the vocabulary
    ids = (*range(special, special + 5), 262) if small else (151644, 151645, 151671, 151672, 151673, 77091)
    config = dict(zip((*SPECIAL, "assistant_token_id"), ids)) | dict(
        architectures=["Qwen3TTSForConditionalGeneration"], model_type="qwen3_tts", tokenizer_type="qwen3_tts_tokenizer_12hz",
        tts_model_size="1b7" if wide else "0b6", tts_model_type=kind, talker_config=talker, transformers_version="4.57.3")
    if kind == "base":
        config["speaker_encoder_config"] = dict(enc_dim=hidden, sample_rate=24000)
        if small:
            config["speaker_encoder_config"] |= dict(enc_channels=[16, 16, 16, 16, 48], enc_attention_channels=8, enc_se_channels=8)
    return config


def codec_config(size):
    small = size == "small"
    codes = 32 if small else 2048
    decoder = transformer(*((32, 32, 2, 4, 4, 16) if small else (512, 1024, 8, 16, 16, 64)), codebook_size=codes, codebook_dim=16 if small else 512,
                          latent_dim=32 if small else 1024, rms_norm_eps=1e-5, rope_theta=10000, sliding_window=8 if small else 72,
                          layer_scale_initial_scale=0.01, max_position_embeddings=8000, attention_bias=False, num_quantizers=16,
                          num_semantic_quantizers=1, upsampling_ratios=[2, 2], upsample_rates=[8, 5, 4, 3], decoder_dim=32 if small else 1536)
    encoder = transformer(*((32, 32, 2, 2, 2, 16) if small else (512, 2048, 8, 8, 8, 64)), _frame_rate=12.5, sampling_rate=24000,
                          audio_channels=1, num_filters=2 if small else 64, kernel_size=7, residual_kernel_size=3, last_kernel_size=3,
                          num_residual_layers=1, dilation_growth_rate=2, compress=2, upsampling_ratios=[8, 6, 5, 4], norm_eps=1e-5,
                          rope_theta=10000.0, sliding_window=250, max_position_embeddings=8000, codebook_size=codes,
                          codebook_dim=8 if small else 256, vector_quantization_hidden_dimension=8 if small else 256,
                          num_quantizers=17 if small else 32, num_semantic_quantizers=1, use_causal_conv=True, pad_mode="constant",
                          use_conv_shortcut=False, trim_right_ratio=1.0, upsample_groups=32 if small else 512,
                          layer_scale_initial_scale=0.01, normalize=False) | dict(hidden_act="gelu")
    return dict(architectures=["Qwen3TTSTokenizerV2Model"], model_type="qwen3_tts_tokenizer_12hz", encoder_valid_num_quantizers=16,
                input_sample_rate=24000, output_sample_rate=24000, decode_upsample_rate=1920, encode_downsample_rate=1920,
                decoder_config=decoder, encoder_config=encoder)


def attention_shapes(prefix, c):
    queries, keys = c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
    yield from ((f"{prefix}.{name}_proj.weight", shape) for name, shape in (
        ("q", (queries, c["hidden_size"])), ("k", (keys, c["hidden_size"])), ("v", (keys, c["hidden_size"])), ("o", (c["hidden_size"], queries))))


def swiglu_shapes(prefix, c):
    wide, narrow = (c["intermediate_size"], c["hidden_size"]), (c["hidden_size"], c["intermediate_size"])
    yield from ((f"{prefix}.gate_proj.weight", wide), (f"{prefix}.up_proj.weight", wide), (f"{prefix}.down_proj.weight", narrow))


def decoder_layers(prefix, c):
    for i in range(c["num_hidden_layers"]):
        layer = f"{prefix}.layers.{i}"
        yield from ((f"{layer}.{name}.weight", (c["hidden_size"],)) for name in ("input_layernorm", "post_attention_layernorm"))
        yield from attention_shapes(f"{layer}.self_attn", c)
        yield from ((f"{layer}.self_attn.{name}_norm.weight", (c["head_dim"],)) for name in "qk")
        yield from swiglu_shapes(f"{layer}.mlp", c)
    yield f"{prefix}.norm.weight", (c["hidden_size"],)


def linear(prefix, out, channels, *kernel, bias=True):
    yield f"{prefix}.weight", (out, channels, *kernel)
    if bias:
        yield f"{prefix}.bias", (out,)


def speaker_encoder_shapes(c):
    defaults = dict(mel_dim=128, enc_channels=[512, 512, 512, 512, 1536], enc_kernel_sizes=[5, 3, 3, 3, 1], enc_attention_channels=128,
                    enc_res2net_scale=8, enc_se_channels=128)
    c = defaults | c
    channels, kernels, scale = c["enc_channels"], c["enc_kernel_sizes"], c["enc_res2net_scale"]
    yield from linear("speaker_encoder.blocks.0.conv", channels[0], c["mel_dim"], kernels[0])
    for i in range(1, len(channels) - 1):
        block, width = f"speaker_encoder.blocks.{i}", channels[i]
        yield from linear(f"{block}.tdnn1.conv", width, channels[i - 1], 1)
        for k in range(scale - 1):
            yield from linear(f"{block}.res2net_block.blocks.{k}.conv", width // scale, width // scale, kernels[i])
        yield from linear(f"{block}.tdnn2.conv", width, width, 1)
        yield from linear(f"{block}.se_block.conv1", c["enc_se_channels"], width, 1)
        yield from linear(f"{block}.se_block.conv2", width, c["enc_se_channels"], 1)
    yield from linear("speaker_encoder.mfa.conv", channels[-1], channels[-1], kernels[-1])
    yield from linear("speaker_encoder.asp.tdnn.conv", c["enc_attention_channels"], 3 * channels[-1], 1)
    yield from linear("speaker_encoder.asp.conv", channels[-1], c["enc_attention_channels"], 1)
    yield from linear("speaker_encoder.fc", c["enc_dim"], 2 * channels[-1], 1)


def model_shapes(config):
    t = config["talker_config"]
    p, hidden = t["code_predictor_config"], t["hidden_size"]
    yield "talker.model.text_embedding.weight", (t["text_vocab_size"], t["text_hidden_size"])
    yield "talker.model.codec_embedding.weight", (t["vocab_size"], hidden)
    yield from decoder_layers("talker.model", t)
    yield from linear("talker.text_projection.linear_fc1", t["text_hidden_size"], t["text_hidden_size"])
    yield from linear("talker.text_projection.linear_fc2", hidden, t["text_hidden_size"])
    yield "talker.codec_head.weight", (t["vocab_size"], hidden)
    yield from decoder_layers("talker.code_predictor.model", p)
    for i in range(t["num_code_groups"] - 1):
        yield f"talker.code_predictor.model.codec_embedding.{i}.weight", (p["vocab_size"], hidden)
        yield f"talker.code_predictor.lm_head.{i}.weight", (p["vocab_size"], p["hidden_size"])
    if hidden != p["hidden_size"]:
        yield from linear("talker.code_predictor.small_to_mtp_projection", p["hidden_size"], hidden)
    if "speaker_encoder_config" in config:
        yield from speaker_encoder_shapes(config["speaker_encoder_config"])


def codec_decoder_shapes(c):
    inner, width, latent = c["codebook_dim"] // 2, c["hidden_size"], c["latent_dim"]
    for name, levels in (("rvq_first", c["num_semantic_quantizers"]), ("rvq_rest", c["num_quantizers"] - c["num_semantic_quantizers"])):
        prefix = f"decoder.quantizer.{name}"
        yield from linear(f"{prefix}.input_proj", inner, c["codebook_dim"], 1, bias=False)
        yield from linear(f"{prefix}.output_proj", c["codebook_dim"], inner, 1, bias=False)
        for i in range(levels):
            yield f"{prefix}.vq.layers.{i}._codebook.cluster_usage", (c["codebook_size"],)
            yield f"{prefix}.vq.layers.{i}._codebook.embedding_sum", (c["codebook_size"], inner)
    yield from linear("decoder.pre_conv.conv", latent, c["codebook_dim"], 3)
    prefix = "decoder.pre_transformer"
    yield from linear(f"{prefix}.input_proj", width, latent)
    yield from linear(f"{prefix}.output_proj", latent, width)
    yield f"{prefix}.norm.weight", (width,)
    for i in range(c["num_hidden_layers"]):
        layer = f"{prefix}.layers.{i}"
        yield from ((f"{layer}.{name}", (width,)) for name in ("input_layernorm.weight", "post_attention_layernorm.weight",
                                                             "self_attn_layer_scale.scale", "mlp_layer_scale.scale"))
        yield from attention_shapes(f"{layer}.self_attn", c)
        yield from swiglu_shapes(f"{layer}.mlp", c)
    for i, ratio in enumerate(c["upsampling_ratios"]):
        yield from transposed(f"decoder.upsample.{i}.0.conv", latent, latent, ratio)
        prefix = f"decoder.upsample.{i}.1"
        yield from linear(f"{prefix}.dwconv.conv", latent, 1, 7)
        yield from ((f"{prefix}.{name}", (latent,)) for name in ("norm.weight", "norm.bias", "gamma"))
        yield from linear(f"{prefix}.pwconv1", 4 * latent, latent)
        yield from linear(f"{prefix}.pwconv2", latent, 4 * latent)
    yield from linear("decoder.decoder.0.conv", c["decoder_dim"], latent, 7)
    channels = c["decoder_dim"]
    for i, rate in enumerate(c["upsample_rates"], 1):
        block = f"decoder.decoder.{i}.block"
        yield from ((f"{block}.0.{name}", (channels,)) for name in ("alpha", "beta"))
        yield from transposed(f"{block}.1.conv", channels, channels // 2, 2 * rate)
        channels //= 2
        for k in (2, 3, 4):
            for act in ("act1", "act2"):
                yield from ((f"{block}.{k}.{act}.{name}", (channels,)) for name in ("alpha", "beta"))
            yield from linear(f"{block}.{k}.conv1.conv", channels, channels, 7)
            yield from linear(f"{block}.{k}.conv2.conv", channels, channels, 1)
    last = len(c["upsample_rates"]) + 1
    yield from ((f"decoder.decoder.{last}.{name}", (channels,)) for name in ("alpha", "beta"))
    yield from linear(f"decoder.decoder.{last + 1}.conv", 1, channels, 7)


def transposed(prefix, channels, out, kernel):
    yield f"{prefix}.weight", (channels, out, kernel)
    yield f"{prefix}.bias", (out,)


def codec_encoder_shapes(c):
    channels, width = c["num_filters"], c["hidden_size"]
    yield from linear("encoder.encoder.layers.0.conv", channels, c["audio_channels"], c["kernel_size"])
    number = 1
    for ratio in reversed(c["upsampling_ratios"]):
        yield from linear(f"encoder.encoder.layers.{number}.block.1.conv", channels // c["compress"], channels, c["residual_kernel_size"])
        yield from linear(f"encoder.encoder.layers.{number}.block.3.conv", channels, channels // c["compress"], 1)
        yield from linear(f"encoder.encoder.layers.{number + 2}.conv", 2 * channels, channels, 2 * ratio)
        channels, number = 2 * channels, number + 3
    yield from linear(f"encoder.encoder.layers.{number + 1}.conv", width, channels, c["last_kernel_size"])
    for i in range(c["num_hidden_layers"]):
        layer = f"encoder.encoder_transformer.layers.{i}"
        yield from ((f"{layer}.{name}", (width,)) for name in (
            "input_layernorm.weight", "input_layernorm.bias", "post_attention_layernorm.weight", "post_attention_layernorm.bias",
            "self_attn_layer_scale.scale", "mlp_layer_scale.scale"))
        yield from attention_shapes(f"{layer}.self_attn", c)
        yield f"{layer}.mlp.fc1.weight", (c["intermediate_size"], width)
        yield f"{layer}.mlp.fc2.weight", (width, c["intermediate_size"])
    yield from linear("encoder.downsample.conv", width, width, 4, bias=False)
    inner = c["codebook_dim"]
    for name, levels in (("semantic", c["num_semantic_quantizers"]), ("acoustic", c["num_quantizers"] - c["num_semantic_quantizers"])):
        prefix = f"encoder.quantizer.{name}_residual_vector_quantizer"
        yield from linear(f"{prefix}.input_proj", inner, width, 1, bias=False)
        yield from linear(f"{prefix}.output_proj", width, inner, 1, bias=False)
        for i in range(levels):
            yield f"{prefix}.layers.{i}.codebook.initialized", (1,)
            yield f"{prefix}.layers.{i}.codebook.cluster_usage", (c["codebook_size"],)
            yield f"{prefix}.layers.{i}.codebook.embed_sum", (c["codebook_size"], inner)


def draw(rng, name, shape):
    """Values in f32: such that each part of the arithmetic matters (unused codebook rows, biases, scales)."""
    part = name.rsplit(".", 1)[-1]
    if part == "initialized":
        return np.ones(shape, np.float32)
    if part == "cluster_usage":
        usage = rng.uniform(0.5, 8, shape).astype(np.float32)
        usage[::13] = 0
        return usage
    normal = rng.standard_normal(shape, np.float32)
    if part in ("embedding_sum", "embed_sum"):
        normal[::13] *= 1e-5
        return normal
    if part in ("alpha", "beta"):
        return rng.uniform(-0.5, 0.5, shape).astype(np.float32)
    if part in ("scale", "gamma"):
        return 0.1 + 0.02 * normal
    if len(shape) == 1:
        return (1.0 if "norm" in name and part == "weight" else 0.0) + 0.1 * normal
    if "embedding" in name:
        return 0.5 * normal
    is_transposed = name.startswith("decoder.") and (".block.1.conv" in name or (".upsample." in name and ".0.conv" in name))
    addends = shape[0] * (2 if ".block." in name else 1) if is_transposed else np.prod(shape[1:])
    return normal / np.float32(np.sqrt(addends))


def tensors(shapes, dtype):
    rng = np.random.default_rng(SEED)
    return {name: draw(rng, name, shape).astype(dtype) for name, shape in shapes}


def write_shards(folder, values, count):
    names, files, size = sorted(values), {}, sum(array.nbytes for array in values.values())
    for i in range(count):
        part = {name: values[name] for name in names[i * len(names) // count:(i + 1) * len(names) // count]}
        file = f"model-{i + 1:05}-of-{count:05}.safetensors"
        safetensors.numpy.save_file(part, folder / file, {"format": "pt"})
        files |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": files}, indent=1) + "\n")


def merges():
    """Pairs that make "assistant", "user" and some words one token each."""
    found = {}
    for word in ("assistant", "user", "Ġthe", "ing", "Ġin", "Ġa"):
        found |= {word[:i + 1]: f"{word[:i]} {word[i]}" for i in range(1, len(word)) if word[:i + 1] not in found}
    return found


def first_special(config):
    """<|endoftext|> stands before the published ones."""
    return config["im_start_token_id"] - (1 if config["talker_config"]["text_vocab_size"] > 1000 else 0)


def write_vocabulary(folder, config):
    """The alphabet of bytes, what merges make, and as many words that no text reaches as there are ids before the special ones."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = sorted(chr(c) for c in [*plain, *range(256, 512 - len(plain))])
    words = [*alphabet, *(word for word in merges() if word != "assistant")]
    words += [f"unused{i}" for i in range(len(words), first_special(config) - 1)]
    words.insert(config["assistant_token_id"], "assistant")
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{merge}\n" for merge in merges().values()), encoding="utf-8")


def write_tokenizer(folder, config):
    write_vocabulary(folder, config)
    names = {config[key]: content for key, content in SPECIAL.items()}
    added = {str(i): dict(content=names.get(i, f"<|reserved {i}|>"), special=True, lstrip=False, rstrip=False, single_word=False, normalized=False)
             for i in range(first_special(config), max(names) + 1)}
    (folder / "tokenizer_config.json").write_text(json.dumps(
        dict(tokenizer_class="Qwen2Tokenizer", added_tokens_decoder=added, bos_token=None, eos_token="<|im_end|>", pad_token="<|im_end|>",
             unk_token=None, errors="replace", model_max_length=131072, add_prefix_space=False), indent=1) + "\n")


def write_model(folder, size, kind):
    folder.mkdir(parents=True, exist_ok=True)
    config = model_config(size, kind)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(dict(
        do_sample=True, temperature=0.9, top_k=50, top_p=1.0, repetition_penalty=1.05, subtalker_dosample=True, subtalker_temperature=0.9,
        subtalker_top_k=50, subtalker_top_p=1.0, max_new_tokens=8192), indent=1) + "\n")
    dtype = ml_dtypes.bfloat16
    if size == "small":
        dtype = np.float16 if kind == "voice_design" else dtype
    values = tensors(model_shapes(config), dtype)
    if size == "small" and kind == "base":
        write_shards(folder, values, 2)
    else:
        safetensors.numpy.save_file(values, folder / "model.safetensors", {"format": "pt"})
    write_tokenizer(folder, config)
    print(folder, len(values), "tensors,", sum(array.size for array in values.values()), "weights")


def write_codec(folder, size):
    folder.mkdir(parents=True, exist_ok=True)
    config = codec_config(size)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "preprocessor_config.json").write_text(json.dumps(dict(
        feature_extractor_type="EncodecFeatureExtractor", feature_size=1, sampling_rate=24000, padding_side="right", padding_value=0.0,
        return_attention_mask=True), indent=1) + "\n")
    shapes = [*codec_decoder_shapes(config["decoder_config"]), *codec_encoder_shapes(config["encoder_config"])]
    values = tensors(shapes, np.float32)
    safetensors.numpy.save_file(values, folder / "model.safetensors", {"format": "pt"})
    print(folder, len(values), "tensors,", sum(array.size for array in values.values()), "weights")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=("small", "0.6b", "1.7b"))
    parser.add_argument("dest", type=pathlib.Path)
    parser.add_argument("kind", nargs="?", choices=("base", "custom_voice", "voice_design"), default="custom_voice")
    given = parser.parse_args()
    if given.size == "small":
        for kind in ("custom_voice", "base", "voice_design"):
            write_model(given.dest / kind, given.size, kind)
    else:
        write_model(given.dest, given.size, given.kind)
    write_codec(given.dest / "speech_tokenizer", given.size)


if __name__ == "__main__":
    main()
