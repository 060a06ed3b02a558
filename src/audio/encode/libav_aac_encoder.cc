// The frames' headers are those of ISO/IEC 13818-7 (6.2, ADTS); FFmpeg would make them by a second library and a file
// of its own.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "audio/encode/aac_encoder.h"
#include "audio/libav.h"

namespace syrinx {
namespace {

constexpr std::array<int, 12> kRates = {96000, 88200, 64000, 48000, 44100, 32000,
                                        24000, 22050, 16000, 12000, 11025, 8000};  // by their number in the header
constexpr size_t kHeaderBytes = 7, kMostFrameBytes = 0x1FFF;

std::array<std::byte, kHeaderBytes> adts_header(size_t rate, size_t frame_bytes) {
  constexpr uint64_t kSync = 0xFFF1;  // MPEG-4, no checksum
  constexpr uint64_t kLowComplexity = 1, kMono = 1, kVariableRate = 0x7FF;
  const uint64_t header = kSync << 40 | kLowComplexity << 38 | rate << 34 | kMono << 30 |
                          static_cast<uint64_t>(frame_bytes) << 13 | kVariableRate << 2;
  std::array<std::byte, kHeaderBytes> bytes;
  for (size_t i = 0; i < kHeaderBytes; ++i) bytes[i] = static_cast<std::byte>(header >> (48 - 8 * i) & 0xFF);
  return bytes;
}

class AacEncoder final : public AudioEncoder {
 public:
  AacEncoder(const Libav& libav, ByteSink sink, size_t rate) : libav_(libav), sink_(std::move(sink)), rate_(rate) {}
  ~AacEncoder() override;
  Status open();
  uint64_t clipped_samples() const override { return clipped_; }

 protected:
  Status encode(std::span<const float> samples) override;
  Status close() override;

 private:
  // Null: what the encoder still holds comes out.
  Status send(const AVFrame* frame);
  Status put(const AVPacket& packet);
  Status failed(int error) const { return fail(Code::kInternal, "the AAC encoder failed: {}", libav_.sentence(error)); }

  const Libav& libav_;
  ByteSink sink_;
  const size_t rate_;
  AVCodecContext* codec_ = nullptr;
  AVFrame* frame_ = nullptr;
  AVPacket* packet_ = nullptr;
  size_t filled_ = 0;  // samples of the frame
  int64_t position_ = 0;
  uint64_t clipped_ = 0;
};

AacEncoder::~AacEncoder() {
  libav_.av_packet_free(&packet_);
  libav_.av_frame_free(&frame_);
  libav_.avcodec_free_context(&codec_);
}

Status AacEncoder::open() {
  const AVCodec* const encoder = libav_.avcodec_find_encoder_by_name("aac");
  if (encoder == nullptr)
    return fail(Code::kUnsupported, "FFmpeg's libraries here were built without their AAC encoder");
  codec_ = libav_.avcodec_alloc_context3(encoder);
  frame_ = libav_.av_frame_alloc();
  packet_ = libav_.av_packet_alloc();
  if (codec_ == nullptr || frame_ == nullptr || packet_ == nullptr)
    return fail(Code::kInternal, "there is no memory for the AAC encoder");
  codec_->sample_rate = kRates[rate_];
  codec_->sample_fmt = AV_SAMPLE_FMT_FLTP;
  codec_->bit_rate = kRates[rate_] < 16000 ? 32000 : 64000;
  codec_->time_base = {1, kRates[rate_]};
  codec_->thread_count = 1;
  libav_.av_channel_layout_default(&codec_->ch_layout, 1);
  if (const int error = libav_.avcodec_open2(codec_, encoder, nullptr); error < 0) return failed(error);
  frame_->nb_samples = codec_->frame_size;
  frame_->format = AV_SAMPLE_FMT_FLTP;
  frame_->sample_rate = codec_->sample_rate;
  libav_.av_channel_layout_default(&frame_->ch_layout, 1);
  if (const int error = libav_.av_frame_get_buffer(frame_, 0); error < 0) return failed(error);
  return {};
}

Status AacEncoder::encode(std::span<const float> samples) {
  const auto frame_size = static_cast<size_t>(codec_->frame_size);
  while (!samples.empty()) {
    // The encoder may still look at the frame before.
    if (const int error = filled_ == 0 ? libav_.av_frame_make_writable(frame_) : 0; error < 0) return failed(error);
    auto* const out = reinterpret_cast<float*>(frame_->data[0]);
    const size_t count = std::min(samples.size(), frame_size - filled_);
    for (size_t i = 0; i < count; ++i) {
      float sample = samples[i];
      if (!(sample >= -1.0f && sample <= 1.0f)) {
        ++clipped_;
        sample = std::isnan(sample) ? 0.0f : std::clamp(sample, -1.0f, 1.0f);
      }
      out[filled_ + i] = sample;
    }
    filled_ += count;
    samples = samples.subspan(count);
    if (filled_ == frame_size) SYRINX_TRY_VOID(send(frame_));
  }
  return {};
}

Status AacEncoder::close() {
  if (filled_ > 0) {
    const float silence = 0;
    while (filled_ > 0) SYRINX_TRY_VOID(encode(std::span(&silence, 1)));
  }
  return send(nullptr);
}

Status AacEncoder::send(const AVFrame* frame) {
  if (frame != nullptr) {
    frame_->pts = position_;
    position_ += frame_->nb_samples;
    filled_ = 0;
  }
  if (const int error = libav_.avcodec_send_frame(codec_, frame); error < 0) return failed(error);
  for (;;) {
    const int error = libav_.avcodec_receive_packet(codec_, packet_);
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return {};
    if (error < 0) return failed(error);
    Status put_packet = put(*packet_);
    libav_.av_packet_unref(packet_);
    if (!put_packet) return put_packet;
  }
}

Status AacEncoder::put(const AVPacket& packet) {
  const auto size = static_cast<size_t>(packet.size);
  if (size == 0) return {};  // nothing but side data
  if (size + kHeaderBytes > kMostFrameBytes)
    return fail(Code::kInternal, "the AAC encoder made {} bytes at once", size);
  SYRINX_TRY_VOID(sink_.append(adts_header(rate_, size + kHeaderBytes)));
  return sink_.append(std::as_bytes(std::span(packet.data, size)));
}

}  // namespace

Result<std::unique_ptr<AudioEncoder>> make_aac_encoder(const EncoderOptions& options, ByteSink sink) {
  const auto* const rate = std::find(kRates.begin(), kRates.end(), options.rate_hz);
  if (rate == kRates.end())
    return fail(Code::kUnsupported, "AAC cannot carry {} Hz; choose wav or flac", options.rate_hz);
  const Result<const Libav*> libav = find_libav();
  if (!libav) return tl::unexpected(no_aac(libav.error()));
  auto encoder = std::make_unique<AacEncoder>(**libav, std::move(sink), static_cast<size_t>(rate - kRates.begin()));
  SYRINX_TRY_VOID(encoder->open());
  return encoder;
}

}  // namespace syrinx
