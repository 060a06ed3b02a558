#include "server/realtime/appended_audio.h"

#include <cmath>
#include <utility>

#include "server/http/base64.h"

namespace syrinx::server::realtime {
namespace {

using Group = AppendedAudio::Group;

// Ends a text of base64 within a group; false where it cannot end there.
bool close_group(Group& group, std::vector<std::byte>& bytes) {
  if (group.digits == 0) return true;
  const uint32_t spare_bits = group.digits == 2 ? 4 : 2;
  if (group.digits == 1 || (group.bits & ((uint32_t{1} << spare_bits) - 1)) != 0) return false;
  const uint32_t bits = group.bits >> spare_bits;
  if (group.digits == 3) bytes.push_back(static_cast<std::byte>(bits >> 8 & 0xFF));
  bytes.push_back(static_cast<std::byte>(bits & 0xFF));
  group = {.is_closed = true};
  return true;
}

bool read_digits(std::string_view text, Group& group, std::vector<std::byte>& bytes) {
  bytes.reserve(bytes.size() + text.size() / 4 * 3 + 3);
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
    if (c == '=') {
      if (group.digits == 0 ? !group.is_closed : !close_group(group, bytes)) return false;
      continue;
    }
    const int value = base64_value(c);
    if (value < 0) return false;
    group.is_closed = false;
    group.bits = group.bits << 6 | static_cast<uint32_t>(value);
    if (++group.digits < 4) continue;
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<std::byte>(group.bits >> shift & 0xFF));
    group = {};
  }
  return true;
}

// Mean step from sample to sample: that of bytes which are read from the wrong bit on is noise's.
double roughness(const std::vector<std::byte>& bytes, SoundFormat format) {
  std::vector<float> samples;
  decode_pcm(bytes, pcm_format(format), samples);
  double sum = 0;
  for (size_t i = 1; i < samples.size(); ++i) sum += std::abs(static_cast<double>(samples[i]) - samples[i - 1]);
  return samples.size() < 2 ? 0 : sum / static_cast<double>(samples.size() - 1);
}

struct Reading {
  bool is_valid = false;
  Group group;
  std::vector<std::byte> bytes;
};

// Whether a text that may go on in the group before begins anew.  Too short a text tells nothing.
bool is_likelier(const Reading& apart, const Reading& joined, SoundFormat format) {
  constexpr size_t kEnoughSamples = 64;
  if (!apart.is_valid || !joined.is_valid) return apart.is_valid;
  return apart.bytes.size() >= kEnoughSamples * sample_bytes(format) &&
         roughness(apart.bytes, format) <= roughness(joined.bytes, format);
}

}  // namespace

// Behind a group that is not whole, either the text goes on in it, or the text before had no padding and this one
// begins anew; some texts may be read in both ways.
std::optional<AppendedAudio::Taken> AppendedAudio::take(std::string_view text, SoundFormat format) const {
  Reading joined{.group = group_, .bytes = cut_};
  joined.is_valid = read_digits(text, joined.group, joined.bytes);
  Reading* best = &joined;
  Reading apart{.group = group_, .bytes = cut_};
  if (group_.digits > 0) {
    apart.is_valid = close_group(apart.group, apart.bytes) && read_digits(text, apart.group, apart.bytes);
    if (is_likelier(apart, joined, format)) best = &apart;
  }
  if (!best->is_valid) return std::nullopt;
  Taken taken{.bytes = std::move(best->bytes), .cut = {}, .group = best->group};
  const size_t whole = taken.bytes.size() - taken.bytes.size() % sample_bytes(format);
  taken.cut.assign(taken.bytes.begin() + static_cast<std::ptrdiff_t>(whole), taken.bytes.end());
  taken.bytes.resize(whole);
  return taken;
}

void AppendedAudio::keep(const Taken& taken) {
  cut_ = taken.cut;
  group_ = taken.group;
}

void AppendedAudio::clear() {
  cut_.clear();
  group_ = {};
}

}  // namespace syrinx::server::realtime
