// Apple's AIFF 1.3 and Core Audio Format, Sun's AU, EBU Tech 3306 (RF64), Sonic Foundry's W64, Microsoft's RIFF.
#include "audio/decode/sndfile_sizes.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace syrinx {
namespace {

using Bytes = std::span<const std::byte>;

constexpr int kMaxChunks = 1000;
constexpr uint64_t kLikelyUnknown32 = 0x7FFFF000;  // what cannot be known while it is written, by many programs
constexpr uint64_t kUnknown32 = 0xFFFFFFFF;

// How a container's chunks are written: a name, a size, a body that is filled up to `alignment`.
struct Layout {
  size_t size_at;     // of the size of all; 0: there is none
  size_t size_bytes;  // of each size
  bool big_endian;
  uint64_t uncounted;  // bytes of the file that the size of all leaves out
  size_t first_chunk;
  size_t name_bytes;
  uint64_t counted_head;  // bytes of its own head that a chunk's size counts
  size_t alignment;
  std::string_view sound;  // name of the chunk that has it
};

constexpr Layout kRiff = {4, 4, false, 8, 12, 4, 0, 2, "data"};
constexpr Layout kAiff = {4, 4, true, 8, 12, 4, 0, 2, "SSND"};
constexpr Layout kCaf = {0, 8, true, 0, 8, 4, 0, 1, "data"};
constexpr Layout kW64 = {16, 8, false, 0, 40, 16, 24, 8, "data"};
constexpr size_t kLeastAuHead = 24;
constexpr size_t kRf64SizeAt = 20, kRf64DataAt = 28;  // in its first chunk, ds64

uint64_t read_number(Bytes file, size_t at, size_t size, bool big_endian) {
  uint64_t value = 0;
  if (at > file.size() || size > file.size() - at) return 0;
  for (size_t i = 0; i < size; ++i)
    value = value << 8 | std::to_integer<uint64_t>(file[at + (big_endian ? i : size - 1 - i)]);
  return value;
}

bool has_tag(Bytes file, size_t at, std::string_view tag) {
  return at <= file.size() && tag.size() <= file.size() - at &&
         std::memcmp(file.data() + at, tag.data(), tag.size()) == 0;
}

SizePatch patch_of(size_t at, uint64_t value, size_t size, bool big_endian) {
  SizePatch patch{.at = at, .size = size};
  for (size_t i = 0; i < size; ++i)
    patch.bytes[i] = static_cast<std::byte>(value >> (8 * (big_endian ? size - 1 - i : i)));
  return patch;
}

bool is_unknown(uint64_t size, size_t size_bytes, uint64_t left) {
  if (size_bytes == 8) return size >> 63 != 0;
  return size == kUnknown32 || (size >= kLikelyUnknown32 && size > left);
}

struct Chunk {
  size_t at = 0, body = 0;
  uint64_t size = 0;  // of the body
};

// The chunk at `at`, if its head is whole.
std::optional<Chunk> chunk_at(Bytes file, const Layout& layout, size_t at) {
  const size_t head = layout.name_bytes + layout.size_bytes;
  if (at > file.size() || file.size() - at < head) return std::nullopt;
  const uint64_t size = read_number(file, at + layout.name_bytes, layout.size_bytes, layout.big_endian);
  return Chunk{at, at + head, size - std::min(size, layout.counted_head)};
}

// Where the one behind begins, if it can be in the file.
std::optional<size_t> next_chunk(Bytes file, const Layout& layout, const Chunk& chunk) {
  const uint64_t left = file.size() - chunk.body;
  if (chunk.size > left) return std::nullopt;
  const uint64_t over = chunk.size % layout.alignment, filled = chunk.size + (over > 0 ? layout.alignment - over : 0);
  return chunk.body + static_cast<size_t>(std::min(filled, left));
}

// Whether the bytes from `at` on are chunks to the end, and no sound.
bool are_chunks(Bytes file, const Layout& layout, size_t at) {
  const auto is_printable = [](std::byte b) { return b >= std::byte{0x20} && b < std::byte{0x7F}; };
  while (const std::optional<Chunk> chunk = chunk_at(file, layout, at)) {
    const auto name = file.begin() + static_cast<std::ptrdiff_t>(at);
    const std::optional<size_t> next = next_chunk(file, layout, *chunk);
    if (!std::all_of(name, name + 4, is_printable) || !next) return false;
    at = *next;
  }
  return at == file.size();
}

// Bytes of a block of coded samples, by the format chunk.
uint64_t block_bytes(Bytes file, const Layout& layout) {
  size_t at = layout.first_chunk;
  for (int i = 0; i < kMaxChunks; ++i) {
    const std::optional<Chunk> chunk = chunk_at(file, layout, at);
    if (!chunk) return 1;
    if (has_tag(file, at, "fmt ")) return std::max<uint64_t>(1, read_number(file, chunk->body + 12, 2, false));
    const std::optional<size_t> next = next_chunk(file, layout, *chunk);
    if (!next) return 1;
    at = *next;
  }
  return 1;
}

// The chunk of the sound; one before it that is cut off in place of it.
std::optional<Chunk> sound_chunk(Bytes file, const Layout& layout) {
  size_t at = layout.first_chunk;
  for (int i = 0; i < kMaxChunks; ++i) {
    const std::optional<Chunk> chunk = chunk_at(file, layout, at);
    if (!chunk || has_tag(file, at, layout.sound)) return chunk;
    const std::optional<size_t> next = next_chunk(file, layout, *chunk);
    if (!next) return chunk;
    at = *next;
  }
  return std::nullopt;
}

ContainerSizes sizes_of_au(Bytes file, bool big_endian) {
  const size_t body = static_cast<size_t>(read_number(file, 4, 4, big_endian));
  const uint64_t size = read_number(file, 8, 4, big_endian);
  ContainerSizes out;
  if (body > file.size()) out.announced = body;
  if (body < kLeastAuHead || body > file.size()) return out;
  const uint64_t left = file.size() - body;
  const bool unknown = (size == 0 && left > 0) || is_unknown(size, 4, left);
  if (!unknown && size > left) out.announced = body + size;
  if (unknown || size > left) out.patches.push_back(patch_of(8, std::min(left, kUnknown32), 4, big_endian));
  return out;
}

ContainerSizes sizes_of(Bytes file, const Layout& layout, bool is_rf64) {
  ContainerSizes out;
  const size_t all_at = is_rf64 ? kRf64SizeAt : layout.size_at, all_bytes = is_rf64 ? 8 : layout.size_bytes;
  const uint64_t all = all_at == 0 ? 0 : read_number(file, all_at, all_bytes, layout.big_endian);
  const uint64_t held = file.size();
  const bool all_known = all_at > 0 && all > 0 && !is_unknown(all, all_bytes, held);
  if (all_known && all < UINT64_MAX / 2 && all + layout.uncounted > held) out.announced = all + layout.uncounted;
  const std::optional<Chunk> chunk = sound_chunk(file, layout);
  if (!chunk || !has_tag(file, chunk->at, layout.sound)) {
    if (chunk)
      out.announced =
          std::max<uint64_t>(out.announced.value_or(0), chunk->body + std::min(chunk->size, UINT64_MAX / 2));
    return out;
  }
  const uint64_t left = held - chunk->body;
  size_t size_at = chunk->at + layout.name_bytes, size_bytes = layout.size_bytes;
  uint64_t size = chunk->size;
  if (is_rf64 && size == kUnknown32) {
    size_at = kRf64DataAt;
    size_bytes = 8;
    size = read_number(file, size_at, size_bytes, false);
  }
  const bool never_closed = !all_known || all + layout.uncounted <= chunk->body;
  const bool unknown = is_unknown(size, size_bytes, left) ||
                       (size == 0 && left > 0 && (never_closed || !are_chunks(file, layout, chunk->body)));
  if (!unknown && size > left)
    out.announced = std::max(out.announced.value_or(0), chunk->body + std::min(size, UINT64_MAX / 2));
  if (unknown) out.announced.reset();
  if (!unknown && size <= left) return out;
  const uint64_t whole = left - left % block_bytes(file, layout);
  const uint64_t greatest = size_bytes == 4 ? kUnknown32 - 1 : UINT64_MAX / 2;
  out.patches.push_back(
      patch_of(size_at, std::min(whole + layout.counted_head, greatest), size_bytes, layout.big_endian));
  if (all_at > 0)
    out.patches.push_back(
        patch_of(all_at, std::min(held - std::min(held, layout.uncounted), greatest), all_bytes, layout.big_endian));
  return out;
}

}  // namespace

ContainerSizes container_sizes(Bytes file) {
  if (has_tag(file, 0, "FORM")) return sizes_of(file, kAiff, false);
  if (has_tag(file, 0, "RIFF")) return sizes_of(file, kRiff, false);
  if (has_tag(file, 0, "RF64") && has_tag(file, 12, "ds64")) return sizes_of(file, kRiff, true);
  if (has_tag(file, 0, "caff")) return sizes_of(file, kCaf, false);
  if (has_tag(file, 0, "riff")) return sizes_of(file, kW64, false);
  if (has_tag(file, 0, ".snd")) return sizes_of_au(file, true);
  if (has_tag(file, 0, "dns.")) return sizes_of_au(file, false);
  return {};
}

}  // namespace syrinx
