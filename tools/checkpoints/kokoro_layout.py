"""Every weight of Kokoro-82M: its PyTorch name, its shape from a few widths, and where the ONNX export keeps it.

One list, in the order in which the export visits the modules, is the only statement of the architecture that the
checkpoint writers use.  Specification: Kokoro, sections 3 to 6.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Widths:
    """Channel counts.  Counts of layers, kernel sizes, strides and the transform are the model's own."""

    tokens: int = 178
    positions: int = 512
    embedding: int = 4        # 128 in the published model
    bert: int = 64            # 768; heads are 64 wide
    ffn: int = 24             # 2048
    hidden: int = 16          # 512; an LSTM direction is half of it
    style: int = 4            # 128; a row of a voice holds two
    decoder: int = 12         # 1024
    asr_res: int = 4          # 64
    generator: int = 16       # 512, halved by each of the two stages
    max_duration: int = 50
    bins: int = 22            # 11 magnitudes, 11 angles
    harmonics: int = 9


PUBLISHED = Widths(embedding=128, bert=768, ffn=2048, hidden=512, style=128, decoder=1024, asr_res=64, generator=512)


@dataclasses.dataclass(frozen=True)
class Weight:
    """One module with weights.

    kind: embedding | linear | conv | conv_transpose | lstm | norm | alpha
    shape: PyTorch's shape of `weight`; for lstm (inputs, hidden); for norm and alpha the vector's length.
    onnx_weight: name of the initializer without its _quantized suffix; empty where the exporter numbers it.
    input: name of the activation that the export quantises for this module.
    """

    kind: str
    name: str
    shape: tuple[int, ...]
    onnx_weight: str = ""
    bias: bool = True
    weight_norm: bool = False
    quantised: bool = True
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    input: str = ""
    gain: float = 1.0
    bias_mean: float = 0.0
    bias_spread: float = 0.1

    @property
    def onnx_module(self) -> str:
        return ("decoder." if self.name.startswith("decoder.") else "encoder.") + self.name

    @property
    def path(self) -> str:
        """The module as the exporter's node names spell it: a number stays with the word before it."""
        words: list[str] = []
        for word in self.name.split("."):
            if word.isdigit() and words:
                words[-1] += "." + word
            else:
                words.append(word)
        if words[-1] == "asr_res.0":
            words.insert(-1, "asr_res")
        if words[0] == "decoder":
            return "/decoder/" + "/".join(words)
        if words[0] == "predictor" and words[1].split(".")[0] in ("F0", "N", "F0_proj", "N_proj", "shared"):
            words = words[1:]       # the exporter's wrapper calls these itself
        if words[-1] in ("cnn.0.0", "cnn.1.0", "cnn.2.0"):
            words.insert(-1, words[-1].rsplit(".", 1)[0])
        return "/encoder/" + "/".join(words)




def _bert(w: Widths) -> list[Weight]:
    layer = "bert.encoder.albert_layer_groups.0.albert_layers.0."
    table = [Weight("embedding", f"bert.embeddings.{kind}_embeddings", (rows, w.embedding), gain=0.35)
             for kind, rows in (("word", w.tokens), ("position", w.positions), ("token_type", 2))]
    table.append(Weight("norm", "bert.embeddings.LayerNorm", (w.embedding,)))
    mapped = "/encoder/bert/embeddings/LayerNorm/LayerNormalization_output_0"
    table.append(Weight("linear", "bert.encoder.embedding_hidden_mapping_in", (w.bert, w.embedding), input=mapped))
    first = "/encoder/bert/encoder/embedding_hidden_mapping_in/Add_output_0"
    at = "/encoder/bert/encoder/albert_layer_groups.0/albert_layers.0/"
    for part in ("query", "key", "value"):
        table.append(Weight("linear", f"{layer}attention.{part}", (w.bert, w.bert), input=first))
    table.append(Weight("linear", f"{layer}attention.dense", (w.bert, w.bert), input=at + "attention/Reshape_3_output_0"))
    table.append(Weight("norm", f"{layer}attention.LayerNorm", (w.bert,)))
    normed = at + "attention/LayerNorm/LayerNormalization_output_0"
    table.append(Weight("linear", f"{layer}ffn", (w.ffn, w.bert), input=normed))
    table.append(Weight("linear", f"{layer}ffn_output", (w.bert, w.ffn), input=at + "activation/Mul_3_output_0"))
    table.append(Weight("norm", f"{layer}full_layer_layer_norm", (w.bert,)))
    last = at + "full_layer_layer_norm_11/LayerNormalization_output_0"
    table.append(Weight("linear", "bert_encoder", (w.hidden, w.bert), input=last))
    return table


