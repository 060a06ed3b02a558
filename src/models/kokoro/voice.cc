#include "models/kokoro/voice.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/check.h"
#include "base/in_quotes.h"

namespace syrinx::kokoro {
namespace {

static_assert(std::endian::native == std::endian::little, "voice files are little-endian and copied as they are");

constexpr float kLargestValue = 1000.0f;
constexpr size_t kMaxNameBytes = 4096;

// Letters, digits, '_' and '-': a name can never leave its folder.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Splits the weight off NAME:WEIGHT or NAME(WEIGHT); nothing where there is none.
std::optional<std::string_view> take_weight(std::string_view& text) {
  const bool is_closed = text.ends_with(')');
  const size_t mark = text.rfind(is_closed ? '(' : ':');
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view weight = text.substr(mark + 1, text.size() - mark - 1 - (is_closed ? 1 : 0));
  text = text.substr(0, mark);
  return trimmed(weight);
}

Result<VoicePart> parse_part(std::string_view text) {
  VoicePart part;
  if (const auto number = take_weight(text)) {
    const auto [end, error] = std::from_chars(number->data(), number->data() + number->size(), part.weight);
    if (error != std::errc() || end != number->data() + number->size() || !(part.weight > 0) || part.weight > 1e6f)
      return fail(Code::kInvalidArgument,
                  "voice weight {} is not a number above 0; write NAME:0.6+NAME:0.4 or NAME(3)+NAME(2)",
                  in_quotes(*number));
  }
  part.name = std::string(trimmed(text));
  if (!part.is_path() && !is_plain_name(part.name))
    return fail(Code::kInvalidArgument, "{} is not a voice name; `syrinx voices` lists them", in_quotes(part.name));
  return part;
}

struct Language {
  char letter;
  const char* name;
  const char* code;
};
constexpr Language kLanguages[] = {
    {'a', "American English", "en-us"},
    {'b', "British English", "en-gb"},
    {'e', "Spanish", "es"},
    {'f', "French", "fr"},
    {'h', "Hindi", "hi"},
    {'i', "Italian", "it"},
    {'j', "Japanese", "ja"},
    {'p', "Brazilian Portuguese", "pt-br"},
    {'z', "Mandarin", "zh"},
};

Result<Voice> load_part(const std::string& folder, const VoicePart& part, size_t style_width) {
  SYRINX_TRY(const WatchedFile file, open_voice(folder, part));
  auto voice = Voice::parse(file.bytes(), part.name, style_width);
  SYRINX_TRY_VOID(file.check_all());
  return voice;
}

}  // namespace

Result<WatchedFile> open_voice(const std::string& folder, const VoicePart& part) {
  auto file = WatchedFile::open(part.is_path() ? part.name : folder + "/" + part.name + ".bin");
  if (!file && file.error().code == Code::kNotFound && !part.is_path())
    return fail(Code::kNotFound, "voice '{}' is not installed; `syrinx voices` lists those that are", part.name);
  return file;
}

bool VoicePart::is_path() const { return name.find('/') != std::string::npos || name.ends_with(".bin"); }

Result<Voice> Voice::parse(std::span<const std::byte> bytes, std::string name, size_t style_width) {
  SYRINX_CHECK(style_width > 0);
  const size_t expected = kVoiceRows * style_width * sizeof(float);
  if (bytes.size() != expected)
    return fail(Code::kDataLoss,
                "voice '{}' has {} bytes, a voice of this model has {}; fetch it again with `syrinx pull`", name,
                bytes.size(), expected);
  Voice voice;
  voice.name_ = std::move(name);
  voice.width_ = style_width;
  voice.rows_.resize(kVoiceRows * style_width);
  std::memcpy(voice.rows_.data(), bytes.data(), bytes.size());
  // Written so that a NaN fails as well.
  const auto usable = [](float value) { return std::fabs(value) <= kLargestValue; };
  if (!std::all_of(voice.rows_.begin(), voice.rows_.end(), usable))
    return fail(Code::kDataLoss,
                "voice '{}' holds a value that is not finite or beyond {}; fetch it again with `syrinx pull`",
                voice.name_, kLargestValue);
  return voice;
}

std::span<const float> Voice::style(size_t symbols) const {
  const size_t row = std::clamp<size_t>(symbols, 1, kVoiceRows) - 1;
  return std::span(rows_).subspan(row * width_, width_);
}

Result<std::vector<VoicePart>> parse_voice(std::string_view text) {
  if (text.size() > kMaxNameBytes)
    return fail(Code::kLimitExceeded, "the voice is {} bytes long, at most {} are read", text.size(), kMaxNameBytes);
  std::vector<VoicePart> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of("+,", begin), text.size());
    SYRINX_TRY(VoicePart part, parse_part(trimmed(text.substr(begin, end - begin))));
    parts.push_back(std::move(part));
    begin = end + 1;
  }
  if (parts.size() > kMaxVoiceParts)
    return fail(Code::kLimitExceeded, "{} voices in one blend, at most {} are mixed", parts.size(), kMaxVoiceParts);
  return parts;
}

