// The frame headers are those of ISO/IEC 11172-3 (2.4.1.3, 2.4.2.3) and 13818-3; libmpg123 decodes, the headers are
// read here to know an MP3 file when we see one, and to notice one that was cut off, which libmpg123 passes over.
#include "audio/decode/mp3_decoder.h"

#include <mpg123.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "audio/decode/memory_source.h"

namespace syrinx {
namespace {

constexpr size_t kSearchBytes = 65536;  // streams are joined in the middle of a frame, tags are padded
constexpr int kFramesToTrust = 3;
constexpr uint32_t kSameStream = 0xFFFE0C00;  // sync word, version, layer, rate
constexpr size_t kBlockSamples = 4096;

uint32_t read_be(std::span<const std::byte> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return value;
}

// Length of the frame that begins with this header, if it is one of layer III with a stated bit rate.
std::optional<size_t> frame_bytes(uint32_t header) {
  constexpr std::array<uint32_t, 15> kKilobits1 = {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320};
  constexpr std::array<uint32_t, 15> kKilobits2 = {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160};
  constexpr std::array<uint32_t, 3> kRates1 = {44100, 48000, 32000};
  const uint32_t version = header >> 19 & 3, layer = header >> 17 & 3, bits = header >> 12 & 15,
                 rate = header >> 10 & 3;
  if (header >> 21 != 0x7FF || version == 1 || layer != 1 || bits == 0 || bits == 15 || rate == 3) return std::nullopt;
  const uint32_t padding = header >> 9 & 1;
  if (version == 3) return 144'000 * kKilobits1[bits] / kRates1[rate] + padding;
  const uint32_t rate_hz = kRates1[rate] / (version == 2 ? 2 : 4);
  return 72'000 * kKilobits2[bits] / rate_hz + padding;
}

// Where the frame after that at `at` begins, which may be beyond the end; nothing if no frame of the stream is there.
std::optional<size_t> next_frame(std::span<const std::byte> file, size_t at, uint32_t like) {
  if (at > file.size() || file.size() - at < 4) return std::nullopt;
  const uint32_t header = read_be(file, at);
  const std::optional<size_t> size = frame_bytes(header);
  if (!size || (header & kSameStream) != (like & kSameStream)) return std::nullopt;
  return at + *size;
}

std::optional<size_t> first_frame(std::span<const std::byte> file) {
  for (size_t begin = 0; begin < kSearchBytes && begin + 4 <= file.size(); ++begin) {
    const uint32_t header = read_be(file, begin);
    std::optional<size_t> at = begin;
    int frames = 0;
    for (; frames < kFramesToTrust && at; ++frames) {
      if (frames > 0 && *at >= file.size()) return begin;  // a file of one or two frames
      at = next_frame(file, *at, header);
    }
    if (at) return begin;
  }
  return std::nullopt;
}

// The number of frames that follow, from the tag that encoders put into a first frame without sound (the Xing header,
// behind the side information), or 0.
uint32_t announced_frames(std::span<const std::byte> file, size_t at) {
  const uint32_t header = read_be(file, at);
  const bool mono = (header >> 6 & 3) == 3, mpeg1 = (header >> 19 & 3) == 3, checked = (header >> 16 & 1) == 0;
  const size_t side_bytes = mpeg1 ? (mono ? 17 : 32) : (mono ? 9 : 17);
  const size_t tag = at + 4 + (checked ? 2 : 0) + side_bytes;
  if (tag + 12 > file.size()) return 0;
  const uint32_t name = read_be(file, tag);
  const bool counted = (read_be(file, tag + 4) & 1) != 0;
  return (name == 0x58696E67 || name == 0x496E666F) && counted ? read_be(file, tag + 8) : 0;  // "Xing", "Info"
}

struct Frames {
  size_t end = 0;  // of the whole ones; of the file, where they end before it
  bool are_missing = false;
};

Frames whole_frames(std::span<const std::byte> file, size_t at) {
  const uint32_t header = read_be(file, at), announced = announced_frames(file, at);
  uint32_t frames = 0;
  while (const std::optional<size_t> next = next_frame(file, at, header)) {
    if (*next > file.size()) return {.end = at, .are_missing = true};
    at = *next;
    ++frames;
  }
  return {.end = file.size(), .are_missing = announced > 0 && frames - 1 < announced};
}

ssize_t read_source(void* source, void* out, size_t size) {
  return static_cast<ssize_t>(static_cast<MemorySource*>(source)->read(out, size));
}
off_t seek_source(void* source, off_t offset, int whence) {
  return static_cast<MemorySource*>(source)->seek(offset, whence);
}

struct Delete {
  void operator()(mpg123_handle* handle) const { mpg123_delete(handle); }
};

}  // namespace

bool looks_like_mp3(std::span<const std::byte> file) { return first_frame(file).has_value(); }

Status decode_mp3(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer) {
  const std::optional<size_t> begin = first_frame(file);
  if (!begin) return fail(Code::kUnsupported, "'{}' is not an MP3 file", name);
  const Frames frames = whole_frames(file, *begin);
  Status whole;
  if (frames.are_missing)
    whole = fail(Code::kDataLoss, "'{}' is cut off or damaged: an MP3 frame is missing; get the whole file", name);
  if (!mixer.takes_parts() || frames.end == *begin) SYRINX_TRY_VOID(whole);

  MemorySource source{file.subspan(*begin, frames.end - *begin)};
  const std::unique_ptr<mpg123_handle, Delete> handle(mpg123_new(nullptr, nullptr));
  if (handle == nullptr) return fail(Code::kInternal, "libmpg123 gave no decoder for '{}'", name);
  long rate_hz = 0;
  int channels = 0, encoding = 0;
  if (mpg123_param(handle.get(), MPG123_ADD_FLAGS, MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_SKIP_ID3V2, 0) !=
          MPG123_OK ||
      mpg123_replace_reader_handle(handle.get(), read_source, seek_source, nullptr) != MPG123_OK ||
      mpg123_open_handle(handle.get(), &source) != MPG123_OK ||
      mpg123_getformat(handle.get(), &rate_hz, &channels, &encoding) != MPG123_OK || encoding != MPG123_ENC_FLOAT_32) {
    return fail(Code::kDataLoss, "'{}' is damaged: no MP3 frame of it can be decoded", name);
  }
  SYRINX_TRY_VOID(mixer.begin(channels, static_cast<int>(rate_hz)));

  std::array<float, kBlockSamples> block;
  for (;;) {
    size_t bytes = 0;
    const int status = mpg123_read(handle.get(), block.data(), sizeof(block), &bytes);
    SYRINX_TRY_VOID(mixer.add(std::span(block).first(bytes / sizeof(float))));
    if (status == MPG123_DONE) return whole;
    if (status == MPG123_NEW_FORMAT) {
      long new_rate_hz = 0;
      int new_channels = 0;
      mpg123_getformat(handle.get(), &new_rate_hz, &new_channels, &encoding);
      if (new_rate_hz != rate_hz || new_channels != channels)
        return fail(Code::kUnsupported, "'{}' changes its rate or its channels on the way; convert it to WAV", name);
    } else if (status != MPG123_OK) {
      return fail(Code::kDataLoss, "'{}' is damaged: {}", name, mpg123_strerror(handle.get()));
    }
  }
}

}  // namespace syrinx