def _style(name: str, channels: int, style: int) -> Weight:
    source = "/decoder/Slice_output_0" if name.startswith("decoder.") else "/encoder/Slice_output_0"
    side = "decoder." if name.startswith("decoder.") else "encoder."
    return Weight("linear", name + ".fc", (2 * channels, style), onnx_weight=f"{side}{name}.fc.weight", input=source,
                  gain=0.4)


def _res_block(name: str, c_in: int, c_out: int, style: int, upsample: bool = False,
               concat: str = "") -> list[Weight]:
    """AdainResBlk1d: two norms, two convolutions of 3, a 1x1 where widths differ, a depthwise `pool` to upsample."""
    at = Weight("conv", name, ()).path
    order = iter("Mul_%d_output_0" % i if i else "Mul_output_0" for i in range(4))
    blocks = [_style(f"{name}.norm1", c_in, style), _style(f"{name}.norm2", c_out, style)]
    if upsample:
        blocks.append(Weight("conv_transpose", f"{name}.pool", (c_in, 1, 3), f"{at}/{next(order)}", weight_norm=True,
                             quantised=False, stride=2, padding=1))
    source = f"{at}/pool/ConvTranspose_output_0" if upsample else f"{at}/actv/LeakyRelu_output_0"
    blocks.append(Weight("conv", f"{name}.conv1", (c_out, c_in, 3), f"{at}/{next(order)}", weight_norm=True, padding=1,
                         input=source))
    blocks.append(Weight("conv", f"{name}.conv2", (c_out, c_out, 3), f"{at}/{next(order)}", weight_norm=True, padding=1,
                         input=f"{at}/actv_1/LeakyRelu_output_0"))
    if c_in != c_out:
        source = f"{at}/upsample/Resize_output_0" if upsample else concat
        blocks.append(Weight("conv", f"{name}.conv1x1", (c_out, c_in, 1), f"{at}/{next(order)}", bias=False,
                             weight_norm=True, input=source))
    return blocks


def _predictor(w: Widths) -> list[Weight]:
    wide, half = w.hidden + w.style, w.hidden // 2
    table: list[Weight] = []
    for i in (0, 2, 4):
        table.append(Weight("lstm", f"predictor.text_encoder.lstms.{i}", (wide, half)))
        table.append(_style(f"predictor.text_encoder.lstms.{i + 1}", w.hidden, w.style))
    table.append(Weight("lstm", "predictor.lstm", (wide, half)))
    # Fifty sigmoids of about 0.03 each: one to three frames a token.
    table.append(Weight("linear", "predictor.duration_proj.linear_layer", (w.max_duration, w.hidden), gain=7.0,
                        input="/encoder/predictor/lstm/Transpose_2_output_0", bias_mean=-4.2, bias_spread=0.3))
    table.append(Weight("lstm", "predictor.shared", (wide, half)))
    for branch, gain, mean in (("F0", 80.0, 190.0), ("N", 1.0, 0.3)):
        table += _res_block(f"predictor.{branch}.0", w.hidden, w.hidden, w.style)
        table += _res_block(f"predictor.{branch}.1", w.hidden, half, w.style, upsample=True)
        table += _res_block(f"predictor.{branch}.2", half, half, w.style)
        table.append(Weight("conv", f"predictor.{branch}_proj", (1, half, 1), f"encoder.predictor.{branch}_proj.weight",
                            input=f"/encoder/{branch}.2/Div_2_output_0", gain=gain, bias_mean=mean, bias_spread=0.0))
    return table


