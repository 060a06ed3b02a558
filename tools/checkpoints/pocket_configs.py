"""The configurations of Pocket TTS 4.0.1 (specification: Pocket TTS, section 1.2), at full size and small.

A configuration is the dictionary that its YAML file holds.  The small ones keep what makes each special (heads, layers,
optional sections, text switches) and let every dimension differ from the others where the format allows it, so that one
taken for another is seen.
"""

from __future__ import annotations

import copy

_APOSTROPHES = {"’": "'", "‘": "'"}
_DASHES = {"–": ",", "—": ","}
_DELETED = {c: "" for c in "\"“”„«»"} | _APOSTROPHES | {c: "" for c in "()[]"}
# Character table and semicolons by what the name begins with; English also has the small models' table below.
_TEXT = {
    "english": dict(replace_characters=_APOSTROPHES),
    "german": dict(remove_semicolons=True, replace_characters=_DELETED | _DASHES),
    "french": dict(remove_semicolons=True, replace_characters=_DELETED | {":": ",", "–": ","}),
    "spanish": dict(replace_characters=_DELETED | {"¡": "", "¿": "", "–": ","}),
    "italian": dict(replace_characters=_DELETED | {"–": ","}),
    "portuguese": dict(replace_characters=_DELETED | {"–": ","}),
    "dutch": dict(replace_characters=_DELETED | {"–": ","}),
}
_LANGUAGES = ("french", "german", "italian", "portuguese", "spanish", "dutch")
# Published configurations by architecture; the first name of each also names the small one.
PUBLISHED = {
    "english": ("english", "english_2026-10", "english_2026-09", "english_2026-09_2", "english_2026-04", *_LANGUAGES),
    "english_24l": ("english_2026-09_24l", "english_2026-04_24l", *(f"{name}_24l" for name in _LANGUAGES)),
    "english_2026-01": ("english_2026-01",),
    "english_drifting": ("english_drifting_26-09",),
    "english_18m": ("english_18m_2026-10", "english_18m_refl_2026-10"),
    "english_7m": ("english_7m_2026-10", "english_7m_refl_2026-10"),
    "english_2m": ("english_2m_2026-10", "english_2m_refl_2026-10"),
    "flow_matching": (),           # the fourth head type, which the format knows and nobody published
}
ARCHITECTURES = tuple(PUBLISHED)


def _seanet(dimension: int, n_filters: int, kernel_size: int = 7) -> dict:
    return dict(dimension=dimension, channels=1, n_filters=n_filters, n_residual_layers=1, ratios=[6, 5, 4],
                kernel_size=kernel_size, residual_kernel_size=3, last_kernel_size=3, dilation_base=2,
                pad_mode="constant", compress=2)


def _codec_transformer(width: int, heads: int, layers: int, forward: int, context: int) -> dict:
    return dict(d_model=width, num_heads=heads, num_layers=layers, layer_scale=0.01, context=context,
                dim_feedforward=forward, input_dimension=width, output_dimensions=[width])


def _mimi(inner: int, latent: int, seanet: dict, transformer: dict, decoder_seanet: dict | None = None,
          decoder_transformer: dict | None = None) -> dict:
    outer = (decoder_seanet or seanet)["dimension"]
    out = dict(dtype="float32", sample_rate=24000, inner_dim=inner, outer_dim=outer, channels=1, frame_rate=12.5,
               seanet=seanet, transformer=transformer, quantizer=dict(dimension=latent, output_dimension=outer))
    if decoder_seanet:
        out |= dict(decoder_seanet=decoder_seanet, decoder_transformer=decoder_transformer)
    return out


def _flow_lm(width: int, heads: int, layers: int, scale: int, flow: dict, pieces: int, tokenizer: str = "tokenizers",
             bos: bool = True, rank: int | None = None, z: int | None = None, **transformer) -> dict:
    # `null` where the published files of that family write it, nothing where they write nothing.
    table = dict(dim=width, n_bins=pieces, tokenizer=tokenizer,
                 tokenizer_path="tokenizer.json" if tokenizer == "tokenizers" else "tokenizer.model")
    if z is not None:
        table["rank"] = rank
    out = dict(insert_bos_before_voice=bos, dtype="float32", flow=flow,
               transformer=dict(d_model=width, hidden_scale=scale, max_period=10000, num_heads=heads, num_layers=layers)
               | transformer, lookup_table=table)
    return out | ({"z_dim": z} if z is not None else {})


def _head(depth: int, dim: int, kind: str | None = None) -> dict:
    return dict(depth=depth, dim=dim) | ({"type": kind} if kind else {})


