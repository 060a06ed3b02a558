#include "audio/encode/encoder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "audio/encode/aac_encoder.h"
#include "audio/encode/flac_encoder.h"
#include "audio/encode/mp3_encoder.h"
#include "audio/encode/opus_encoder.h"
#include "audio/pcm.h"
#include "audio/wav.h"

namespace syrinx {
namespace {

constexpr std::array<const char*, 6> kNames = {"wav", "pcm", "flac", "opus", "mp3", "aac"};

// Samples are quantised in blocks of this size, so that memory does not depend on the length of a write.
constexpr size_t kBlock = 4096;

// wav and pcm: the second is the first without its header.
class RawEncoder final : public AudioEncoder {
 public:
  RawEncoder(bool with_header, const EncoderOptions& options, ByteSink sink)
      : with_header_(with_header), rate_hz_(options.rate_hz), sink_(std::move(sink)) {
    if (options.dither_seed) quantizer_ = PcmQuantizer(*options.dither_seed);
  }
  uint64_t clipped_samples() const override { return quantizer_.clipped_samples(); }

 protected:
  Status encode(std::span<const float> samples) override {
    SYRINX_TRY_VOID(start());
    std::array<int16_t, kBlock> block;
    while (!samples.empty()) {
      const size_t count = std::min(samples.size(), kBlock);
      quantizer_.convert(samples.first(count), std::span(block).first(count));
      SYRINX_TRY_VOID(sink_.append(std::as_bytes(std::span(block).first(count))));
      data_bytes_ += count * sizeof(int16_t);
      samples = samples.subspan(count);
    }
    return {};
  }

  Status close() override {
    SYRINX_TRY_VOID(start());
    if (!with_header_ || !sink_.patch) return {};
    return sink_.patch(0, wav_header(rate_hz_, data_bytes_));
  }

 private:
  Status start() {
    if (!with_header_ || std::exchange(started_, true)) return {};
    return sink_.append(wav_header(rate_hz_, std::nullopt));
  }

  const bool with_header_;
  const int rate_hz_;
  ByteSink sink_;
  PcmQuantizer quantizer_;
  uint64_t data_bytes_ = 0;
  bool started_ = false;
};

}  // namespace

const char* audio_format_name(AudioFormat format) { return kNames[static_cast<size_t>(format)]; }

Result<AudioFormat> parse_audio_format(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<AudioFormat>(i);
  }
  return fail(Code::kInvalidArgument, "sound format '{}' is unknown; choose wav, pcm, flac, opus, mp3 or aac", name);
}

std::optional<AudioFormat> audio_format_of(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || path.find('/', dot) != std::string_view::npos) return std::nullopt;
  std::string ending(path.substr(dot + 1));
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (ending == "wave") return AudioFormat::kWav;
  if (ending == "raw") return AudioFormat::kPcm;
  if (ending == "ogg") return AudioFormat::kOpus;
  const auto format = parse_audio_format(ending);
  return format ? std::optional(*format) : std::nullopt;
}

Result<std::unique_ptr<AudioEncoder>> AudioEncoder::create(AudioFormat format, const EncoderOptions& options,
                                                           ByteSink sink) {
  if (options.rate_hz < 8000 || options.rate_hz > 192000) {
    return fail(Code::kUnsupported, "sound at {} Hz cannot be written; 8000 to 192000 Hz can", options.rate_hz);
  }
  switch (format) {
    case AudioFormat::kWav: return std::make_unique<RawEncoder>(true, options, std::move(sink));
    case AudioFormat::kPcm: return std::make_unique<RawEncoder>(false, options, std::move(sink));
    case AudioFormat::kFlac: return make_flac_encoder(options, std::move(sink));
    case AudioFormat::kOpus: return make_opus_encoder(options, std::move(sink));
    case AudioFormat::kMp3: return make_mp3_encoder(options, std::move(sink));
    case AudioFormat::kAac: return make_aac_encoder(options, std::move(sink));
  }
  return fail(Code::kInternal, "sound format {} is unknown", static_cast<int>(format));
}

Status AudioEncoder::remember(Status status) {
  if (!status) error_ = status.error();
  return status;
}

Status AudioEncoder::write(std::span<const float> samples) {
  if (error_) return tl::unexpected(*error_);
  if (finished_) return fail(Code::kInternal, "sound written to an encoder that has finished");
  if (samples.empty()) return {};
  samples_ += samples.size();
  return remember(encode(samples));
}

Status AudioEncoder::finish() {
  if (error_) return tl::unexpected(*error_);
  if (std::exchange(finished_, true)) return fail(Code::kInternal, "an encoder finished twice");
  return remember(close());
}

}  // namespace syrinx
