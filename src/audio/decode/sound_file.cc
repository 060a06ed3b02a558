#include "audio/decode/sound_file.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include "audio/child/child_decoder.h"
#include "audio/decode/flac_decoder.h"
#include "audio/decode/mp3_decoder.h"
#include "audio/decode/opus_decoder.h"
#include "audio/decode/sndfile_decoder.h"
#include "audio/decode/vorbis_decoder.h"
#include "audio/guards/ogg_pages.h"
#include "audio/guards/sound_container.h"
#include "audio/wav.h"
#include "base/watched_file.h"

namespace syrinx {
namespace {

constexpr size_t kTagHeaderBytes = 10;
// Pages that were read leave memory after so many samples, so that a file of hours does not fill it.
constexpr uint64_t kReleaseAfter = uint64_t{1} << 22;

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

Status decode_pages(std::span<const std::byte> pages, OggCodec codec, const std::string& name, MonoMixer& mixer) {
  switch (codec) {
    case OggCodec::kOpus: return decode_opus(pages, name, mixer);
    case OggCodec::kVorbis: return decode_vorbis(pages, name, mixer);
    case OggCodec::kFlac: return decode_in_child(pages, SoundContainer::kOggFlac, name, mixer);
  }
  return fail(Code::kInternal, "'{}' is an Ogg file of an unknown codec", name);
}

Status decode_ogg(std::span<const std::byte> sound, const std::string& name, MonoMixer& mixer) {
  SYRINX_TRY(const OggPages pages, check_ogg_pages(sound, name));
  if (!mixer.takes_parts()) SYRINX_TRY_VOID(pages.status);
  if (!pages.status) sound = sound.first(pages.bytes);
  Status decoded = decode_pages(sound, pages.codec, name, mixer);
  return pages.status || mixer.has_refused() ? decoded : pages.status;
}

Status decode(std::span<const std::byte> sound, const std::string& name, const SoundLimits& limits, MonoMixer& mixer) {
  if (begins_with(sound, "RIFF")) {
    Status status = decode_wav(sound, name, limits, mixer);
    if (status || status.error().code != Code::kUnsupported) return status;
    // Kinds that our reader leaves to libsndfile: ADPCM, GSM, floats of 64 bits.
    Status other = decode_sndfile(sound, name, mixer);
    return !other && other.error().code == Code::kUnsupported ? status : other;
  }
  if (begins_with(sound, "fLaC")) return decode_flac(sound, name, mixer);
  if (begins_with(sound, "OggS")) return decode_ogg(sound, name, mixer);
  if (const auto container = container_of(sound)) return decode_in_child(sound, *container, name, mixer);
  if (looks_like_mp3(sound)) return decode_mp3(sound, name, mixer);
  return decode_sndfile(sound, name, mixer);
}

}  // namespace

Status read_sound(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits,
                  const SoundSink& sink) {
  if (file.empty()) return fail(Code::kDataLoss, "'{}' is empty; a recording is needed", name);
  MonoMixer mixer(limits, name, sink);
  const Status decoded = decode(after_tags(file), name, limits, mixer);
  const bool is_damaged = !decoded && decoded.error().code == Code::kDataLoss && !mixer.has_refused();
  const bool is_part = is_damaged && mixer.takes_parts() && mixer.frames() > 0;
  if (!is_part) SYRINX_TRY_VOID(decoded);
  if (mixer.frames() == 0) return fail(Code::kDataLoss, "'{}' contains no audio", name);
  SYRINX_TRY_VOID(mixer.finish());
  if (is_part)
    sink.warn(fmt::format("{}; only the first {:.1f} s were read", decoded.error().message, mixer.seconds()));
  return {};
}

SoundSink while_unchanged(const WatchedFile& file, const SoundSink& sink) {
  SoundSink unchanged = sink;
  unchanged.add = [&](std::span<const float> samples) -> Status {
    SYRINX_TRY_VOID(file.check());
    return sink.add(samples);
  };
  unchanged.looked = [&](uint64_t samples) -> Status {
    SYRINX_TRY_VOID(file.check());
    return sink.looked ? sink.looked(samples) : Status();
  };
  return unchanged;
}

Status read_sound(const std::string& path, const SoundLimits& limits, const SoundSink& sink) {
  SYRINX_TRY(const WatchedFile file, WatchedFile::open(path));
  const SoundSink unchanged = while_unchanged(file, sink);
  uint64_t since_release = 0;
  SoundSink releasing = sink;
  const auto release_behind = [&](uint64_t samples) {
    since_release += samples;
    if (since_release < kReleaseAfter) return;
    since_release = 0;
    file.release();
  };
  releasing.add = [&](std::span<const float> samples) {
    release_behind(samples.size());
    return unchanged.add(samples);
  };
  releasing.looked = [&](uint64_t samples) {
    release_behind(samples);
    return unchanged.looked(samples);
  };
  Status status = read_sound(file.bytes(), path, limits, releasing);
  SYRINX_TRY_VOID(file.check());
  return status;
}

}  // namespace syrinx
