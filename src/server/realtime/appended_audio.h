// Audio that a client appends in base64, whole or cut anywhere: within a sample, or within one of base64's groups of
// four digits.  Blanks and line breaks count for nothing.
//
// Padding may be missing at the end of texts of whole samples.  Such a text may also be the beginning of a cut one:
// both readings are followed until the sound tells them apart, in 64 samples that are not silent; up to then the text
// counts as cut.
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
  // Steps from sample to sample in texts that may be read in both ways.
  struct Roughness {
    double joined = 0, apart = 0;
    size_t samples = 0;
  };
  struct State {
    std::vector<std::byte> cut = {};  // of a sample that is not whole yet
    Group group = {};
    // The last text's last sample if the next one begins anew; nothing once a text was seen to be cut.
    std::optional<std::vector<std::byte>> rest = std::vector<std::byte>();
    Roughness roughness = {};
  };
  struct Taken {
    std::vector<std::byte> bytes;  // of whole samples
    State next;
  };
  // The samples that `text` makes whole; nothing where it is not base64.  The rest of it counts from keep() on.
  std::optional<Taken> take(std::string_view text, SoundFormat format) const;
  void keep(const Taken& taken) { state_ = taken.next; }
  // The same of a text whose samples are not wanted, without memory for them.  One that is not base64 counts for
  // nothing.
  void skip(std::string_view text, SoundFormat format);
  // Samples that `text` makes whole, by its length.
  size_t samples_in(std::string_view text, SoundFormat format) const;
  // Forgets what is not whole, and not the client's ways: what follows begins anew.
  void clear();

 private:
  State state_;
};

}  // namespace syrinx::server::realtime
