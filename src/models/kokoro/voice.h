// A voice: 510 rows of style, one for each number of phonemes in a piece.  Specification: Kokoro, section 1.3.
//
// File: 510 x width f32, little-endian, no header; width is 256 in the published model (decoder style, then prosody
// style).  A Voice is immutable and may be shared by any number of threads.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/watched_file.h"

namespace syrinx::kokoro {

inline constexpr size_t kVoiceRows = 510;
inline constexpr size_t kMaxVoiceParts = 16;  // voices in one blend

class Voice {
 public:
  // `bytes` is the content of a voice file; `name` goes into messages.  kDataLoss: wrong size, or a value that is not
  // finite or beyond +-1000 (published voices stay within +-4).
  static Result<Voice> parse(std::span<const std::byte> bytes, std::string name, size_t style_width);

  const std::string& name() const { return name_; }
  size_t style_width() const { return width_; }
  // The row for a piece of `symbols` phonemes, characters without an id included: row clamp(symbols - 1, 0, 509).
  std::span<const float> style(size_t symbols) const;

 private:
  friend Result<Voice> blend(std::span<const Voice> voices, std::span<const float> weights, std::string name);
  std::string name_;
  size_t width_ = 0;
  std::vector<float> rows_;  // [510, width]
};

struct VoicePart {
  std::string name;     // of an installed voice; or the path of a voice file: holds a '/' or ends in ".bin"
  float weight = 1.0f;  // above 0
  bool is_path() const;
};

// "af_heart", "af_heart:0.6+am_adam:0.4" or "af_heart,af_bella" (equal parts).  kInvalidArgument names the part.
Result<std::vector<VoicePart>> parse_voice(std::string_view text);
// Weighted mean of the rows; weights are shares of their sum.
Result<Voice> blend(std::span<const Voice> voices, std::span<const float> weights, std::string name);
// The file of a part: `folder`/NAME.bin, or its own path.  kNotFound names the voice and what to do.
Result<WatchedFile> open_voice(const std::string& folder, const VoicePart& part);
// Reads each part of `text` from `folder`/NAME.bin or from its own path and blends them.  kNotFound names the voice and
// what to do.
Result<Voice> load_voice(const std::string& folder, std::string_view text, size_t style_width);

struct VoiceInfo {
  std::string name;
  std::string language;       // "American English"; "unknown" when the name does not say
  std::string language_code;  // "en-us"
  std::string gender;         // "female", "male" or "unknown"
};
VoiceInfo describe_voice(std::string name);
// Whether what parse_voice() reads is to be given British phonemes: its first voice decides, by its description or that
// of its file's name.
bool speaks_british(std::string_view text);
// The voices of a folder by name.  kNotFound when there is no such folder.
Result<std::vector<VoiceInfo>> list_voices(const std::string& folder);

}  // namespace syrinx::kokoro
