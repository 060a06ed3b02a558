#include "cli/speak_output.h"

#include <unistd.h>

#include "cli/output.h"
#include "engine/speech/speech_session.h"

namespace syrinx::cli {
namespace {

Result<AudioFormat> choose_format(const OutputOptions& options) {
  if (!options.format.empty()) return parse_audio_format(options.format);
  if (options.file == "-") return AudioFormat::kWav;
  if (const auto format = audio_format_of(options.file)) return *format;
  const size_t name = options.file.find_last_of('/') + 1;
  if (options.file.find('.', name) == std::string::npos) return AudioFormat::kWav;
  return fail(Code::kInvalidArgument,
              "the ending of '{}' names no format; add --format wav, pcm, flac, opus, mp3 or aac", options.file);
}

}  // namespace

Result<std::unique_ptr<SpeechOutput>> SpeechOutput::open(const OutputOptions& options, int rate_hz) {
  if (options.file.empty() && !options.format.empty())
    return fail(Code::kInvalidArgument, "--format needs a file; add --out FILE, or --out - for standard output");
  std::unique_ptr<SpeechOutput> output(new SpeechOutput(rate_hz));
  if (!options.file.empty()) SYRINX_TRY_VOID(output->open_file(options));
  if (options.file.empty() || options.play) {
    auto playback = Playback::open({.rate_hz = rate_hz});
    if (!playback && !options.play) return fail(playback.error().code, "{} (--out FILE)", playback.error().message);
    if (!playback) return tl::unexpected(std::move(playback).error());
    output->playback_ = std::move(*playback);
    if (output->where_.empty()) output->where_ = "the loudspeaker";
  }
  return output;
}

Status SpeechOutput::open_file(const OutputOptions& options) {
  SYRINX_TRY(const AudioFormat format, choose_format(options));
  ByteSink sink;
  if (options.file == "-") {
    if (is_terminal(STDOUT_FILENO))
      return fail(Code::kInvalidArgument,
                  "standard output is a terminal, which cannot play audio; redirect it, or use --out FILE");
    where_ = "standard output";
    sink = descriptor_sink(STDOUT_FILENO, where_);
  } else {
    SYRINX_TRY(file_, ScopedFile::create(options.file));
    to_file_ = true;
    where_ = options.file;
    sink = file_sink(file_);
  }
  SYRINX_TRY(encoder_, AudioEncoder::create(format, {.rate_hz = rate_hz_}, std::move(sink)));
  return {};
}

Status SpeechOutput::write(std::span<const float> samples, const std::atomic<bool>& cancel) {
  if (encoder_ != nullptr) SYRINX_TRY_VOID(encoder_->write(samples));
  if (playback_ != nullptr) SYRINX_TRY_VOID(playback_->play(samples, cancel));
  return {};
}

Status SpeechOutput::finish(const std::atomic<bool>& cancel) {
  if (encoder_ != nullptr) SYRINX_TRY_VOID(encoder_->finish());
  if (to_file_) SYRINX_TRY_VOID(file_.commit());
  if (playback_ != nullptr) SYRINX_TRY_VOID(playback_->drain(cancel));
  return {};
}

}  // namespace syrinx::cli
