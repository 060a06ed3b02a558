#include "audio/decode/recording.h"

#include "audio/decode/sound_file.h"
#include "base/watched_file.h"

namespace syrinx {

Result<Recording> read_recording(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits) {
  if (file.size() > kMaxRecordingBytes)
    return fail(Code::kLimitExceeded, "'{}' has {} bytes; recordings of up to {} are read", name, file.size(),
                kMaxRecordingBytes);
  Recording recording;
  const SoundSink sink{.begin =
                           [&](int rate_hz, std::optional<uint64_t>) {
                             recording.rate_hz = rate_hz;
                             return Status();
                           },
                       .add =
                           [&](std::span<const float> samples) {
                             recording.samples.insert(recording.samples.end(), samples.begin(), samples.end());
                             return Status();
                           }};
  SYRINX_TRY_VOID(read_sound(file, name, limits, sink));
  return recording;
}

Result<Recording> read_recording(const std::string& path, const SoundLimits& limits) {
  SYRINX_TRY(const WatchedFile file, WatchedFile::open(path));
  auto recording = read_recording(file.bytes(), path, limits);
  SYRINX_TRY_VOID(file.check());
  return recording;
}

}  // namespace syrinx
