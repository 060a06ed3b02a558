// Any bytes as a recording: an answer within the limits, never a crash.  Pages of Ogg get their checksums, without
// which decoders look at none of what has been changed in them.
#include <ogg/ogg.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "audio/decode/recording.h"
#include "audio/decode/sound_file.h"
#include "base/check.h"

extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);  // libFuzzer's

namespace {

constexpr size_t kHeaderBytes = 27;

void give_checksums(std::span<uint8_t> file) {
  constexpr std::string_view kCapture = "OggS";
  const auto find = [&](size_t from) {
    return std::string_view(reinterpret_cast<const char*>(file.data()), file.size()).find(kCapture, from);
  };
  for (size_t at = find(0), end = 0; at != std::string_view::npos; at = find(end)) {
    const auto page = file.subspan(at);
    if (page.size() < kHeaderBytes || page.size() < kHeaderBytes + page[26]) return;
    const size_t header = kHeaderBytes + page[26];
    size_t body = 0;
    for (const uint8_t bytes : page.subspan(kHeaderBytes, page[26])) body += bytes;
    body = std::min(body, page.size() - header);
    ogg_page whole{.header = page.data(),
                   .header_len = static_cast<long>(header),
                   .body = page.data() + header,
                   .body_len = static_cast<long>(body)};
    ogg_page_checksum_set(&whole);
    end = at + header + body;
  }
}

// As far as it is whole: as much as is read otherwise, or a part and a warning.
void read_part(std::span<const std::byte> file, const syrinx::SoundLimits& limits, const syrinx::Recording* whole) {
  size_t samples = 0, warnings = 0;
  const syrinx::SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return syrinx::Status(); },
                               .add =
                                   [&](std::span<const float> some) {
                                     for (const float sample : some) SYRINX_CHECK(std::isfinite(sample));
                                     samples += some.size();
                                     return syrinx::Status();
                                   },
                               .warn = [&](const std::string&) { ++warnings; }};
  const syrinx::Status status = syrinx::read_sound(file, "input", limits, sink);
  if (whole != nullptr) SYRINX_CHECK(status && warnings == 0 && samples == whole->samples.size());
  if (whole == nullptr) SYRINX_CHECK(status ? warnings == 1 && samples > 0 : warnings == 0);
}

// One channel alone: as long as the whole, unless it has none of that number.
void read_channel(std::span<const std::byte> file, syrinx::SoundLimits limits, const syrinx::Recording* whole) {
  limits.channel = static_cast<int>(file.size() % 3);
  const auto one = syrinx::read_recording(file, "input", limits);
  if (whole == nullptr || !one) {
    SYRINX_CHECK(!one);
    SYRINX_CHECK(whole == nullptr || (*limits.channel > 0 && one.error().code == syrinx::Code::kInvalidArgument));
  } else {
    SYRINX_CHECK(one->samples.size() == whole->samples.size());
  }
}

// Containers that a child decodes are container_fuzz.cc's: here none is started.
[[maybe_unused]] const bool without_child = ::setenv("SYRINX_DECODE", "/nonexistent", 1) == 0;

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int) {
  size = LLVMFuzzerMutate(data, size, max_size);
  give_checksums({data, size});
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const syrinx::SoundLimits limits{.max_seconds = 5};
  const auto recording = syrinx::read_recording(std::as_bytes(std::span(data, size)), "input", limits);
  read_part(std::as_bytes(std::span(data, size)), limits, recording ? &*recording : nullptr);
  read_channel(std::as_bytes(std::span(data, size)), limits, recording ? &*recording : nullptr);
  if (!recording) {
    SYRINX_CHECK(!recording.error().message.empty() && recording.error().message.size() < 300);
    return 0;
  }
  SYRINX_CHECK(recording->rate_hz >= limits.min_rate_hz && recording->rate_hz <= limits.max_rate_hz);
  SYRINX_CHECK(recording->seconds() <= limits.max_seconds);
  for (const float sample : recording->samples) SYRINX_CHECK(std::isfinite(sample));
  return 0;
}
