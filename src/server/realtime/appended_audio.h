// Audio that a client appends in base64, whole or cut anywhere: within a sample, or within one of base64's groups of
// four digits.  Blanks and line breaks count for nothing, and padding may be missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "server/realtime/sound_format.h"

namespace syrinx::server::realtime {

class AppendedAudio {
 public:
  // The beginning of a group of base64.
  struct Group {
    uint32_t bits = 0;
    size_t digits = 0;
    bool is_closed = false;  // by padding, of which more may come
  };
  struct Taken {
    std::vector<std::byte> bytes;  // of whole samples
    std::vector<std::byte> cut;    // of one that is not whole yet
    Group group;
  };
  // The samples that `text` makes whole; nothing where it is not base64.  The rest of it counts from keep() on.
  std::optional<Taken> take(std::string_view text, SoundFormat format) const;
  void keep(const Taken& taken);
  // Forgets what is not whole: what follows begins anew.
  void clear();

 private:
  std::vector<std::byte> cut_;
  Group group_;
};

}  // namespace syrinx::server::realtime