Result<Voice> blend(std::span<const Voice> voices, std::span<const float> weights, std::string name) {
  SYRINX_CHECK(!voices.empty() && voices.size() == weights.size());
  double sum = 0;
  for (const float weight : weights) sum += weight;
  if (!(sum > 0)) return fail(Code::kInvalidArgument, "the weights of voice '{}' add up to nothing", name);
  Voice mixed;
  mixed.name_ = std::move(name);
  mixed.width_ = voices[0].width_;
  mixed.rows_.assign(voices[0].rows_.size(), 0.0f);
  for (size_t i = 0; i < voices.size(); ++i) {
    SYRINX_CHECK(voices[i].width_ == mixed.width_);
    const float share = static_cast<float>(weights[i] / sum);
    for (size_t j = 0; j < mixed.rows_.size(); ++j) mixed.rows_[j] += share * voices[i].rows_[j];
  }
  return mixed;
}

Result<Voice> load_voice(const std::string& folder, std::string_view text, size_t style_width) {
  SYRINX_TRY(const std::vector<VoicePart> parts, parse_voice(text));
  std::vector<Voice> voices;
  std::vector<float> weights;
  for (const VoicePart& part : parts) {
    SYRINX_TRY(Voice voice, load_part(folder, part, style_width));
    voices.push_back(std::move(voice));
    weights.push_back(part.weight);
  }
  if (voices.size() == 1) return std::move(voices[0]);
  return blend(voices, weights, std::string(text));
}

VoiceInfo describe_voice(std::string name) {
  VoiceInfo info{.name = std::move(name), .language = "unknown", .language_code = "und", .gender = "unknown"};
  if (info.name.size() < 3 || info.name[2] != '_') return info;
  for (const Language& language : kLanguages) {
    if (language.letter != info.name[0]) continue;
    info.language = language.name;
    info.language_code = language.code;
  }
  if (info.name[1] == 'f') info.gender = "female";
  if (info.name[1] == 'm') info.gender = "male";
  return info;
}

bool speaks_british(std::string_view text) {
  std::string name(trimmed(text.substr(0, text.find_first_of("+,:"))));
  name.erase(0, name.rfind('/') + 1);  // npos + 1: nothing
  return describe_voice(std::move(name)).language_code == "en-gb";
}

Result<std::vector<VoiceInfo>> list_voices(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error) return fail(Code::kNotFound, "cannot read the folder of voices '{}': {}", folder, error.message());
  std::vector<VoiceInfo> voices;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() == ".bin" && is_plain_name(path.stem().string()))
      voices.push_back(describe_voice(path.stem().string()));
  }
  std::sort(voices.begin(), voices.end(), [](const VoiceInfo& a, const VoiceInfo& b) { return a.name < b.name; });
  return voices;
}

}  // namespace syrinx::kokoro
