// RFC 8794 (EBML, its header), ISO/IEC 13818-7 (ADTS, 6.2), Microsoft's ASF specification (10.1), RFC 4867 (AMR, 5.1).
#include "audio/guards/sound_container.h"

#include <cstdint>
#include <cstring>
#include <string_view>

namespace syrinx {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t kEbml = 0x1A45DFA3;
constexpr size_t kAdtsHeaderBytes = 7;

uint64_t read_be(Bytes file, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | std::to_integer<uint64_t>(file[at + i]);
  return value;
}

bool has_tag(Bytes file, size_t at, std::string_view tag) {
  return at <= file.size() && tag.size() <= file.size() - at &&
         std::memcmp(file.data() + at, tag.data(), tag.size()) == 0;
}

bool is_longer(uint64_t size, size_t at, Bytes file) { return size > file.size() - at; }

// Length of the AAC frame whose header is at `at`, where there is one.
std::optional<size_t> adts_frame_bytes(Bytes file, size_t at) {
  if (at > file.size() || file.size() - at < kAdtsHeaderBytes) return std::nullopt;
  const uint64_t header = read_be(file, at, kAdtsHeaderBytes);
  const uint64_t sync = header >> 44, layer = header >> 41 & 3, rate = header >> 34 & 15, size = header >> 13 & 0x1FFF;
  if (sync != 0xFFF || layer != 0 || rate > 12 || size < kAdtsHeaderBytes) return std::nullopt;
  return size;
}

bool looks_like_adts(Bytes file) {
  const std::optional<size_t> first = adts_frame_bytes(file, 0);
  return first && (is_longer(*first + kAdtsHeaderBytes, 0, file) || adts_frame_bytes(file, *first));
}

const char* kind_of(SoundContainer container) {
  switch (container) {
    case SoundContainer::kMatroska: return "WebM or Matroska";
    case SoundContainer::kMp4: return "MP4 (m4a)";
    case SoundContainer::kAdts: return "AAC";
    case SoundContainer::kAsf: return "ASF (WMA)";
    case SoundContainer::kAmr: return "AMR";
    case SoundContainer::kOggFlac: return "Ogg with FLAC";
  }
  return "";
}

}  // namespace

std::optional<SoundContainer> container_of(std::span<const std::byte> file) {
  if (file.size() >= 4 && read_be(file, 0, 4) == kEbml) return SoundContainer::kMatroska;
  for (const std::string_view first : {"ftyp", "moov", "wide", "mdat"})  // QuickTime's older files begin at once
    if (has_tag(file, 4, first)) return SoundContainer::kMp4;
  constexpr std::string_view kAsf("\x30\x26\xB2\x75\x8E\x66\xCF\x11\xA6\xD9\x00\xAA\x00\x62\xCE\x6C", 16);
  if (has_tag(file, 0, kAsf)) return SoundContainer::kAsf;
  if (has_tag(file, 0, "#!AMR\n") || has_tag(file, 0, "#!AMR-WB\n")) return SoundContainer::kAmr;
  if (looks_like_adts(file)) return SoundContainer::kAdts;
  return std::nullopt;
}

Error no_decoder(SoundContainer container, const std::string& name, const Error& cause) {
  if (cause.code == Code::kUnavailable)
    return {cause.code, fmt::format("'{}' cannot be decoded now: {}; try again later", name, cause.message)};
  return {Code::kUnsupported, fmt::format("'{}' is {}, which needs FFmpeg's libraries, and {}; WAV, FLAC, MP3, Ogg "
                                          "with Vorbis or Opus need none of them",
                                          name, kind_of(container), cause.message)};
}

}  // namespace syrinx
