// The sizes in containers' headers: Apple's AIFF 1.3 and Core Audio Format, Sun's AU, EBU Tech 3306 (RF64), Sonic
// Foundry's W64.
#include "audio/decode/sndfile_decoder.h"

#include <sndfile.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "audio/decode/memory_source.h"

namespace syrinx {
namespace {

constexpr size_t kBlockFrames = 4096;
constexpr int kMaxChunks = 1000;
constexpr uint64_t kLikelyUnknown32 = 0x7FFFF000;  // what cannot be known while it is written, by many programs

uint64_t read_number(std::span<const std::byte> file, size_t at, size_t size, bool big_endian) {
  uint64_t value = 0;
  if (at > file.size() || size > file.size() - at) return 0;
  for (size_t i = 0; i < size; ++i)
    value = value << 8 | std::to_integer<uint64_t>(file[at + (big_endian ? i : size - 1 - i)]);
  return value;
}

bool has_tag(std::span<const std::byte> file, size_t at, std::string_view tag) {
  return at <= file.size() && tag.size() <= file.size() - at &&
         std::memcmp(file.data() + at, tag.data(), tag.size()) == 0;
}

// The end of the data chunk; -1 as its size means "to the end".
std::optional<uint64_t> end_of_caf(std::span<const std::byte> file) {
  size_t at = 8;
  for (int chunk = 0; chunk < kMaxChunks && at + 12 <= file.size(); ++chunk) {
    const uint64_t size = read_number(file, at + 4, 8, true);
    if (has_tag(file, at, "data")) return size >> 63 != 0 ? std::nullopt : std::optional(at + 12 + size);
    if (size > file.size() - at - 12) return at + 12 + std::min<uint64_t>(size, UINT64_MAX / 2);
    at += 12 + size;
  }
  return std::nullopt;
}

// Where the file ends by its own account, if its container is one that says so.
std::optional<uint64_t> announced_end(std::span<const std::byte> file) {
  const auto known = [](uint64_t size, uint64_t before) {
    return size >= kLikelyUnknown32 ? std::nullopt : std::optional(before + size);
  };
  if (has_tag(file, 0, "FORM")) return known(read_number(file, 4, 4, true), 8);
  if (has_tag(file, 0, "RIFF")) return known(read_number(file, 4, 4, false), 8);
  if (has_tag(file, 0, ".snd")) return known(read_number(file, 8, 4, true), read_number(file, 4, 4, true));
  if (has_tag(file, 0, "dns.")) return known(read_number(file, 8, 4, false), read_number(file, 4, 4, false));
  if (has_tag(file, 0, "caff")) return end_of_caf(file);
  if (has_tag(file, 0, "RF64") && has_tag(file, 12, "ds64")) return 8 + read_number(file, 20, 8, false);
  if (has_tag(file, 0, "riff")) return read_number(file, 16, 8, false);
  return std::nullopt;
}

sf_count_t file_size(void* source) { return static_cast<sf_count_t>(static_cast<MemorySource*>(source)->bytes.size()); }
sf_count_t seek_source(sf_count_t offset, int whence, void* source) {
  return static_cast<MemorySource*>(source)->seek(offset, whence);
}
sf_count_t read_source(void* out, sf_count_t size, void* source) {
  return static_cast<sf_count_t>(static_cast<MemorySource*>(source)->read(out, static_cast<size_t>(size)));
}
sf_count_t tell_source(void* source) { return static_cast<sf_count_t>(static_cast<MemorySource*>(source)->at); }

struct Close {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

}  // namespace

Status decode_sndfile(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer) {
  MemorySource source{file};
  SF_VIRTUAL_IO callbacks{file_size, seek_source, read_source, nullptr, tell_source};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, Close> sound(sf_open_virtual(&callbacks, SFM_READ, &info, &source));
  const std::optional<uint64_t> end = announced_end(file);
  const bool is_cut_off = end && *end > file.size();
  if (sound == nullptr && !is_cut_off)
    return fail(Code::kUnsupported,
                "'{}' is not an audio format that Syrinx reads: WAV, FLAC, MP3, Ogg with Vorbis or Opus, AIFF, AU, "
                "CAF, W64, RF64 "
                "and what else libsndfile reads, WebM, MP4 (m4a) and AAC",
                name);
  if (is_cut_off)
    return fail(Code::kDataLoss, "'{}' is cut off: it announces {} bytes and holds {}; get the whole file", name, *end,
                file.size());
  SYRINX_TRY_VOID(mixer.begin(info.channels, info.samplerate,
                              info.frames > 0 ? std::optional(static_cast<uint64_t>(info.frames)) : std::nullopt));
  std::vector<float> block(kBlockFrames * static_cast<size_t>(info.channels));
  for (;;) {
    const sf_count_t frames = sf_readf_float(sound.get(), block.data(), kBlockFrames);
    if (sf_error(sound.get()) != SF_ERR_NO_ERROR)
      return fail(Code::kDataLoss, "'{}' is damaged: {}", name, sf_strerror(sound.get()));
    if (frames <= 0) return {};
    SYRINX_TRY_VOID(mixer.add(std::span(block).first(static_cast<size_t>(frames * info.channels))));
  }
}

}  // namespace syrinx
