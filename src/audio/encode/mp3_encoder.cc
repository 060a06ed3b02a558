#include "audio/encode/mp3_encoder.h"

#include <lame/lame.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <utility>
#include <vector>

namespace syrinx {
namespace {

constexpr size_t kBlock = 2304;                     // samples a call; two frames of the longest kind
constexpr size_t kBufferBytes = 2 * kBlock + 7200;  // the library's own bound is 1.25 bytes a sample and 7200
constexpr size_t kTagBytes = 2880;                  // the longest frame there is

struct Delete {
  void operator()(lame_t encoder) const { lame_close(encoder); }
};
using Lame = std::unique_ptr<lame_global_flags, Delete>;

void be_quiet(const char*, std::va_list) {}

class Mp3Encoder final : public AudioEncoder {
 public:
  Mp3Encoder(Lame encoder, ByteSink sink) : encoder_(std::move(encoder)), sink_(std::move(sink)) {}
  uint64_t clipped_samples() const override { return clipped_; }

 protected:
  Status encode(std::span<const float> samples) override {
    std::array<float, kBlock> block;
    std::array<unsigned char, kBufferBytes> out;
    while (!samples.empty()) {
      const size_t count = std::min(samples.size(), kBlock);
      for (size_t i = 0; i < count; ++i) {
        float sample = samples[i];
        if (!(sample >= -1.0f && sample <= 1.0f)) {
          ++clipped_;
          sample = std::isnan(sample) ? 0.0f : std::clamp(sample, -1.0f, 1.0f);
        }
        block[i] = sample;
      }
      SYRINX_TRY_VOID(put(lame_encode_buffer_ieee_float(encoder_.get(), block.data(), nullptr, static_cast<int>(count),
                                                        out.data(), static_cast<int>(out.size())),
                          out));
      samples = samples.subspan(count);
    }
    return {};
  }

  Status close() override {
    std::array<unsigned char, kBufferBytes> out;
    SYRINX_TRY_VOID(put(lame_encode_flush(encoder_.get(), out.data(), static_cast<int>(out.size())), out));
    if (!sink_.patch) return {};
    // The first frame was kept free for the tag, which knows the true length only now.
    std::array<unsigned char, kTagBytes> tag;
    const size_t size = lame_get_lametag_frame(encoder_.get(), tag.data(), tag.size());
    if (size == 0 || size > tag.size()) return {};
    return sink_.patch(0, std::as_bytes(std::span(tag).first(size)));
  }

 private:
  Status put(int size, std::span<const unsigned char> bytes) {
    if (size < 0) return fail(Code::kInternal, "the MP3 encoder failed with code {}", size);
    if (size == 0) return {};
    return sink_.append(std::as_bytes(bytes.first(static_cast<size_t>(size))));
  }

  Lame encoder_;
  ByteSink sink_;
  uint64_t clipped_ = 0;
};

}  // namespace

Result<std::unique_ptr<AudioEncoder>> make_mp3_encoder(const EncoderOptions& options, ByteSink sink) {
  constexpr std::array<int, 9> kRates = {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000};
  if (std::find(kRates.begin(), kRates.end(), options.rate_hz) == kRates.end()) {
    return fail(Code::kUnsupported, "MP3 cannot carry {} Hz; choose wav or flac", options.rate_hz);
  }
  Lame encoder(lame_init());
  if (!encoder) return fail(Code::kInternal, "there is no memory for the MP3 encoder");
  lame_t const lame = encoder.get();
  lame_set_errorf(lame, be_quiet);
  lame_set_msgf(lame, be_quiet);
  lame_set_debugf(lame, be_quiet);
  lame_set_num_channels(lame, 1);
  lame_set_mode(lame, MONO);
  lame_set_in_samplerate(lame, options.rate_hz);
  lame_set_out_samplerate(lame, options.rate_hz);
  lame_set_brate(lame, options.rate_hz < 16000 ? 48 : 96);
  lame_set_quality(lame, 3);
  lame_set_disable_reservoir(lame, 1);  // a frame leaves when it is made, not when later ones have filled it
  lame_set_write_id3tag_automatic(lame, 0);
  lame_set_bWriteVbrTag(lame, sink.patch ? 1 : 0);
  if (lame_init_params(lame) < 0) {
    return fail(Code::kInternal, "the MP3 encoder refuses {} Hz", options.rate_hz);
  }
  return std::make_unique<Mp3Encoder>(std::move(encoder), std::move(sink));
}

}  // namespace syrinx
