// The arithmetic of a family for tests: a voice that hums a tone for each letter, the higher the later in the alphabet.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace syrinx::hum {

inline constexpr int kSampleRateHz = 16000;
inline constexpr size_t kSamplesPerCharacter = kSampleRateHz / 10;
inline constexpr size_t kMaxOvertones = 16;

struct Voice {
  float letter_a_hz = 0;
  std::vector<float> overtones;  // amplitudes, the base tone's first
};
using Voices = std::map<std::string, Voice>;

// From safetensors: each tensor is a voice, [letter_a_hz, amplitudes...].  kDataLoss names the tensor that is none.
Result<Voices> read_voices(const MappedFile& file);

// Appends kSamplesPerCharacter samples for each byte of the text; other characters than letters are silent.
void hum(const Voice& voice, std::string_view text, float pitch, std::vector<float>& samples);

}  // namespace syrinx::hum