def _text_encoder(w: Widths) -> list[Weight]:
    table = [Weight("embedding", "text_encoder.embedding", (w.tokens, w.hidden), gain=1.0)]
    source = "/encoder/text_encoder/Transpose_output_0"
    for i in range(3):
        table.append(Weight("conv", f"text_encoder.cnn.{i}.0", (w.hidden, w.hidden, 5),
                            f"/encoder/text_encoder/cnn.{i}/Mul_output_0", weight_norm=True, padding=2, input=source))
        table.append(Weight("norm", f"text_encoder.cnn.{i}.1", (w.hidden,)))
        source = f"/encoder/text_encoder/cnn.{i}/cnn.0.2/LeakyRelu_output_0"
    table.append(Weight("lstm", "text_encoder.lstm", (w.hidden, w.hidden // 2)))
    return table


def _snake_block(name: str, channels: int, kernel: int, style: int) -> list[Weight]:
    """The generator's residual block: dilations 1, 3 and 5, each norm, Snake, convolution, twice."""
    at = Weight("conv", name, ()).path
    table: list[Weight] = []
    for j, dilation in enumerate((1, 3, 5)):
        for half in (1, 2):
            d = dilation if half == 1 else 1
            index, add = 6 * j + (2 if half == 1 else 5), 3 * j + half - 1
            table.append(_style(f"{name}.adain{half}.{j}", channels, style))
            table.append(Weight("alpha", f"{name}.alpha{half}.{j}", (channels,)))
            table.append(Weight("conv", f"{name}.convs{half}.{j}", (channels, channels, kernel),
                                f"{at}/Mul_{index}_output_0", weight_norm=True, padding=d * (kernel - 1) // 2,
                                dilation=d, gain=0.7, input=f"{at}/Add{'_%d' % add if add else ''}_output_0"))
    return table


def _decoder(w: Widths) -> list[Weight]:
    d, at = "decoder.", "/decoder/decoder/"
    table = [Weight("conv", d + "F0_conv", (1, 1, 3), at + "Mul_output_0", weight_norm=True, stride=2, padding=1,
                    gain=0.02, bias_mean=-2.0, input=at + "Unsqueeze_output_0"),
             Weight("conv", d + "N_conv", (1, 1, 3), at + "Mul_1_output_0", weight_norm=True, stride=2, padding=1,
                    input=at + "Unsqueeze_1_output_0"),
             Weight("conv", d + "asr_res.0", (w.asr_res, w.hidden, 1), at + "asr_res/Mul_output_0", weight_norm=True,
                    input="/encoder/MatMul_1_output_0")]
    table += _res_block(d + "encode", w.hidden + 2, w.decoder, w.style, concat=at + "Concat_output_0")
    wide = w.decoder + 2 + w.asr_res
    for i in range(4):
        table += _res_block(f"{d}decode.{i}", wide, w.decoder if i < 3 else w.generator, w.style, upsample=i == 3,
                            concat=f"{at}Concat_{i + 1}_output_0")
    g, at = d + "generator.", at + "generator/"
    table.append(Weight("linear", g + "m_source.l_linear", (1, w.harmonics), quantised=False, gain=6.0))
    c = (w.generator, w.generator // 2, w.generator // 4)
    har = at + "Concat_3_output_0"
    for i, (k, stride, padding, up, up_stride, res) in enumerate(((12, 6, 3, 20, 10, 7), (1, 1, 0, 12, 6, 11))):
        table.append(Weight("conv", f"{g}noise_convs.{i}", (c[i + 1], w.bins, k), f"decoder.{g}noise_convs.{i}.weight",
                            stride=stride, padding=padding, input=har))
        table += _snake_block(f"{g}noise_res.{i}", c[i + 1], res, w.style)
        table.append(Weight("conv_transpose", f"{g}ups.{i}", (c[i], c[i + 1], up), f"{at}Mul{'_1' if i else ''}_output_0",
                            weight_norm=True, quantised=False, stride=up_stride, padding=(up - up_stride) // 2))
        for j, kernel in enumerate((3, 7, 11)):
            table += _snake_block(f"{g}resblocks.{3 * i + j}", c[i + 1], kernel, w.style)
    table.append(Weight("conv", g + "conv_post", (w.bins, c[2], 7), at + "Mul_2_output_0", weight_norm=True,
                        quantised=False, padding=3, gain=0.5, bias_mean=0.0))
    return table


def weights(widths: Widths) -> list[Weight]:
    return _bert(widths) + _text_encoder(widths) + _predictor(widths) + _decoder(widths)
