#include "text/tokens/character_map.h"

#include "base/byte_reader.h"
#include "text/unicode.h"

namespace syrinx::text {
namespace {

// A unit of the double array: a node that is reached by its label has its children at `position ^ offset ^ label`, and
// its value, if it ends a key, at `position ^ offset`.
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value(uint32_t unit) { return unit & 0x7fffffff; }
uint32_t label(uint32_t unit) { return unit & 0x800000ff; }  // with the mark of a value, so that no byte equals a value
uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

}  // namespace

Result<CharacterMap> CharacterMap::parse(std::string_view bytes, const std::string& name) {
  CharacterMap map;
  if (bytes.empty()) return map;
  if (bytes.size() > kMaxBytes)
    return fail(Code::kLimitExceeded, "'{}': its character map has {} bytes, the limit is {}", name, bytes.size(),
                kMaxBytes);
  ByteReader reader(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())));
  const uint32_t index_bytes = reader.u32();
  const auto index = reader.take(index_bytes);
  map.replacements_ = reader.text(reader.remaining());
  if (reader.failed() || index.empty() || index.size() % sizeof(uint32_t) != 0)
    return fail(Code::kDataLoss, "'{}': its character map is damaged or truncated", name);
  map.units_.resize(index.size() / sizeof(uint32_t));
  std::memcpy(map.units_.data(), index.data(), index.size());
  if (map.replacements_.empty() || map.replacements_.back() != '\0' || find_invalid(map.replacements_))
    return fail(Code::kDataLoss, "'{}': the replacements of its character map are damaged or truncated", name);
  for (size_t begin = 0; begin < map.replacements_.size();) {
    const size_t end = map.replacements_.find('\0', begin);
    if (end - begin > kMaxReplacementBytes)
      return fail(Code::kLimitExceeded, "'{}': a replacement of its character map has {} bytes, the limit is {}", name,
                  end - begin, kMaxReplacementBytes);
    begin = end + 1;
  }
  return map;
}

CharacterMap::Match CharacterMap::match(std::string_view text, bool first) const {
  Match match;
  if (units_.empty()) return match;
  size_t position = offset(units_[0]);
  for (size_t i = 0; i < text.size() && i < kMaxKeyBytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    position ^= byte;
    if (position >= units_.size() || label(units_[position]) != byte) break;
    const uint32_t unit = units_[position];
    position ^= offset(unit);
    if (!has_value(unit)) continue;
    if (position >= units_.size()) break;
    const size_t begin = value(units_[position]);
    const bool begins_character =
        begin < replacements_.size() && (static_cast<uint8_t>(replacements_[begin]) & 0xC0) != 0x80;
    const bool ends_character = i + 1 == text.size() || (static_cast<uint8_t>(text[i + 1]) & 0xC0) != 0x80;
    if (!begins_character || !ends_character) continue;  // only a damaged map cuts characters
    match.size = i + 1;
    match.replacement = std::string_view(replacements_.data() + begin);  // up to its zero byte
    if (first) break;
  }
  return match;
}

}  // namespace syrinx::text
