#include "models/g2p/homographs.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"
#include "models/g2p/homograph_weights.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

constexpr std::string_view kStart = "<s>", kEnd = "</s>", kNumber = "#";
constexpr int kAround = 3;          // tokens on each side whose place counts
constexpr size_t kNear = 10;        // tokens on each side whose words count wherever they stand
constexpr size_t kLeastLetters = 4;  // of those words
constexpr uint32_t kMostBits = 20;

// FNV-1a.
class Hash {
 public:
  Hash& add(std::string_view text) {
    for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x01000193u;
    return *this;
  }
  uint32_t value() const { return value_; }

 private:
  uint32_t value_ = 0x811C9DC5u;
};

std::string_view shape(std::string_view text) {
  bool upper = false, lower = false;
  for (const char c : text) {
    upper = upper || text::is_ascii_upper(static_cast<unsigned char>(c));
    lower = lower || text::is_ascii_lower(static_cast<unsigned char>(c));
  }
  if (upper && !lower && text.size() > 1) return "X";
  return !text.empty() && text::is_ascii_upper(static_cast<unsigned char>(text[0])) ? "Xx" : "x";
}

bool is_inside(std::span<const text::Token> tokens, size_t i, int distance) {
  return distance < 0 ? i >= static_cast<size_t>(-distance) : i + static_cast<size_t>(distance) < tokens.size();
}

const text::Token& neighbour(std::span<const text::Token> tokens, size_t i, int distance) {
  return tokens[distance < 0 ? i - static_cast<size_t>(-distance) : i + static_cast<size_t>(distance)];
}

std::string word_at(std::span<const text::Token> tokens, size_t i, int distance) {
  if (!is_inside(tokens, i, distance)) return std::string(distance < 0 ? kStart : kEnd);
  const text::Token& token = neighbour(tokens, i, distance);
  return token.number ? std::string(kNumber) : text::ascii_lower(token.text);
}

// Where the weight of a feature lies for a reading or a class.
size_t slot(uint32_t feature, uint32_t key, uint32_t bits) { return ((feature ^ key) * 0x9E3779B1u) >> (32 - bits); }

std::array<std::string_view, 6> fields_of(std::string_view line) {
  std::array<std::string_view, 6> fields;
  for (std::string_view& field : fields) {
    const size_t tab = line.find('\t');
    field = line.substr(0, tab);
    line = tab == std::string_view::npos ? std::string_view() : line.substr(tab + 1);
  }
  return fields;
}

}  // namespace

std::vector<uint32_t> homograph_features(std::span<const text::Token> tokens, size_t i) {
  std::vector<uint32_t> found;
  const auto add = [&](auto... parts) {
    Hash hash;
    (hash.add(parts), ...);
    found.push_back(hash.value());
  };
  std::array<std::string, 2 * kAround + 1> around;
  const auto near = [&](int distance) -> const std::string& { return around[static_cast<size_t>(distance + kAround)]; };
  for (int d = -kAround; d <= kAround; ++d) around[static_cast<size_t>(d + kAround)] = word_at(tokens, i, d);
  add("bias");
  add("shape=", shape(tokens[i].text));
  for (const int d : {-3, -2, -1, 1, 2, 3}) add(fmt::format("{}=", d), std::string_view(near(d)));
  for (const int d : {-2, -1, 1, 2}) {
    const std::string_view word = near(d);
    const bool ascii = static_cast<unsigned char>(word[0]) < 0x80;
    for (const size_t letters : {2u, 3u})
      if (ascii && word.size() > letters) add(fmt::format("{}~", d), word.substr(word.size() - letters));
    if (is_inside(tokens, i, d)) add(fmt::format("{}^", d), shape(neighbour(tokens, i, d).text));
  }
  const auto pair = [&](std::string_view name, int one, int other) {
    add(name, std::string_view(near(one)), " ", std::string_view(near(other)));
  };
  pair("-2-1=", -2, -1);
  pair("-1+1=", -1, 1);
  pair("+1+2=", 1, 2);
  for (size_t n = i - std::min(i, kNear); n < std::min(tokens.size(), i + kNear + 1); ++n) {
    const text::Token& token = tokens[n];
    if (n != i && token.kind == text::TokenKind::kWord && token.text.size() >= kLeastLetters)
      add("near=", text::ascii_lower(token.text));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Result<Homographs> Homographs::parse(std::string_view file, std::string_view name) {
  constexpr std::string_view kMagic = "syrinx homographs 1 ";
  Homographs made;
  size_t number = 0;
  const auto damaged = [&](std::string_view why) { return fail(Code::kDataLoss, "'{}', line {}: {}", name, number, why); };
  for (;;) {
    const size_t end = file.find('\n');
    ++number;
    if (end == std::string_view::npos) return damaged("no empty line ends the readings");
    const std::string_view line = file.substr(0, end);
    file.remove_prefix(end + 1);
    if (number == 1) {
      if (!line.starts_with(kMagic)) return damaged("not a file of homographs");
      const std::string_view bits = line.substr(kMagic.size());
      const auto [stop, error] = std::from_chars(bits.data(), bits.data() + bits.size(), made.bits_);
      if (error != std::errc() || stop != bits.data() + bits.size() || made.bits_ == 0 || made.bits_ > kMostBits)
        return damaged("the number of bits is not from 1 to 20");
      continue;
    }
    if (line.empty()) break;
    const auto [word, reading, label, tag, american, british] = fields_of(line);
    if (word.empty() || reading.empty() || (tag.empty() && american.empty())) return damaged("a reading lacks a field");
    made.readings_[std::string(word)].push_back({.name = std::string(reading),
                                                 .tag = std::string(tag),
                                                 .american = std::string(american),
                                                 .british = std::string(british),
                                                 .own_key = Hash().add(reading).value(),
                                                 .class_key = Hash().add("class ").add(label).value()});
  }
  if (file.size() != size_t{1} << made.bits_) return damaged(fmt::format("{} weights", file.size()));
  made.weights_ = {reinterpret_cast<const int8_t*>(file.data()), file.size()};
  return made;
}

const Homographs& Homographs::builtin() {
  static const Homographs made = [] {
    auto parsed = parse({reinterpret_cast<const char*>(homograph_weights), homograph_weights_bytes}, "homographs.bin");
    SYRINX_CHECK(parsed.has_value(), "{}", parsed.error().message);
    return *std::move(parsed);
  }();
  return made;
}

const HomographReading* Homographs::choose(std::span<const text::Token> tokens, size_t i) const {
  const auto found = readings_.find(text::ascii_lower(tokens[i].text));
  if (found == readings_.end()) return nullptr;
  const std::vector<uint32_t> features = homograph_features(tokens, i);
  const HomographReading* best = nullptr;
  int32_t most = 0;
  for (const HomographReading& reading : found->second) {
    int32_t score = 0;
    for (const uint32_t feature : features)
      score += weights_[slot(feature, reading.own_key, bits_)] + weights_[slot(feature, reading.class_key, bits_)];
    if (best == nullptr || score > most) {
      best = &reading;
      most = score;
    }
  }
  return best;
}

}  // namespace syrinx::g2p
