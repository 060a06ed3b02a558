#include "audio/guards/ogg_pages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

namespace syrinx {
namespace {

constexpr size_t kHeaderBytes = 27;
constexpr std::string_view kCapture = "OggS";
constexpr std::array kCaptureBytes = {std::byte{'O'}, std::byte{'g'}, std::byte{'g'}, std::byte{'S'}};

bool begins_with(std::span<const std::byte> bytes, std::string_view tag) {
  return bytes.size() >= tag.size() && std::memcmp(bytes.data(), tag.data(), tag.size()) == 0;
}

// The checksum of a page: a remainder by 0x04C11DB7, highest bit first, where its own four bytes count as zeros.
constexpr auto kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i << 24;
    for (int bit = 0; bit < 8; ++bit) value = value << 1 ^ ((value >> 31) * 0x04C11DB7);
    table[i] = value;
  }
  return table;
}();

bool has_its_checksum(std::span<const std::byte> page) {
  uint32_t crc = 0, stored = 0;
  for (size_t i = 0; i < page.size(); ++i) {
    const auto byte = std::to_integer<uint32_t>(page[i]);
    const bool own = i >= 22 && i < 26;
    if (own) stored |= byte << (8 * (i - 22));
    crc = crc << 8 ^ kCrcTable[crc >> 24 ^ (own ? 0 : byte)];
  }
  return crc == stored;
}

// Header and body of the page that begins here, which may be more than there is.
size_t page_bytes(std::span<const std::byte> file) {
  if (file.size() < kHeaderBytes) return kHeaderBytes;
  const auto segments = std::to_integer<size_t>(file[26]);
  size_t size = kHeaderBytes + segments;
  for (size_t i = kHeaderBytes; i < kHeaderBytes + segments && i < file.size(); ++i)
    size += std::to_integer<size_t>(file[i]);
  return size;
}

std::optional<OggCodec> codec_of(std::span<const std::byte> first_page) {
  const auto body = first_page.subspan(kHeaderBytes + std::to_integer<size_t>(first_page[26]));
  if (begins_with(body, "OpusHead")) return OggCodec::kOpus;
  if (begins_with(body, "\x01vorbis")) return OggCodec::kVorbis;
  if (begins_with(body,
                  "\x7F"
                  "FLAC"))
    return OggCodec::kFlac;
  return std::nullopt;
}

}  // namespace

Result<OggPages> check_ogg_pages(std::span<const std::byte> file, const std::string& name) {
  OggPages pages;
  std::optional<OggCodec> codec;
  bool beginning = true;
  std::span<const std::byte> rest = file;
  while (!rest.empty() && begins_with(rest, kCapture.substr(0, rest.size()))) {
    const size_t size = page_bytes(rest);
    if (size > rest.size()) {
      pages.status = fail(Code::kDataLoss, "'{}' is cut off in the middle of an Ogg page; get the whole file", name);
      break;
    }
    const auto page = rest.first(size);
    if (!has_its_checksum(page)) {
      pages.status = fail(Code::kDataLoss, "'{}' is damaged: an Ogg page has another checksum; get it anew", name);
      break;
    }
    const bool begins_stream = (std::to_integer<unsigned>(page[5]) & 2) != 0;
    if (begins_stream && !beginning)
      return fail(Code::kUnsupported, "'{}' holds several recordings in a row; cut it into files of one each", name);
    if (begins_stream && !codec) codec = codec_of(page);
    beginning = begins_stream;
    rest = rest.subspan(size);
  }
  pages.bytes = file.size() - rest.size();
  // A tag may follow; where another page does, the libraries go on there, which nobody has looked at.
  if (pages.status && std::search(rest.begin(), rest.end(), kCaptureBytes.begin(), kCaptureBytes.end()) != rest.end())
    pages.status = fail(Code::kDataLoss, "'{}' is damaged: between two Ogg pages is something else; get it anew", name);
  if (!codec && beginning) SYRINX_TRY_VOID(pages.status);
  if (!codec) return fail(Code::kUnsupported, "'{}' is an Ogg file with neither Vorbis, Opus nor FLAC in it", name);
  pages.codec = *codec;
  return pages;
}

}  // namespace syrinx
