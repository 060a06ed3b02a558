// Sizes in the heads of sound containers that libsndfile reads, looked at before it sees them: those that their writer
// did not know, and those that a file does not hold as it is cut off.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "audio/decode/memory_source.h"

namespace syrinx {

// Bytes that are read in place of those of the file.
struct SizePatch {
  size_t at = 0;
  size_t size = 0;  // at most 8
  std::array<std::byte, 8> bytes{};
};

struct ContainerSizes {
  std::vector<SizePatch> patches;     // by which the sound reaches to the end of the file
  std::optional<uint64_t> announced;  // bytes of the whole file, where it is cut off
};

// Reads WAV, RF64, AIFF, AU, CAF and W64; nothing for others.  A size of sound was not known that is -1, near to the
// greatest one and more than there is, or 0 with bytes behind it: but not where these are chunks and the size of all is
// known, of which CAF has none.  Pure, thread-safe.
ContainerSizes container_sizes(std::span<const std::byte> file);

struct PatchedSource : MemorySource {
  std::vector<SizePatch> patches;

  size_t read(void* out, size_t size) {
    const size_t begin = at, count = MemorySource::read(out, size);
    for (const SizePatch& patch : patches)
      for (size_t i = 0; i < patch.size; ++i)
        if (patch.at + i >= begin && patch.at + i < begin + count)
          static_cast<std::byte*>(out)[patch.at + i - begin] = patch.bytes[i];
    return count;
  }
};

}  // namespace syrinx
