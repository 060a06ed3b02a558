#include "audio/decode/pcm_stream.h"

#include <algorithm>

namespace syrinx {
namespace {

constexpr size_t kMaxHeadBytes = size_t{1} << 20;

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
    : name_(name), limits_(limits), sink_(sink), mixer_(limits, name, sink), format_(format) {}

Status PcmStream::begin(bool is_whole) {
  if (!format_) {
    SYRINX_TRY(const std::optional<WavHead> head, read_wav_head(bytes_, name_, limits_, is_whole));
    if (!head && bytes_.size() > kMaxHeadBytes)
      return fail(Code::kLimitExceeded, "'{}' has a WAV head of more than {} bytes", name_, kMaxHeadBytes);
    if (!head) return {};
    format_ = head->format;
    if (head->announced) left_ = *head->announced;
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
  if (format_->coding == PcmCoding::kFloat) {
    const Status scaled = range_.rescale(block_, name_);
    if (!mixer_.takes_parts()) SYRINX_TRY_VOID(scaled);
    if (!scaled && !clips_) sink_.warn(fmt::format("{}; they are clipped", scaled.error().message));
    clips_ |= !scaled;
  }
  return mixer_.add(block_);
}

Status PcmStream::decode_waiting(bool is_whole) {
  if (!begun_) SYRINX_TRY_VOID(begin(is_whole));
  if (begun_) SYRINX_TRY_VOID(decode());
  if (begun_ && left_ < format_->frame_bytes()) bytes_.clear();
  return {};
}

Status PcmStream::push(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return decode_waiting(false);
}

Status PcmStream::flush() {
  if (!begun_ && !format_) SYRINX_TRY_VOID(decode_waiting(true));  // bytes of a head that may be sound
  return mixer_.finish();
}

Status PcmStream::finish() {
  SYRINX_TRY_VOID(flush());
  if (mixer_.frames() == 0) return fail(Code::kDataLoss, "'{}' contains no audio", name_);
  if (sink_.warn && left_ != UINT64_MAX && left_ >= format_->frame_bytes())
    sink_.warn(fmt::format("'{}' is cut off: it announces {} bytes of sound more than it holds", name_, left_));
  return {};
}

}  // namespace syrinx
