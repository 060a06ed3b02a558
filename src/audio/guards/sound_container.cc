// RFC 8794 (EBML, its header), ISO/IEC 13818-7 (ADTS, 6.2).
#include "audio/guards/sound_container.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include "audio/guards/matroska_elements.h"
#include "audio/guards/mp4_boxes.h"

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

Status cut_off(const std::string& name, size_t held) {
  return fail(Code::kDataLoss, "'{}' is cut off: it announces more than the {} bytes that it holds; get the whole file",
              name, held);
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

}  // namespace

AdtsFrames check_adts_frames(std::span<const std::byte> file, const std::string& name) {
  size_t at = 0;
  while (const std::optional<size_t> size = adts_frame_bytes(file, at)) {
    if (is_longer(*size, at, file)) return {at, cut_off(name, file.size())};
    at += *size;
  }
  const size_t left = file.size() - at;
  if (left > 0 && left < kAdtsHeaderBytes && file[at] == std::byte{0xFF}) return {at, cut_off(name, file.size())};
  return {file.size(), {}};
}

std::optional<SoundContainer> container_of(std::span<const std::byte> file) {
  if (file.size() >= 4 && read_be(file, 0, 4) == kEbml) return SoundContainer::kMatroska;
  for (const std::string_view first : {"ftyp", "moov", "wide", "mdat"})  // QuickTime's older files begin at once
    if (has_tag(file, 4, first)) return SoundContainer::kMp4;
  if (looks_like_adts(file)) return SoundContainer::kAdts;
  return std::nullopt;
}

Result<std::vector<size_t>> check_container(std::span<const std::byte> file, SoundContainer container,
                                            const std::string& name) {
  switch (container) {
    case SoundContainer::kMatroska: return check_matroska_elements(file, name);
    case SoundContainer::kMp4: return check_mp4_boxes(file, name);
    case SoundContainer::kAdts: SYRINX_TRY_VOID(check_adts_frames(file, name).status); break;
  }
  return std::vector<size_t>();
}

Error no_decoder(SoundContainer container, const std::string& name, const Error& cause) {
  const char* kind = "AAC";
  if (container == SoundContainer::kMatroska) kind = "WebM or Matroska";
  if (container == SoundContainer::kMp4) kind = "MP4 (m4a)";
  return {Code::kUnsupported,
          fmt::format("'{}' is {}, which needs FFmpeg's libraries, and {}; WAV, FLAC, MP3 and Ogg need none of them",
                      name, kind, cause.message)};
}

}  // namespace syrinx
