#include "audio/decode/pcm_stream.h"

#include <algorithm>

namespace syrinx {
namespace {

constexpr size_t kMaxHeadBytes = size_t{1} << 20;
constexpr uint32_t kLikelyUnknownSize = 0x7FFFF000;  // programs that cannot seek write such numbers

}  // namespace

Result<PcmFormat> parse_pcm_format(std::string_view name) {
  if (name == "s16") return PcmFormat{.bits = 16, .coding = PcmCoding::kInteger};
  if (name == "f32") return PcmFormat{.bits = 32, .coding = PcmCoding::kFloat};
  if (name == "mulaw") return PcmFormat{.bits = 8, .coding = PcmCoding::kMuLaw};
  if (name == "alaw") return PcmFormat{.bits = 8, .coding = PcmCoding::kALaw};
  return fail(Code::kInvalidArgument, "there are no raw samples '{}'; use s16, f32, mulaw or alaw", name);
}

PcmStream::PcmStream(std::optional<PcmFormat> format, const std::string& name, const SoundLimits& limits,
                     const SoundSink& sink)
    : name_(name), limits_(limits), mixer_(limits, name, sink), format_(format) {}

Status PcmStream::begin() {
  if (!format_) {
    SYRINX_TRY(const std::optional<WavHead> head, read_wav_head(bytes_, name_, limits_));
    if (!head && bytes_.size() > kMaxHeadBytes)
      return fail(Code::kLimitExceeded, "'{}' has a WAV head of more than {} bytes", name_, kMaxHeadBytes);
    if (!head) return {};
    format_ = head->format;
    if (head->announced < kLikelyUnknownSize) left_ = head->announced;
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(head->bytes));
  }
  begun_ = true;
  return mixer_.begin(format_->channels, format_->rate_hz);
}

Status PcmStream::decode() {
  const size_t frame = format_->frame_bytes();
  const size_t frames = static_cast<size_t>(std::min<uint64_t>(bytes_.size(), left_)) / frame;
  if (frames == 0) return {};
  decode_pcm(std::span(bytes_).first(frames * frame), *format_, block_);
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(frames * frame));
  if (left_ != UINT64_MAX) left_ -= frames * frame;
  return mixer_.add(block_);
}

Status PcmStream::push(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  if (!begun_) SYRINX_TRY_VOID(begin());
  if (begun_) SYRINX_TRY_VOID(decode());
  if (begun_ && left_ < format_->frame_bytes()) bytes_.clear();
  return {};
}

Status PcmStream::finish() const {
  if (mixer_.frames() > 0) return {};
  return fail(Code::kDataLoss, "'{}' contains no audio", name_);
}

}  // namespace syrinx
