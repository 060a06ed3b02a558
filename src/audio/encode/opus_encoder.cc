// Ogg Opus, RFC 7845: an identification page, a comment page, then packets of 20 ms.  Positions in the pages count
// samples at 48 kHz whatever the encoder is fed with; the first `pre-skip` of them are the encoder's delay.
#include "audio/encode/opus_encoder.h"

#include <ogg/ogg.h>
#include <opus.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace syrinx {
namespace {

constexpr int kPositionRate = 48000;
constexpr int kBitrate = 48000;
constexpr int kSerial = 0x53595258;       // one stream a file, so any number will do; a fixed one keeps output the same
constexpr size_t kMaxPacketBytes = 1276;  // one mono frame of at most 1275 bytes and its table byte

struct Delete {
  void operator()(OpusEncoder* encoder) const { opus_encoder_destroy(encoder); }
};

void put_u16(std::string& to, unsigned value) {
  for (int shift = 0; shift < 16; shift += 8) to += static_cast<char>(value >> shift);
}
void put_u32(std::string& to, unsigned value) {
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(value >> shift);
}

class OggOpusEncoder final : public AudioEncoder {
 public:
  OggOpusEncoder(int rate_hz, ByteSink sink, std::unique_ptr<OpusEncoder, Delete> encoder)
      : rate_hz_(rate_hz), sink_(std::move(sink)), encoder_(std::move(encoder)) {
    frame_.reserve(frame_size());
    opus_encoder_ctl(encoder_.get(), OPUS_SET_BITRATE(kBitrate));
    opus_encoder_ctl(encoder_.get(), OPUS_SET_SIGNAL(OPUS_SIGNAL_VOICE));
    opus_int32 delay = 0;
    opus_encoder_ctl(encoder_.get(), OPUS_GET_LOOKAHEAD(&delay));
    pre_skip_ = delay * (kPositionRate / rate_hz_);
    ogg_stream_init(&stream_, kSerial);
  }
  ~OggOpusEncoder() override { ogg_stream_clear(&stream_); }
  uint64_t clipped_samples() const override { return clipped_; }

 protected:
  Status encode(std::span<const float> samples) override {
    SYRINX_TRY_VOID(start());
    for (float sample : samples) {
      if (!(sample >= -1.0f && sample <= 1.0f)) {
        ++clipped_;
        sample = std::isnan(sample) ? 0.0f : std::clamp(sample, -1.0f, 1.0f);
      }
      frame_.push_back(sample);
      if (frame_.size() == frame_size()) SYRINX_TRY_VOID(put_frame(false));
    }
    return put_pages(true);
  }

  Status close() override {
    SYRINX_TRY_VOID(start());
    // Silence pushes the encoder's delay out; what is too much is trimmed by the position of the last page.
    end_ = pre_skip_ + static_cast<int64_t>(this->samples()) * (kPositionRate / rate_hz_);
    while (position_ < end_) {
      frame_.resize(frame_size(), 0.0f);
      SYRINX_TRY_VOID(put_frame(position_ + kPositionRate / 50 >= end_));
    }
    return put_pages(true);
  }

 private:
  size_t frame_size() const { return static_cast<size_t>(rate_hz_ / 50); }

  Status start() {
    if (std::exchange(started_, true)) return {};
    std::string head = "OpusHead";
    head += '\1';  // version
    head += '\1';  // channels
    put_u16(head, static_cast<unsigned>(pre_skip_));
    put_u32(head, static_cast<unsigned>(rate_hz_));
    put_u16(head, 0);  // gain
    head += '\0';      // channel mapping family
    SYRINX_TRY_VOID(put_header(head));
    const std::string vendor = std::string("Syrinx with ") + opus_get_version_string();
    std::string tags = "OpusTags";
    put_u32(tags, static_cast<unsigned>(vendor.size()));
    tags += vendor;
    put_u32(tags, 0);
    return put_header(tags);
  }

  Status put_header(std::string& content) {
    return put_packet(reinterpret_cast<unsigned char*>(content.data()), content.size(), 0, false, true);
  }

  Status put_frame(bool last) {
    std::array<unsigned char, kMaxPacketBytes> bytes;
    const int size = opus_encode_float(encoder_.get(), frame_.data(), static_cast<int>(frame_.size()), bytes.data(),
                                       static_cast<opus_int32>(bytes.size()));
    frame_.clear();
    if (size < 0) return fail(Code::kInternal, "the Opus encoder failed: {}", opus_strerror(size));
    position_ += kPositionRate / 50;
    return put_packet(bytes.data(), static_cast<size_t>(size), last ? end_ : position_, last, false);
  }

  Status put_packet(unsigned char* data, size_t size, int64_t position, bool last, bool own_page) {
    ogg_packet packet{};
    packet.packet = data;
    packet.bytes = static_cast<long>(size);
    packet.b_o_s = packets_ == 0;
    packet.e_o_s = last;
    packet.granulepos = position;
    packet.packetno = packets_++;
    if (ogg_stream_packetin(&stream_, &packet) != 0) return fail(Code::kInternal, "the Ogg stream refused a packet");
    return put_pages(own_page);
  }

  // Full pages, or with `all` what there is.
  Status put_pages(bool all) {
    ogg_page page;
    while ((all ? ogg_stream_flush(&stream_, &page) : ogg_stream_pageout(&stream_, &page)) != 0) {
      SYRINX_TRY_VOID(sink_.append(std::as_bytes(std::span(page.header, static_cast<size_t>(page.header_len)))));
      SYRINX_TRY_VOID(sink_.append(std::as_bytes(std::span(page.body, static_cast<size_t>(page.body_len)))));
    }
    return {};
  }

  const int rate_hz_;
  ByteSink sink_;
  std::unique_ptr<OpusEncoder, Delete> encoder_;
  ogg_stream_state stream_{};
  std::vector<float> frame_;
  int64_t pre_skip_ = 0;
  int64_t position_ = 0;  // at 48 kHz, after the last packet
  int64_t end_ = 0;
  ogg_int64_t packets_ = 0;
  uint64_t clipped_ = 0;
  bool started_ = false;
};

}  // namespace

Result<std::unique_ptr<AudioEncoder>> make_opus_encoder(const EncoderOptions& options, ByteSink sink) {
  constexpr std::array<int, 5> kRates = {8000, 12000, 16000, 24000, 48000};
  if (std::find(kRates.begin(), kRates.end(), options.rate_hz) == kRates.end()) {
    return fail(Code::kUnsupported, "Opus cannot carry {} Hz, only 8, 12, 16, 24 and 48 kHz; choose wav, flac or mp3",
                options.rate_hz);
  }
  int error = OPUS_OK;
  std::unique_ptr<OpusEncoder, Delete> encoder(opus_encoder_create(options.rate_hz, 1, OPUS_APPLICATION_AUDIO, &error));
  if (error != OPUS_OK) return fail(Code::kInternal, "the Opus encoder cannot start: {}", opus_strerror(error));
  return std::make_unique<OggOpusEncoder>(options.rate_hz, std::move(sink), std::move(encoder));
}

}  // namespace syrinx
