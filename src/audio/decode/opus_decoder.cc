#include "audio/decode/opus_decoder.h"

#include <opusfile.h>

#include <array>
#include <memory>

namespace syrinx {
namespace {

constexpr int kRateHz = 48000;
constexpr size_t kMostChannels = 255;
constexpr size_t kBlockSamples = 32 * kMostChannels;

struct Delete {
  void operator()(OggOpusFile* file) const { op_free(file); }
};

}  // namespace

Status decode_opus(std::span<const std::byte> file, const std::string& name, MonoMixer& mixer) {
  int error = 0;
  const std::unique_ptr<OggOpusFile, Delete> opus(
      op_open_memory(reinterpret_cast<const unsigned char*>(file.data()), file.size(), &error));
  if (opus == nullptr)
    return fail(Code::kDataLoss, "'{}' is damaged: its Opus stream cannot be opened (libopusfile's error {})", name,
                error);
  const int channels = op_channel_count(opus.get(), 0);
  SYRINX_TRY_VOID(mixer.begin(channels, kRateHz));

  std::array<float, kBlockSamples> block;
  for (;;) {
    int stream = 0;
    const int frames = op_read_float(opus.get(), block.data(), static_cast<int>(block.size()), &stream);
    if (frames == 0) return {};
    if (frames < 0) return fail(Code::kDataLoss, "'{}' is damaged in the middle of its Opus stream", name);
    if (stream != 0)  // which may have other channels
      return fail(Code::kUnsupported, "'{}' holds several recordings in a row; cut it into files of one each", name);
    SYRINX_TRY_VOID(mixer.add(std::span(block).first(static_cast<size_t>(frames * channels))));
  }
}

}  // namespace syrinx
