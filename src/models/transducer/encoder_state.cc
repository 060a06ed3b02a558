#include "models/transducer/encoder_state.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/relative_attention.h"
#include "models/transducer/stream_encoder.h"

namespace syrinx::transducer {
namespace {

constexpr size_t kCacheLineFloats = 16;

size_t chunk_of(AttentionContext context) { return static_cast<size_t>(context.right) + 1; }
size_t ahead_of(const EncoderConfig& config, AttentionContext context) {
  return config.style == ContextStyle::kRegular ? static_cast<size_t>(context.right) : 0;
}

}  // namespace

Status check_streaming(const EncoderConfig& config, AttentionContext context) {
  if (!config.cache_aware())
    return fail(Code::kUnsupported,
                "this model was trained on whole recordings: it cannot be streamed chunk by chunk, only in windows");
  if (context.left < 0 || context.right < 0 ||
      std::find(config.contexts.begin(), config.contexts.end(), context) == config.contexts.end())
    return fail(Code::kInvalidArgument, "a context of {} and {} frames is not one that this model was trained for",
                context.left, context.right);
  return {};
}

Result<AttentionContext> choose_context(const EncoderConfig& config, std::optional<int> look_ahead) {
  std::string known;
  for (const AttentionContext context : config.contexts) {
    if (!look_ahead || context.right == *look_ahead) {
      SYRINX_TRY_VOID(check_streaming(config, context));
      return context;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", context.right);
  }
  SYRINX_TRY_VOID(check_streaming(config, config.contexts.front()));
  return fail(Code::kInvalidArgument, "this model was not trained to look {} frames ahead, but {}", *look_ahead, known);
}

size_t first_chunk_mels(const EncoderConfig& config, AttentionContext context) {
  return 1 + config.factor * static_cast<size_t>(context.right);
}
size_t chunk_mels(const EncoderConfig& config, AttentionContext context) { return config.factor * chunk_of(context); }

EncoderState::EncoderState(const EncoderConfig& config, AttentionContext context, StreamMode mode)
    : mode_(mode),
      width_(config.width),
      layers_(config.layers),
      kernel_(config.kernel),
      prompts_(config.prompt.count),
      fallback_(config.prompt.fallback),
      chunk_(chunk_of(context)),
      left_(static_cast<size_t>(context.left)),
      ahead_(ahead_of(config, context)),
      ring_(chunk_ + left_ + ahead_),
      key_stride_((ring_ + kernels::kRelativeAttentionSlack + kCacheLineFloats - 1) / kCacheLineFloats *
                  kCacheLineFloats),
      gated_capacity_(kernel_ - 1 + chunk_ + kGatedSlide),
      keys_(layers_ * width_ * key_stride_),
      values_(layers_ * ring_ * width_),
      gated_(layers_ * gated_capacity_ * width_),
      held_(layers_ * ahead_ * 2 * width_),
      gated_first_(layers_),
      subsampling_(config, chunk_mels(config, context) + compat_mels(config)),
      mels_(mode == StreamMode::kExact ? 0 : (compat_mels(config) + chunk_mels(config, context)) * config.mels) {
  SYRINX_CHECK(mode == StreamMode::kExact || ahead_ == 0, "the maker's steps of blocks that see {} frames ahead",
               ahead_);
}

void EncoderState::reset() {
  std::fill(keys_.begin(), keys_.end(), 0.0f);
  std::fill(values_.begin(), values_.end(), 0.0f);
  std::fill(gated_.begin(), gated_.end(), 0.0f);
  std::fill(mels_.begin(), mels_.end(), 0.0f);
  std::fill(held_.begin(), held_.end(), 0.0f);
  std::fill(gated_first_.begin(), gated_first_.end(), size_t{0});
  position_ = 0;
  end_ = kNoEnd;
  prompt_ = fallback_;
  started_ = false;
  subsampling_.reset();
}

void EncoderState::set_prompt(size_t row) {
  SYRINX_CHECK(row < prompts_, "prompt {} of {}", row, prompts_);
  prompt_ = row;
}

void EncoderState::copy_from(const EncoderState& other) {
  SYRINX_CHECK(other.size_bytes() == size_bytes(), "a state of {} bytes, not {}", other.size_bytes(), size_bytes());
  std::copy(other.keys_.begin(), other.keys_.end(), keys_.begin());
  std::copy(other.values_.begin(), other.values_.end(), values_.begin());
  std::copy(other.gated_.begin(), other.gated_.end(), gated_.begin());
  std::copy(other.mels_.begin(), other.mels_.end(), mels_.begin());
  std::copy(other.held_.begin(), other.held_.end(), held_.begin());
  std::copy(other.gated_first_.begin(), other.gated_first_.end(), gated_first_.begin());
  prompt_ = other.prompt_;
  position_ = other.position_;
  end_ = other.end_;
  started_ = other.started_;
  subsampling_.copy_from(other.subsampling_);
}

size_t EncoderState::size_bytes() const {
  return (keys_.size() + values_.size() + gated_.size() + held_.size() + mels_.size()) * sizeof(float) +
         subsampling_.size_bytes();
}

}  // namespace syrinx::transducer
