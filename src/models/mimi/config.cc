#include "models/mimi/config.h"

#include <algorithm>
#include <cmath>

#include "nn/kv_cache.h"
#include "tensor/packed_matrix.h"

namespace syrinx::mimi {
namespace {

Status within(const char* what, size_t value, size_t least, size_t most) {
  if (value >= least && value <= most) return {};
  return fail(Code::kUnsupported, "mimi: {} is {}; it must lie between {} and {}", what, value, least, most);
}

// `step`: rows of a pass at most.
Status check_transformer(const nn::TransformerConfig& t, size_t width, size_t step) {
  SYRINX_TRY_VOID(within("a transformer's number of layers", t.layers, 0, kMaxLayers));
  SYRINX_TRY_VOID(within("a transformer's number of heads", t.heads, 1, kMaxWidth));
  SYRINX_TRY_VOID(within("a transformer's number of key heads", t.key_heads, 1, t.heads));
  SYRINX_TRY_VOID(within("a transformer's attention width", t.attention_width, 1, kMaxWidth));
  SYRINX_TRY_VOID(within("a transformer's feed-forward width", t.hidden, 1, kMaxWidth));
  SYRINX_TRY_VOID(within("a transformer's window (context)", t.window, 1, kMaxWindow));
  if (t.width != width)
    return fail(Code::kUnsupported, "mimi: a transformer of width {} in a codec of width {}; they must be equal",
                t.width, width);
  if (t.heads % t.key_heads != 0 || t.attention_width % (2 * t.heads) != 0)
    return fail(Code::kUnsupported,
                "mimi: {} heads and {} key heads do not divide an attention of width {} into heads of even width",
                t.heads, t.key_heads, t.attention_width);
  const size_t bytes = 2 * t.layers * (t.window - 1 + step) * t.key_width() * sizeof(float);
  if (bytes > nn::kMaxCacheBytes)
    return fail(Code::kUnsupported, "mimi: a transformer whose window (context) of {} positions takes {} bytes, not {}",
                t.window, bytes, nn::kMaxCacheBytes);
  if (!std::isfinite(t.max_period) || t.max_period < 1.0f)
    return fail(Code::kUnsupported, "mimi: max_period is {}; it must be at least 1", t.max_period);
  return {};
}

// `reach`: the rows that a convolution's history may have, the positions of one frame.
Status check_seanet(const SeanetConfig& s, size_t reach) {
  SYRINX_TRY_VOID(within("the width (dimension) of a SEANet", s.width, 1, kMaxWidth));
  SYRINX_TRY_VOID(within("the kernel of a SEANet", s.kernel, 1, reach + 1));
  SYRINX_TRY_VOID(within("the last kernel of a SEANet", s.last_kernel, 1, reach + 1));
  SYRINX_TRY_VOID(within("the residual kernel of a SEANet", s.residual_kernel, 1, reach + 1));
  SYRINX_TRY_VOID(within("the number of a SEANet's residual layers", s.residual_layers, 1, kMaxResidualLayers));
  SYRINX_TRY_VOID(within("the dilation base of a SEANet", s.dilation_base, 1, reach));
  SYRINX_TRY_VOID(within("the filters of a SEANet", s.filters, 1, kMaxWidth >> s.ratios.size()));
  SYRINX_TRY_VOID(within("the compression of a SEANet's residual blocks", s.compress, 1, s.filters));
  size_t dilation = 1;
  for (size_t i = 1; i < s.residual_layers; ++i) dilation = std::min(dilation * s.dilation_base, reach + 1);
  return within("the reach of a SEANet's residual blocks", (s.residual_kernel - 1) * dilation, 0, reach);
}

Status check_ratios(const SeanetConfig& s, size_t frame_samples) {
  SYRINX_TRY_VOID(within("the number of a SEANet's ratios", s.ratios.size(), 1, kMaxRatios));
  for (const size_t ratio : s.ratios) SYRINX_TRY_VOID(within("a ratio of a SEANet", ratio, 1, kMaxRatio));
  if (frame_samples % s.hop() != 0)
    return fail(Code::kUnsupported, "mimi: a frame of {} samples is not a multiple of the SEANet's hop of {}",
                frame_samples, s.hop());
  return {};
}

}  // namespace

Status check(const Config& config) {
  SYRINX_TRY_VOID(within("the sample rate", config.sample_rate, 1, 384000));
  if (!std::isfinite(config.frame_rate) || config.frame_rate < 1.0 || config.frame_rate > 1000.0)
    return fail(Code::kUnsupported, "mimi: the frame rate is {}; it must lie between 1 and 1000", config.frame_rate);
  const size_t samples = config.frame_samples();
  SYRINX_TRY_VOID(within("the number of a frame's samples", samples, 1, kMaxFrameSamples));
  if (samples % kPanelColumns != 0)
    return fail(Code::kUnsupported, "mimi: a frame has {} samples; it must be a multiple of {}", samples,
                kPanelColumns);
  SYRINX_TRY_VOID(within("the latent's width", config.latent, 1, kMaxWidth));
  SYRINX_TRY_VOID(within("inner_dim", config.inner_width, 1, kMaxWidth));
  SYRINX_TRY_VOID(check_ratios(config.encoder, samples));
  SYRINX_TRY_VOID(check_ratios(config.decoder, samples));
  if (config.encoder.hop() != config.decoder.hop())
    return fail(Code::kUnsupported, "mimi: the encoder's hop is {} samples, the decoder's {}; they must be equal",
                config.encoder.hop(), config.decoder.hop());
  SYRINX_TRY_VOID(check_seanet(config.encoder, config.resample_stride()));
  SYRINX_TRY_VOID(check_seanet(config.decoder, config.resample_stride()));
  if (config.outer_width != config.decoder.width)
    return fail(Code::kUnsupported, "mimi: outer_dim is {}, the decoder's width {}; they must be equal",
                config.outer_width, config.decoder.width);
  const size_t step = kMaxPassFrames * config.resample_stride();
  SYRINX_TRY_VOID(check_transformer(config.encoder_transformer, config.encoder.width, step));
  return check_transformer(config.decoder_transformer, config.decoder.width, step);
}

}  // namespace syrinx::mimi
