#include "audio/decode/vorbis_decoder.h"

#define OV_EXCLUDE_STATIC_CALLBACKS
#include <vorbis/vorbisfile.h>

#include <vector>

#include "audio/decode/memory_source.h"
#include "audio/guards/vorbis_setup.h"

namespace syrinx {
namespace {

constexpr int kBlockFrames = 4096;

size_t read_source(void* out, size_t size, size_t count, void* source) {
  return size == 0 ? 0 : static_cast<MemorySource*>(source)->read(out, size * count) / size;
}

// An open file of libvorbisfile; cleared as that wants it, also after a failure to open.
struct VorbisFile {
  OggVorbis_File file{};
  VorbisFile() = default;
  VorbisFile(const VorbisFile&) = delete;
  VorbisFile& operator=(const VorbisFile&) = delete;
  ~VorbisFile() { ov_clear(&file); }
};

}  // namespace

Status decode_vorbis(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer) {
  SYRINX_TRY_VOID(check_vorbis_setup(file, name));
  MemorySource source{file};
  VorbisFile vorbis;
  // From the beginning to the end: where it may seek it takes headers from inside of pages, which nobody has looked at.
  const ov_callbacks callbacks{read_source, nullptr, nullptr, nullptr};
  if (ov_open_callbacks(&source, &vorbis.file, nullptr, 0, callbacks) != 0)
    return fail(Code::kDataLoss, "'{}' is damaged: the headers of its Vorbis stream cannot be read", name);
  const vorbis_info* const info = ov_info(&vorbis.file, 0);
  if (info == nullptr) return fail(Code::kDataLoss, "'{}' is damaged: its Vorbis stream has no header", name);
  const auto channels = static_cast<size_t>(info->channels);
  SYRINX_TRY_VOID(mixer.begin(info->channels, static_cast<int>(info->rate)));

  std::vector<float> block;
  for (;;) {
    float** planes = nullptr;
    int stream = 0;
    const long frames = ov_read_float(&vorbis.file, &planes, kBlockFrames, &stream);
    if (frames == 0) return {};
    if (frames < 0) return fail(Code::kDataLoss, "'{}' is damaged in the middle of its Vorbis stream", name);
    if (stream != 0)
      return fail(Code::kUnsupported, "'{}' holds several recordings in a row; cut it into files of one each", name);
    block.resize(static_cast<size_t>(frames) * channels);
    for (size_t c = 0; c < channels; ++c)
      for (size_t i = 0; i < static_cast<size_t>(frames); ++i) block[i * channels + c] = planes[c][i];
    SYRINX_TRY_VOID(mixer.add(block));
  }
}

}  // namespace syrinx
