#include "audio/encode/flac_encoder.h"

#include <FLAC/stream_encoder.h>

#include <algorithm>
#include <array>
#include <utility>

#include "audio/pcm.h"

namespace syrinx {
namespace {

constexpr size_t kBlock = 1152;  // 48 ms at 24 kHz: the delay of a stream

struct Delete {
  void operator()(FLAC__StreamEncoder* encoder) const { FLAC__stream_encoder_delete(encoder); }
};

class FlacEncoder final : public AudioEncoder {
 public:
  FlacEncoder(const EncoderOptions& options, ByteSink sink)
      : rate_hz_(options.rate_hz), sink_(std::move(sink)), encoder_(FLAC__stream_encoder_new()) {
    if (options.dither_seed) quantizer_ = PcmQuantizer(*options.dither_seed);
  }
  ~FlacEncoder() override {
    // Deleting a running encoder finishes it, which would write: after an error or without finish() nothing may.
    discard_ = true;
    encoder_.reset();
  }
  uint64_t clipped_samples() const override { return quantizer_.clipped_samples(); }

 protected:
  Status encode(std::span<const float> samples) override {
    SYRINX_TRY_VOID(start());
    std::array<int16_t, kBlock> narrow;
    std::array<FLAC__int32, kBlock> wide;
    while (!samples.empty()) {
      const size_t count = std::min(samples.size(), kBlock);
      quantizer_.convert(samples.first(count), std::span(narrow).first(count));
      std::copy_n(narrow.begin(), count, wide.begin());
      if (!FLAC__stream_encoder_process_interleaved(encoder_.get(), wide.data(), static_cast<uint32_t>(count))) {
        return failure();
      }
      samples = samples.subspan(count);
    }
    return {};
  }

  Status close() override {
    SYRINX_TRY_VOID(start());
    if (!FLAC__stream_encoder_finish(encoder_.get()) || !status_) return failure();
    return {};
  }

 private:
  Status start() {
    if (std::exchange(started_, true)) return {};
    FLAC__StreamEncoder* const encoder = encoder_.get();
    if (encoder == nullptr) return fail(Code::kInternal, "there is no memory for the FLAC encoder");
    FLAC__stream_encoder_set_channels(encoder, 1);
    FLAC__stream_encoder_set_bits_per_sample(encoder, 16);
    FLAC__stream_encoder_set_sample_rate(encoder, static_cast<uint32_t>(rate_hz_));
    FLAC__stream_encoder_set_compression_level(encoder, 5);
    FLAC__stream_encoder_set_blocksize(encoder, kBlock);  // after the level, which sets it too
    const bool seekable = static_cast<bool>(sink_.patch);
    const auto answer = FLAC__stream_encoder_init_stream(encoder, &FlacEncoder::on_write, seekable ? &on_seek : nullptr,
                                                         seekable ? &on_tell : nullptr, nullptr, this);
    if (!status_) return failure();
    if (answer != FLAC__STREAM_ENCODER_INIT_STATUS_OK) {
      return fail(Code::kUnsupported, "FLAC cannot carry {} Hz: {}", rate_hz_,
                  FLAC__StreamEncoderInitStatusString[answer]);
    }
    return {};
  }

  Status failure() {
    if (!status_) return status_;
    return fail(Code::kInternal, "the FLAC encoder failed: {}",
                FLAC__stream_encoder_get_resolved_state_string(encoder_.get()));
  }

  // The encoder appends frames, and at the end seeks back to its header once.
  static FLAC__StreamEncoderWriteStatus on_write(const FLAC__StreamEncoder*, const FLAC__byte* data, size_t size,
                                                 uint32_t, uint32_t, void* client) {
    auto& self = *static_cast<FlacEncoder*>(client);
    if (self.discard_) return FLAC__STREAM_ENCODER_WRITE_STATUS_FATAL_ERROR;
    const auto bytes = std::as_bytes(std::span(data, size));
    self.status_ = self.position_ == self.end_ ? self.sink_.append(bytes) : self.sink_.patch(self.position_, bytes);
    if (!self.status_) return FLAC__STREAM_ENCODER_WRITE_STATUS_FATAL_ERROR;
    self.position_ += size;
    self.end_ = std::max(self.end_, self.position_);
    return FLAC__STREAM_ENCODER_WRITE_STATUS_OK;
  }
  static FLAC__StreamEncoderSeekStatus on_seek(const FLAC__StreamEncoder*, FLAC__uint64 offset, void* client) {
    auto& self = *static_cast<FlacEncoder*>(client);
    if (self.discard_ || offset > self.end_) return FLAC__STREAM_ENCODER_SEEK_STATUS_ERROR;
    self.position_ = offset;
    return FLAC__STREAM_ENCODER_SEEK_STATUS_OK;
  }
  static FLAC__StreamEncoderTellStatus on_tell(const FLAC__StreamEncoder*, FLAC__uint64* offset, void* client) {
    *offset = static_cast<FlacEncoder*>(client)->position_;
    return FLAC__STREAM_ENCODER_TELL_STATUS_OK;
  }

  const int rate_hz_;
  ByteSink sink_;
  PcmQuantizer quantizer_;
  std::unique_ptr<FLAC__StreamEncoder, Delete> encoder_;
  Status status_;
  uint64_t position_ = 0, end_ = 0;
  bool started_ = false;
  bool discard_ = false;
};

}  // namespace

Result<std::unique_ptr<AudioEncoder>> make_flac_encoder(const EncoderOptions& options, ByteSink sink) {
  return std::make_unique<FlacEncoder>(options, std::move(sink));
}

}  // namespace syrinx
