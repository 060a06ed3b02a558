#include "audio/recording.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include "audio/flac_decoder.h"
#include "audio/mono_collector.h"
#include "audio/mp3_decoder.h"
#include "audio/ogg_pages.h"
#include "audio/opus_decoder.h"
#include "audio/vorbis_decoder.h"
#include "base/mapped_file.h"

namespace syrinx {
namespace {

constexpr size_t kTagHeaderBytes = 10;

bool begins_with(std::span<const std::byte> bytes, std::string_view tag) {
  return bytes.size() >= tag.size() && std::memcmp(bytes.data(), tag.data(), tag.size()) == 0;
}

// ID3v2 (id3.org, section 3.1 of version 2.4.0): three letters, version, flags, size in four bytes of seven bits.
std::span<const std::byte> after_tags(std::span<const std::byte> file) {
  while (file.size() >= kTagHeaderBytes && begins_with(file, "ID3")) {
    size_t size = 0;
    for (size_t i = 6; i < kTagHeaderBytes; ++i) size = size << 7 | (std::to_integer<size_t>(file[i]) & 0x7F);
    const bool has_footer = (std::to_integer<unsigned>(file[5]) & 0x10) != 0;
    size += has_footer ? 2 * kTagHeaderBytes : kTagHeaderBytes;
    if (size >= file.size()) return {};
    file = file.subspan(size);
  }
  return file;
}

Result<Recording> read_wav_recording(std::span<const std::byte> file, const std::string& name,
                                     const SoundLimits& limits) {
  SYRINX_TRY(const WavSound sound, read_wav(file, name, limits));
  SYRINX_TRY(MonoCollector collector, MonoCollector::create(sound.channels, sound.rate_hz, limits, name));
  SYRINX_TRY_VOID(collector.add(sound.samples));
  return std::move(collector).take();
}

Result<Recording> decode(std::span<const std::byte> sound, const std::string& name, const SoundLimits& limits) {
  if (begins_with(sound, "RIFF")) return read_wav_recording(sound, name, limits);
  if (begins_with(sound, "fLaC")) return decode_flac(sound, name, limits);
  if (begins_with(sound, "OggS")) {
    SYRINX_TRY(const OggCodec codec, check_ogg_pages(sound, name));
    return codec == OggCodec::kOpus ? decode_opus(sound, name, limits) : decode_vorbis(sound, name, limits);
  }
  if (looks_like_mp3(sound)) return decode_mp3(sound, name, limits);
  return fail(Code::kUnsupported, "'{}' is no sound that is read here: WAV, FLAC, MP3, or Ogg with Vorbis or Opus",
              name);
}

}  // namespace

Result<Recording> read_recording(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits) {
  if (file.empty()) return fail(Code::kDataLoss, "'{}' is empty; a recording is needed", name);
  if (file.size() > kMaxRecordingBytes)
    return fail(Code::kLimitExceeded, "'{}' has {} bytes; recordings of up to {} are read", name, file.size(),
                kMaxRecordingBytes);
  SYRINX_TRY(Recording recording, decode(after_tags(file), name, limits));
  if (recording.samples.empty()) return fail(Code::kDataLoss, "'{}' has no sound in it", name);
  return recording;
}

Result<Recording> read_recording(const std::string& path, const SoundLimits& limits) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  return read_recording(file.bytes(), path, limits);
}

}  // namespace syrinx
