#include "models/kokoro/text_side.h"

#include <cmath>
#include <cstring>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/layer_norm.h"
#include "kernels/vector_math.h"

namespace syrinx::kokoro {

using kernels::Storage;

namespace {

constexpr float kBertEpsilon = 1e-12f, kEpsilon = 1e-5f;

View<float, 2> rows_of(nn::Plane& p, size_t begin, size_t end) {
  return {p.f32(begin), {end - begin, p.channels()}, {p.stride(), 1}};
}

}  // namespace

void TextSide::run(std::span<const int32_t> tokens, std::span<const float> style, StyleNorm& norm) {
  embed(tokens);
  for (size_t i = 0; i < kBertLayers; ++i) bert_layer();
  durations(style, norm);
  text_encoder(tokens);
}

void TextSide::release() {
  for (nn::Plane* plane :
       {&embedded_, &x_, &qkv_, &attended_, &projected_, &ffn_, &d_, &gates_, &lstm_out_, &duration_, &text_, &conv_})
    plane->release();
}

// Word, type and position embeddings, layer norm, and the mapping to BERT's width.
void TextSide::embed(std::span<const int32_t> tokens) {
  const size_t n = tokens.size(), width = w_.config.embedding;
  embedded_.prepare(n, width, Storage::kF32);
  for (size_t i = 0; i < n; ++i) {
    const float* const word = w_.word + static_cast<size_t>(tokens[i]) * width;
    const float* const position = w_.position + i * width;
    float* const out = embedded_.f32(i);
    for (size_t c = 0; c < width; ++c) out[c] = word[c] + w_.token_type[c] + position[c];
  }
  kernels::layer_norm(embedded_.view(), {w_.embedding_norm.gamma, w_.embedding_norm.beta}, kBertEpsilon,
                      embedded_.view());
  x_.prepare(n, w_.config.bert, Storage::kF32);
  runner_.linear(w_.bert_in, embedded_.view(), x_.view());
}

// The one layer that all twelve passes share: x = LN(x + attention), x = LN(ffn(x) + x).
void TextSide::bert_layer() {
  const size_t n = x_.rows(), width = w_.config.bert, heads = width / kBertHead;
  qkv_.prepare(n, 3 * width, Storage::kF32);
  attended_.prepare(n, width, Storage::kF32);
  projected_.prepare(n, width, Storage::kF32);
  ffn_.prepare(n, w_.config.bert_ffn, Storage::kF32);
  runner_.linear(w_.qkv, x_.view(), qkv_.view());
  const auto part = [&](size_t i) {
    return View<const float, 2>(qkv_.f32() + i * width, {n, width}, {qkv_.stride(), 1});
  };
  const kernels::AttentionInput attention{.q = part(0),
                                          .k = part(1),
                                          .v = part(2),
                                          .head_width = kBertHead,
                                          .scale = 1.0f / std::sqrt(static_cast<float>(kBertHead))};
  const size_t floats = kernels::attention_scratch_size(n, kBertHead);
  for (int m = 0; m < runner_.team().size(); ++m) runner_.scratch(m, floats * sizeof(float));
  runner_.team().run([&](int member) {
    const Range own = split_range(heads, member, runner_.team().size());
    if (own.begin == own.end) return;
    const auto scratch = runner_.scratch(member, floats * sizeof(float));
    kernels::attention(attention, own.begin, own.end, {reinterpret_cast<float*>(scratch.data()), floats},
                       attended_.view());
  });
  runner_.between();
  runner_.linear(w_.attention_out, attended_.view(), projected_.view());
  runner_.split(n, [&](size_t begin, size_t end) {
    kernels::add_layer_norm(rows_of(projected_, begin, end), rows_of(x_, begin, end),
                            {w_.attention_norm.gamma, w_.attention_norm.beta}, kBertEpsilon, rows_of(x_, begin, end));
  });
  runner_.linear(w_.ffn_in, x_.view(), ffn_.view());
  runner_.split(n, [&](size_t begin, size_t end) {
    const std::span<float> rows(ffn_.f32(begin), (end - begin) * ffn_.stride());
    kernels::gelu_tanh(rows, rows);
  });
  runner_.linear(w_.ffn_out, ffn_.view(), projected_.view());
  runner_.split(n, [&](size_t begin, size_t end) {
    kernels::add_layer_norm(rows_of(projected_, begin, end), rows_of(x_, begin, end),
                            {w_.full_norm.gamma, w_.full_norm.beta}, kBertEpsilon, rows_of(x_, begin, end));
  });
}

// Three rounds of BiLSTM and adaptive layer norm, the style beside the features each time; then 50 sigmoids summed.
void TextSide::durations(std::span<const float> style, StyleNorm& norm) {
  const size_t n = x_.rows(), hidden = w_.config.hidden;
  d_.prepare(n, hidden + w_.config.style, Storage::kF32);
  gates_.prepare(n, 4 * hidden, Storage::kF32);
  lstm_out_.prepare(n, hidden, Storage::kF32);
  const View<float, 2> features(d_.f32(), {n, hidden}, {d_.stride(), 1});
  runner_.linear(w_.bert_encoder, x_.view(), features);
  for (size_t i = 0; i < n; ++i) std::copy(style.begin(), style.end(), d_.f32(i) + hidden);
  for (size_t i = 0; i < 3; ++i) {
    nn::lstm(runner_, w_.duration_lstm[i], d_.view(), {}, gates_.view(), lstm_out_.view());
    const float* const affine = norm.gamma_beta(w_.duration_norm[i]);
    kernels::adaptive_layer_norm(lstm_out_.view(), affine, affine + hidden, kEpsilon, features);
  }
  nn::lstm(runner_, w_.duration_out, d_.view(), {}, gates_.view(), lstm_out_.view());
  duration_.prepare(n, w_.config.durations, Storage::kF32);
  runner_.linear(w_.duration_proj, lstm_out_.view(), duration_.view());
  raw_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const std::span<float> row(duration_.f32(i), w_.config.durations);
    kernels::sigmoid_array(row, row);
    float sum = 0.0f;
    for (float v : row) sum += v;
    raw_[i] = sum;
  }
}

// Embedding, three convolutions with layer norm and LeakyReLU, BiLSTM.
void TextSide::text_encoder(std::span<const int32_t> tokens) {
  const size_t n = tokens.size(), hidden = w_.config.hidden;
  constexpr float kSlope = 0.2f;
  text_.prepare(n, hidden, Storage::kF32);
  conv_.prepare(n, hidden, Storage::kF32);
  for (size_t i = 0; i < n; ++i)
    std::memcpy(text_.f32(i), w_.text_embedding + static_cast<size_t>(tokens[i]) * hidden, hidden * sizeof(float));
  for (size_t i = 0; i < 3; ++i) {
    runner_.stats(text_, stats_);
    runner_.conv(w_.text_conv[i], {.rows = n, .pad = 2},
                 {.data = text_.row(0), .rows = n, .stride = text_.stride(), .range = &stats_.tiles()},
                 {.data = conv_.row(0), .stride = conv_.stride()});
    kernels::layer_norm(conv_.view(), {w_.text_norm[i].gamma, w_.text_norm[i].beta}, kEpsilon, text_.view());
    const std::span<float> rows(text_.f32(), n * text_.stride());
    kernels::leaky_relu(rows, kSlope, rows);
  }
  gates_.prepare(n, 4 * hidden, Storage::kF32);
  std::swap(text_, conv_);
  nn::lstm(runner_, w_.text_lstm, conv_.view(), {}, gates_.view(), text_.view());
}

}  // namespace syrinx::kokoro
