"""Names, shapes and kinds of all tensors of a Pocket TTS checkpoint (specification: Pocket TTS, section 1.3)."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Weight:
    """kind says how to draw it: matrix, conv, transposed, depthwise, table, gain, bias, scale, alpha, freqs, deviation,
    mean, latent, end_weight, end_bias; the first axis of a transposed convolution is its input."""

    name: str
    shape: tuple[int, ...]
    kind: str


def _norm(name: str, width: int) -> list[Weight]:
    return [Weight(name + ".weight", (width,), "gain"), Weight(name + ".bias", (width,), "bias")]


def _linear(name: str, out: int, inputs: int, bias: bool = True) -> list[Weight]:
    weight = [Weight(name + ".weight", (out, inputs), "matrix")]
    return weight + [Weight(name + ".bias", (out,), "bias")] if bias else weight


def _conv(name: str, out: int, inputs: int, kernel: int) -> list[Weight]:
    return [Weight(name + ".conv.weight", (out, inputs, kernel), "conv"), Weight(name + ".conv.bias", (out,), "bias")]


def _transposed(name: str, inputs: int, out: int, kernel: int) -> list[Weight]:
    return [Weight(name + ".convtr.weight", (inputs, out, kernel), "transposed"),
            Weight(name + ".convtr.bias", (out,), "bias")]


def _layer(name: str, width: int, attention: int, kv: int, forward: int, scaled: bool) -> list[Weight]:
    out = _linear(name + ".self_attn.in_proj", attention + 2 * kv, width, bias=False)
    out += _linear(name + ".self_attn.out_proj", width, attention, bias=False)
    out += _norm(name + ".norm1", width) + _norm(name + ".norm2", width)
    out += _linear(name + ".linear1", forward, width, bias=False)
    out += _linear(name + ".linear2", width, forward, bias=False)
    if scaled:
        out += [Weight(f"{name}.layer_scale_{i}.scale", (width,), "scale") for i in (1, 2)]
    return out


def _flow_net(name: str, cond: int, latent: int, flow: dict) -> list[Weight]:
    width, out = flow["dim"], []
    times = {"lsd": 2, "flow_matching": 1}.get(flow.get("type", "lsd"), 0)
    for i in range(times):
        embed = f"{name}.time_embed.{i}"
        out += [Weight(embed + ".freqs", (128,), "freqs")]
        out += _linear(embed + ".mlp.0", width, 256) + _linear(embed + ".mlp.2", width, width)
        out += [Weight(embed + ".mlp.3.alpha", (width,), "alpha")]
    out += _linear(name + ".cond_embed", width, cond) + _linear(name + ".input_proj", width, latent)
    for i in range(flow["depth"]):
        block = f"{name}.res_blocks.{i}"
        out += _norm(block + ".in_ln", width)
        out += _linear(block + ".mlp.0", width, width) + _linear(block + ".mlp.2", width, width)
        out += _linear(block + ".adaLN_modulation.1", 3 * width, width)
    out += _linear(name + ".final_layer.adaLN_modulation.1", 2 * width, width)
    return out + _linear(name + ".final_layer.linear", latent, width)


def _flow_lm(config: dict) -> list[Weight]:
    lm, latent = config["flow_lm"], config["mimi"]["quantizer"]["dimension"]
    t, table = lm["transformer"], lm["lookup_table"]
    width, rank, z = t["d_model"], table.get("rank"), lm.get("z_dim")
    inner = config["mimi"].get("inner_dim") or config["mimi"]["seanet"]["dimension"]
    attention = t.get("attn_dim") or width
    kv = attention // t["num_heads"] * (t.get("num_kv_heads") or t["num_heads"])
    forward = t.get("dim_feedforward") or width * t["hidden_scale"]
    out = [Weight("flow_lm.emb_std", (latent,), "deviation"), Weight("flow_lm.emb_mean", (latent,), "mean"),
           Weight("flow_lm.bos_emb", (latent,), "latent"),
           Weight("flow_lm.speaker_proj_weight", (width, inner), "matrix")]
    if lm["insert_bos_before_voice"]:
        out.append(Weight("flow_lm.bos_before_voice", (1, 1, width), "latent"))
    out.append(Weight("flow_lm.conditioner.embed.weight", (table["n_bins"] + 1, rank or width), "table"))
    if rank:
        out += _linear("flow_lm.conditioner.proj", width, rank, bias=False)
    out += _linear("flow_lm.input_linear", width, latent, bias=False)
    for i in range(t["num_layers"]):
        out += _layer(f"flow_lm.transformer.layers.{i}", width, attention, kv, forward, scaled=False)
    out += _norm("flow_lm.out_norm", width)
    if z:
        out += _linear("flow_lm.z_proj", z, width, bias=False)
    out += [Weight("flow_lm.out_eos.weight", (1, z or width), "end_weight"),
            Weight("flow_lm.out_eos.bias", (1,), "end_bias")]
    return out + _flow_net("flow_lm.flow_net", z or width, latent, lm["flow"])


def _block(name: str, width: int, seanet: dict) -> list[Weight]:
    hidden = width // seanet["compress"]
    return (_conv(name + ".block.1", hidden, width, seanet["residual_kernel_size"])
            + _conv(name + ".block.3", width, hidden, 1))


def _encoder(seanet: dict) -> list[Weight]:
    width, at = seanet["n_filters"], 1
    out = _conv("mimi.encoder.model.0", width, seanet["channels"], seanet["kernel_size"])
    for ratio in reversed(seanet["ratios"]):
        out += _block(f"mimi.encoder.model.{at}", width, seanet)
        out += _conv(f"mimi.encoder.model.{at + 2}", 2 * width, width, 2 * ratio)
        width, at = 2 * width, at + 3
    return out + _conv(f"mimi.encoder.model.{at + 1}", seanet["dimension"], width, seanet["last_kernel_size"])


def _decoder(seanet: dict) -> list[Weight]:
    width, at = seanet["n_filters"] * 2 ** len(seanet["ratios"]), 2
    out = _conv("mimi.decoder.model.0", width, seanet["dimension"], seanet["kernel_size"])
    for ratio in seanet["ratios"]:
        out += _transposed(f"mimi.decoder.model.{at}", width, width // 2, 2 * ratio)
        width //= 2
        out += _block(f"mimi.decoder.model.{at + 1}", width, seanet)
        at += 3
    return out + _conv(f"mimi.decoder.model.{at}", seanet["channels"], width, seanet["last_kernel_size"])


def _mimi(config: dict) -> list[Weight]:
    seanet, decoder = config["seanet"], config.get("decoder_seanet") or config["seanet"]
    stride = int(config["sample_rate"] / 120 / config["frame_rate"])
    out = []
    for name, t in (("encoder_transformer", config["transformer"]),
                    ("decoder_transformer", config.get("decoder_transformer") or config["transformer"])):
        for i in range(t["num_layers"]):
            out += _layer(f"mimi.{name}.transformer.layers.{i}", t["d_model"], t["d_model"], t["d_model"],
                          t["dim_feedforward"], scaled=True)
    inner, outer = config.get("inner_dim") or seanet["dimension"], config.get("outer_dim") or decoder["dimension"]
    out += [Weight("mimi.downsample.conv.conv.weight", (inner, seanet["dimension"], 2 * stride), "conv"),
            Weight("mimi.upsample.convtr.convtr.weight", (outer, 1, 2 * stride), "depthwise")]
    q = config["quantizer"]
    out.append(Weight("mimi.quantizer.output_proj.weight", (q["output_dimension"], q["dimension"], 1), "conv"))
    return out + _encoder(seanet) + _decoder(decoder)


def weights(config: dict) -> list[Weight]:
    return _flow_lm(config) + _mimi(config["mimi"])
