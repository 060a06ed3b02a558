#include "server/realtime/appended_audio.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/http/base64.h"

namespace syrinx::server::realtime {
namespace {

using Group = AppendedAudio::Group;
using Bytes = std::vector<std::byte>;

constexpr size_t kEnoughSamples = 64;  // to tell sound from noise, which is so much rougher
constexpr double kSmoother = 0.75;
constexpr size_t kSkippedBytes = 4096;  // of whole samples, which are dropped at once

bool is_blank(char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; }

// Ends a text of base64 within a group; false where it cannot end there.
bool close_group(Group& group, Bytes& bytes) {
  if (group.digits == 0) return true;
  const uint32_t spare_bits = group.digits == 2 ? 4 : 2;
  if (group.digits == 1 || (group.bits & ((uint32_t{1} << spare_bits) - 1)) != 0) return false;
  const uint32_t bits = group.bits >> spare_bits;
  if (group.digits == 3) bytes.push_back(static_cast<std::byte>(bits >> 8 & 0xFF));
  bytes.push_back(static_cast<std::byte>(bits & 0xFF));
  group = {.is_closed = true};
  return true;
}

// `is_wanted`: else the last bytes alone are kept.
bool read_digits(std::string_view text, bool is_wanted, Group& group, Bytes& bytes) {
  bytes.reserve(is_wanted ? bytes.size() + text.size() / 4 * 3 + 3 : 2 * kSkippedBytes);
  for (const char c : text) {
    if (is_blank(c)) continue;
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
    if (!is_wanted && bytes.size() >= kSkippedBytes) bytes.erase(bytes.begin(), bytes.begin() + kSkippedBytes);
  }
  return true;
}

// The sum of the steps from sample to sample: that of bytes which are read from the wrong bit on is noise's.
double roughness(const Bytes& bytes, SoundFormat format, size_t& samples_read) {
  std::vector<float> samples;
  decode_pcm(std::span(bytes).first(bytes.size() - bytes.size() % sample_bytes(format)), pcm_format(format), samples);
  double sum = 0;
  for (size_t i = 1; i < samples.size(); ++i) sum += std::abs(static_cast<double>(samples[i]) - samples[i - 1]);
  samples_read = samples.size();
  return sum;
}

struct Reading {
  bool is_valid = false;
  Group group = {};
  Bytes bytes = {};
};

Reading read(std::string_view text, bool is_wanted, Group group, Bytes bytes) {
  Reading reading{.group = group, .bytes = std::move(bytes)};
  reading.is_valid = read_digits(text, is_wanted, reading.group, reading.bytes);
  return reading;
}

// The last sample of a text that began anew, where padding would end it; nothing: it is cut, within a group or within a
// sample.
std::optional<Bytes> rest_of(const Reading& reading, SoundFormat format) {
  Group group = reading.group;
  const auto cut = static_cast<std::ptrdiff_t>(reading.bytes.size() % sample_bytes(format));
  Bytes rest(reading.bytes.end() - cut, reading.bytes.end());
  if (!reading.is_valid || !close_group(group, rest) || rest.size() % sample_bytes(format) != 0) return std::nullopt;
  return rest;
}

// Whether the sound of all texts so far tells that each begins anew.  Of silence, both readings are alike.
bool is_likelier_apart(const Reading& joined, const Reading& apart, SoundFormat format,
                       AppendedAudio::Roughness& roughness_so_far) {
  size_t samples = 0;
  const double of_joined = roughness(joined.bytes, format, samples), of_apart = roughness(apart.bytes, format, samples);
  roughness_so_far.joined += of_joined;
  roughness_so_far.apart += of_apart;
  roughness_so_far.samples += samples;
  return roughness_so_far.samples >= kEnoughSamples && roughness_so_far.apart < kSmoother * roughness_so_far.joined;
}

AppendedAudio::Taken taken_of(Reading reading, SoundFormat format) {
  AppendedAudio::Taken taken{.bytes = std::move(reading.bytes), .next = {.group = reading.group}};
  const auto whole = static_cast<std::ptrdiff_t>(taken.bytes.size() - taken.bytes.size() % sample_bytes(format));
  taken.next.cut.assign(taken.bytes.begin() + whole, taken.bytes.end());
  taken.bytes.resize(static_cast<size_t>(whole));
  return taken;
}

// Behind a text without padding, either the next goes on in its last group, or it begins anew.
std::optional<AppendedAudio::Taken> read_both(const AppendedAudio::State& state, std::string_view text, bool is_wanted,
                                              SoundFormat format) {
  Reading joined = read(text, is_wanted, state.group, state.cut);
  const bool is_same = state.group.digits == 0 && state.cut.empty() && (!state.rest || state.rest->empty());
  Reading apart;
  if (!is_same && (state.rest || !joined.is_valid)) apart = read(text, is_wanted, {}, state.rest.value_or(Bytes()));
  const std::optional<Bytes> rest = state.rest ? rest_of(is_same ? joined : apart, format) : std::nullopt;
  AppendedAudio::Roughness roughness = state.roughness;
  bool is_apart = apart.is_valid && !joined.is_valid;
  if (apart.is_valid && joined.is_valid && rest) is_apart = is_likelier_apart(joined, apart, format, roughness);
  Reading& best = is_apart ? apart : joined;
  if (!best.is_valid) return std::nullopt;
  AppendedAudio::Taken taken = taken_of(std::move(best), format);
  taken.next.rest = rest;
  taken.next.roughness = roughness;
  return taken;
}

}  // namespace

std::optional<AppendedAudio::Taken> AppendedAudio::take(std::string_view text, SoundFormat format) const {
  return read_both(state_, text, /*is_wanted=*/true, format);
}

void AppendedAudio::skip(std::string_view text, SoundFormat format) {
  if (auto taken = read_both(state_, text, /*is_wanted=*/false, format)) state_ = std::move(taken->next);
}

size_t AppendedAudio::samples_in(std::string_view text, SoundFormat format) const {
  const auto digits = std::count_if(text.begin(), text.end(), [](char c) { return c != '=' && !is_blank(c); });
  const size_t all = state_.group.digits + static_cast<size_t>(digits);
  const size_t bytes = text.find('=') == std::string_view::npos ? all / 4 * 3 : all * 3 / 4;
  return (state_.cut.size() + bytes) / sample_bytes(format);
}

void AppendedAudio::clear() {
  state_.cut.clear();
  state_.group = {};
  if (state_.rest) state_.rest->clear();
}

}  // namespace syrinx::server::realtime