def _full(architecture: str, pieces: int) -> dict:
    big = lambda inner: _mimi(inner, 32, _seanet(512, 64), _codec_transformer(512, 8, 2, 2048, 250))  # noqa: E731
    small = lambda filters, layers: _mimi(  # noqa: E731
        32, 32, _seanet(512, 64), _codec_transformer(512, 8, 2, 2048, 250), _seanet(128, filters, 3),
        _codec_transformer(128, 4, layers, 384, 50))
    spm = dict(pieces=pieces, tokenizer="sentencepiece")
    if architecture == "english_18m":
        return dict(flow_lm=_flow_lm(512, 8, 8, 1, _head(4, 192, "drifting"), **spm, z=64, attn_dim=None,
                                     num_kv_heads=None), mimi=small(32, 12))
    if architecture == "english_7m":
        return dict(flow_lm=_flow_lm(224, 8, 8, 1, _head(4, 192, "drifting"), **spm, rank=64, z=64, attn_dim=512,
                                     num_kv_heads=2), mimi=small(32, 12))
    if architecture == "english_2m":
        return dict(flow_lm=_flow_lm(112, 3, 8, 1, _head(4, 64, "pointwise"), **spm, rank=32, z=64, dim_feedforward=96,
                                     attn_dim=192, num_kv_heads=1), mimi=small(24, 4))
    kind = {"english_drifting": "drifting", "flow_matching": "flow_matching"}.get(architecture)
    layers = 24 if architecture == "english_24l" else 6
    old = architecture == "english_2026-01"
    return dict(flow_lm=_flow_lm(1024, 16, layers, 4, _head(6, 512, kind), pieces, bos=not old),
                mimi=big(512 if old else 32))


def _tiny(architecture: str, pieces: int) -> dict:
    plain = lambda inner, latent=32, filters=2: _mimi(  # noqa: E731
        inner, latent, _seanet(16, filters), _codec_transformer(16, 2, 2, 40, 40))
    spm = dict(pieces=pieces, tokenizer="sentencepiece")
    if architecture == "english_18m":
        return dict(flow_lm=_flow_lm(64, 1, 2, 1, _head(2, 24, "drifting"), **spm, z=28, attn_dim=None,
                                     num_kv_heads=None),
                    mimi=_mimi(10, 32, _seanet(16, 2), _codec_transformer(16, 2, 2, 40, 40), _seanet(24, 2, 3),
                               _codec_transformer(24, 2, 3, 44, 20)))
    if architecture == "english_7m":
        return dict(flow_lm=_flow_lm(24, 4, 2, 1, _head(2, 20, "drifting"), **spm, rank=12, z=18, attn_dim=256,
                                     num_kv_heads=2),
                    mimi=_mimi(10, 32, _seanet(16, 2), _codec_transformer(16, 2, 2, 40, 40), _seanet(32, 2, 3),
                               _codec_transformer(32, 1, 3, 48, 20)))
    if architecture == "english_2m":
        return dict(flow_lm=_flow_lm(20, 3, 2, 1, _head(2, 16, "pointwise"), **spm, rank=10, z=14, dim_feedforward=26,
                                     attn_dim=192, num_kv_heads=1),
                    mimi=_mimi(10, 32, _seanet(16, 2), _codec_transformer(16, 2, 2, 40, 40), _seanet(24, 3, 3),
                               _codec_transformer(24, 3, 2, 44, 20)))
    if architecture == "english_24l":
        return dict(flow_lm=_flow_lm(16, 2, 24, 1, _head(1, 20), pieces), mimi=plain(8))
    if architecture == "english_2026-01":
        return dict(flow_lm=_flow_lm(32, 2, 2, 2, _head(2, 24), pieces, bos=False), mimi=plain(16))
    if architecture == "english_drifting":
        return dict(flow_lm=_flow_lm(32, 4, 2, 2, _head(2, 24, "drifting"), pieces), mimi=plain(8, latent=8))
    if architecture == "flow_matching":
        return dict(flow_lm=_flow_lm(32, 2, 2, 1, _head(2, 24, "flow_matching"), pieces), mimi=plain(8, latent=6))
    return dict(flow_lm=_flow_lm(32, 2, 2, 4, _head(2, 24), pieces), mimi=plain(8, filters=4))


def text_settings(name: str) -> dict:
    """The top-level keys of a published or small configuration that concern text and its end."""
    small = any(size in name for size in ("_18m", "_7m", "_2m"))
    out = copy.deepcopy(_TEXT[name.partition("_")[0]] if name != "flow_matching" else {})
    if small:
        out["replace_characters"] = _DASHES | out["replace_characters"]
        out["default_eos_threshold"] = -1.0
    if name == "english_2026-01":
        out["pad_with_spaces_for_short_inputs"] = True
    return out


def architecture_of(name: str) -> str | None:
    """The architecture of a published or small configuration's name, None for an unknown one."""
    if name in PUBLISHED:
        return name
    return next((key for key, names in PUBLISHED.items() if name in names), None)


def config(name: str, size: str, pieces: int) -> dict:
    architecture = architecture_of(name)
    body = (_full if size == "full" else _tiny)(architecture, pieces)
    return {"weights_path": "model.safetensors"} | text_settings(name) | body


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _scalar(value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def to_yaml(values: dict, indent: int = 0) -> list[str]:
    """Lines in the published files' manner: two spaces, lists at the depth of their key, the character table quoted."""
    lines, pad = [], " " * indent
    for key, value in values.items():
        if key == "replace_characters":
            lines += ["# Replace characters that are absent from the training data.", "replace_characters:"]
            lines += [f"  {_quoted(a)}: " + ('"\'"' if b == "'" and a == "’" else _quoted(b)) for a, b in value.items()]
        elif isinstance(value, dict):
            lines += ["", f"{pad}{key}:"] if indent == 0 else [f"{pad}{key}:"]
            lines += to_yaml(value, indent + 2)
        elif isinstance(value, list):
            lines += [f"{pad}{key}:", *(f"{pad}- {_scalar(item)}" for item in value)]
        else:
            lines.append(f"{pad}{key}: {_scalar(value)}")
    return lines
