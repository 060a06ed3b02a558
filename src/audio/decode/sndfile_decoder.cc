#include "audio/decode/sndfile_decoder.h"

#include <sndfile.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "audio/decode/sndfile_sizes.h"
#include "audio/float_range.h"

namespace syrinx {
namespace {

constexpr size_t kBlockFrames = 4096;

bool has_floats(const SF_INFO& info) {
  const int coding = info.format & SF_FORMAT_SUBMASK;
  return coding == SF_FORMAT_FLOAT || coding == SF_FORMAT_DOUBLE;
}

sf_count_t file_size(void* source) {
  return static_cast<sf_count_t>(static_cast<PatchedSource*>(source)->bytes.size());
}
sf_count_t seek_source(sf_count_t offset, int whence, void* source) {
  return static_cast<PatchedSource*>(source)->seek(offset, whence);
}
sf_count_t read_source(void* out, sf_count_t size, void* source) {
  return static_cast<sf_count_t>(static_cast<PatchedSource*>(source)->read(out, static_cast<size_t>(size)));
}
sf_count_t tell_source(void* source) { return static_cast<sf_count_t>(static_cast<PatchedSource*>(source)->at); }

struct Close {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

// All of it, block by block.
template <class Take>
Status read_blocks(SNDFILE* sound, int channels, const std::string& name, Take take) {
  std::vector<float> block(kBlockFrames * static_cast<size_t>(channels));
  for (;;) {
    const sf_count_t frames = sf_readf_float(sound, block.data(), kBlockFrames);
    if (sf_error(sound) != SF_ERR_NO_ERROR)
      return fail(Code::kDataLoss, "'{}' is damaged: {}", name, sf_strerror(sound));
    if (frames <= 0) return {};
    SYRINX_TRY_VOID(take(std::span<const float>(block).first(static_cast<size_t>(frames * channels))));
  }
}

}  // namespace

Status decode_sndfile(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer) {
  ContainerSizes sizes = container_sizes(file);
  PatchedSource source{{file}, std::move(sizes.patches)};
  SF_VIRTUAL_IO callbacks{file_size, seek_source, read_source, nullptr, tell_source};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, Close> sound(sf_open_virtual(&callbacks, SFM_READ, &info, &source));
  Status whole;
  if (sizes.announced)
    whole = fail(Code::kDataLoss, "'{}' is cut off: it announces {} bytes and holds {}; get the whole file", name,
                 *sizes.announced, file.size());
  if (sound == nullptr && whole)
    return fail(
        Code::kUnsupported,
        "'{}' is not an audio format that Syrinx reads: WAV, FLAC, MP3, Ogg with Vorbis, Opus or FLAC, AIFF, AU, "
        "CAF, W64, RF64 "
        "and what else libsndfile reads, WebM, MP4 (m4a), AAC, WMA and AMR",
        name);
  if (sound == nullptr || !mixer.takes_parts()) SYRINX_TRY_VOID(whole);
  SYRINX_TRY_VOID(mixer.begin(info.channels, info.samplerate,
                              info.frames > 0 ? std::optional(static_cast<uint64_t>(info.frames)) : std::nullopt));
  if (has_floats(info)) {
    FloatRange range;
    SYRINX_TRY_VOID(read_blocks(sound.get(), info.channels, name, [&](std::span<const float> block) -> Status {
      range.add(block);
      return mixer.look(block);
    }));
    SYRINX_TRY(const float scale, range.scale(name));
    mixer.scale_by(scale);
    if (sf_seek(sound.get(), 0, SEEK_SET) != 0) return fail(Code::kInternal, "libsndfile cannot go back in '{}'", name);
  }
  SYRINX_TRY_VOID(
      read_blocks(sound.get(), info.channels, name, [&](std::span<const float> block) { return mixer.add(block); }));
  return whole;
}

}  // namespace syrinx
