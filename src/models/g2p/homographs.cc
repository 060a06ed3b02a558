#include "models/g2p/homographs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/check.h"
#include "models/g2p/homograph_weights.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

using Tokens = std::span<const text::Token>;

constexpr int kAround = 3;           // tokens on each side whose place counts
constexpr int kSides = 6;            // whose words count by their side
constexpr int kClassSides = 8;       // whose classes count by their side
constexpr int kNear = 10;            // whose words count wherever they stand
constexpr size_t kLeastLetters = 4;  // of those words
constexpr std::array<size_t, 3> kEndings{4, 3, 2};
constexpr uint32_t kHashBits = 28;        // of a table
constexpr size_t kLongestNeighbour = 64;  // bytes of a word beside a part, its end

// FNV-1a.
uint32_t hash_of(std::string_view text, uint32_t value = 0x811C9DC5u) {
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return value;
}

bool is_upper(char c) { return text::is_ascii_upper(static_cast<unsigned char>(c)); }
bool is_lower(char c) { return text::is_ascii_lower(static_cast<unsigned char>(c)); }

std::string_view shape(std::string_view text) {
  const bool upper = std::any_of(text.begin(), text.end(), is_upper);
  const bool lower = std::any_of(text.begin(), text.end(), is_lower);
  if (upper && !lower && text.size() > 1) return "X";
  return !text.empty() && is_upper(text[0]) ? "Xx" : "x";
}

// Null beyond the ends.
const text::Token* token_at(Tokens tokens, size_t i, int distance) {
  const size_t far = static_cast<size_t>(distance < 0 ? -distance : distance);
  if (distance < 0) return i >= far ? &tokens[i - far] : nullptr;
  return far < tokens.size() - i ? &tokens[i + far] : nullptr;
}

std::string word_at(Tokens tokens, size_t i, int distance) {
  const text::Token* const token = token_at(tokens, i, distance);
  if (token == nullptr) return distance < 0 ? "<s>" : "</s>";
  return token->number ? "#" : text::ascii_lower(token->text);
}

// Hashes of features; a feature is the concatenation of its parts.
class Features {
 public:
  template <class... Parts>
  void add(const Parts&... parts) {
    uint32_t value = hash_of("");
    ((value = hash_of(parts, value)), ...);
    hashes_.push_back(value);
  }
  // Each once.
  std::vector<uint32_t> take() {
    std::sort(hashes_.begin(), hashes_.end());
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
    return std::move(hashes_);
  }

 private:
  std::vector<uint32_t> hashes_;
};

// Strings of the tokens around one.
template <int kReach>
class Around {
 public:
  template <class Make>
  explicit Around(const Make& make) {
    for (int d = -kReach; d <= kReach; ++d)
      if (d != 0) strings_[static_cast<size_t>(d + kReach)] = make(d);
  }
  std::string_view operator[](int distance) const { return strings_[static_cast<size_t>(distance + kReach)]; }

 private:
  std::array<std::string, 2 * kReach + 1> strings_;
};

void add_words(Tokens tokens, size_t i, Features& out) {
  const Around<kAround> words([&](int d) { return word_at(tokens, i, d); });
  for (const int d : {-3, -2, -1, 1, 2, 3}) out.add(std::to_string(d), "=", words[d]);
  out.add("-2-1=", words[-2], " ", words[-1]);
  out.add("-1+1=", words[-1], " ", words[1]);
  out.add("+1+2=", words[1], " ", words[2]);
  for (const int d : {-2, -1, 1, 2}) {
    const text::Token* const token = token_at(tokens, i, d);
    if (token == nullptr) continue;
    out.add(std::to_string(d), "^", shape(token->text));
    if (token->kind != text::TokenKind::kWord) continue;
    const std::string_view word = words[d];
    for (const size_t letters : {2u, 3u})
      if (word.size() > letters) out.add(std::to_string(d), "~", word.substr(word.size() - letters));
  }
}

// Words wherever they stand, and by their side.
void add_bags(Tokens tokens, size_t i, Features& out) {
  for (int d = -kNear; d <= kNear; ++d) {
    const text::Token* const token = d == 0 ? nullptr : token_at(tokens, i, d);
    if (token == nullptr || token->kind != text::TokenKind::kWord) continue;
    const std::string word = text::ascii_lower(token->text);
    if (word.size() >= kLeastLetters) out.add("near=", word);
    if (std::abs(d) <= kSides) out.add(d < 0 ? "l=" : "r=", word);
  }
}

void add_classes(const Around<kClassSides>& classes, Features& out) {
  const auto join = [&](std::string_view name, std::initializer_list<int> places) {
    std::string all;
    for (const int d : places) all.append(" ").append(classes[d]);
    out.add(name, all);
  };
  for (const int d : {-3, -2, -1, 1, 2, 3}) out.add("c", std::to_string(d), "=", classes[d]);
  join("c-2-1", {-2, -1});
  join("c-1+1", {-1, 1});
  join("c+1+2", {1, 2});
  join("c-2-1+1", {-2, -1, 1});
  join("c-1+1+2", {-1, 1, 2});
  join("c-3-2-1", {-3, -2, -1});
  join("c+1+2+3", {1, 2, 3});
  for (int d = -1; d >= -kClassSides && classes[d] != "S"; --d) out.add("lc=", classes[d]);
  for (int d = 1; d <= kClassSides && classes[d] != "E"; ++d) out.add("rc=", classes[d]);
}

std::array<std::string_view, 6> fields_of(std::string_view line) {
  std::array<std::string_view, 6> fields;
  for (std::string_view& field : fields) {
    const size_t tab = line.find('\t');
    field = line.substr(0, tab);
    line = tab == std::string_view::npos ? std::string_view() : line.substr(tab + 1);
  }
  return fields;
}

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const size_t space = std::min(line.find(' '), line.size());
    if (space > 0) words.emplace_back(line.substr(0, space));
    line.remove_prefix(std::min(space + 1, line.size()));
  }
  return words;
}

// A line without its end; nothing where no line ends.
std::optional<std::string_view> take_line(std::string_view& file) {
  const size_t end = file.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = file.substr(0, end);
  file.remove_prefix(end + 1);
  return line;
}

std::optional<size_t> number_of(std::string_view text) {
  size_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool Homographs::Table::take(std::string_view& body, size_t count) {
  if (count > body.size()) return false;
  hashes.reserve(count);
  bytes.reserve(count);
  uint32_t last = 0;
  const auto byte = [&body] {
    const auto value = static_cast<uint8_t>(body.front());
    body.remove_prefix(1);
    return value;
  };
  for (size_t n = 0; n < count; ++n) {
    for (uint32_t shift = 0;; shift += 7) {
      if (body.empty() || shift > 21) return false;
      const uint8_t bits = byte();
      last += static_cast<uint32_t>(bits & 127) << shift;
      if (bits < 128) break;
    }
    if (body.empty() || last >> kHashBits != 0) return false;
    hashes.push_back(last);
    bytes.push_back(byte());
  }
  return true;
}

std::optional<uint8_t> Homographs::Table::find(uint32_t hash) const {
  const uint32_t place = hash >> (32 - kHashBits);
  const auto found = std::lower_bound(hashes.begin(), hashes.end(), place);
  if (found == hashes.end() || *found != place) return std::nullopt;
  return bytes[static_cast<size_t>(found - hashes.begin())];
}

// The parts of speech that a neighbour may have; of a hyphened word, its last part.
std::string Homographs::word_class(Tokens tokens, size_t i, int distance) const {
  const text::Token* const token = token_at(tokens, i, distance);
  if (token == nullptr) return distance < 0 ? "S" : "E";
  if (token->number) return "#";
  const std::string& written = token->text;
  if (token->kind == text::TokenKind::kPunctuation)
    return written == "." || written == "!" || written == "?" || written == "…" ? "." : written;
  if (token->kind != text::TokenKind::kWord) return "p";
  std::string word = text::ascii_lower(written);
  word.erase(0, word.rfind('-') + 1);
  if (const auto known = words_.find(hash_of(word))) return class_names_[*known];
  if (is_upper(written[0])) return "P";
  for (const size_t letters : kEndings) {
    if (word.size() < letters) continue;
    const auto known = words_.find(hash_of(std::string_view(word).substr(word.size() - letters), hash_of("~")));
    if (known) return "~" + class_names_[*known];
  }
  return "?";
}

std::vector<uint32_t> Homographs::features(Tokens tokens, size_t i) const {
  Features out;
  out.add("bias");
  out.add("shape=", shape(tokens[i].text));
  add_words(tokens, i, out);
  add_bags(tokens, i, out);
  add_classes(Around<kClassSides>([&](int d) { return word_class(tokens, i, d); }), out);
  return out.take();
}

Result<Homographs> Homographs::parse(std::string_view file, std::string_view name) {
  const auto damaged = [&](std::string_view why) { return fail(Code::kDataLoss, "'{}': {}", name, why); };
  const auto first = take_line(file);
  const std::vector<std::string> start = split(first.value_or(""));
  if (start.size() != 5 || start[0] != "syrinx" || start[1] != "homographs" || start[2] != "1")
    return damaged("not a file of homographs");
  const auto words = number_of(start[3]), weights = number_of(start[4]);
  const auto classes = take_line(file);
  if (!words || !weights || !classes) return damaged("the first line does not count words and weights");
  Homographs made;
  made.class_names_ = split(*classes);
  for (;;) {
    const auto line = take_line(file);
    if (!line) return damaged("no empty line ends the readings");
    if (line->empty()) break;
    const auto [word, reading, keys, tag, american, british] = fields_of(*line);
    if (word.empty() || reading.empty() || (tag.empty() && american.empty())) return damaged("a reading lacks a field");
    HomographReading one{std::string(reading), std::string(tag), std::string(american), std::string(british)};
    for (const std::string& key : split(keys)) one.keys.push_back(hash_of(key));
    made.readings_[std::string(word)].push_back(std::move(one));
  }
  if (!made.words_.take(file, *words) || !made.weights_.take(file, *weights) || !file.empty())
    return damaged("its tables are not as long as the first line says");
  const auto is_class = [&](uint8_t c) { return c < made.class_names_.size(); };
  if (!std::all_of(made.words_.bytes.begin(), made.words_.bytes.end(), is_class))
    return damaged("a word is of a class that is not named");
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

const std::vector<HomographReading>* Homographs::find(std::string_view word) const {
  const auto found = readings_.find(text::ascii_lower(word));
  return found == readings_.end() ? nullptr : &found->second;
}

const HomographReading* Homographs::named(std::string_view word, std::string_view name) const {
  const std::vector<HomographReading>* const readings = find(word);
  if (readings == nullptr) return nullptr;
  const auto found =
      std::find_if(readings->begin(), readings->end(), [&](const auto& each) { return each.name == name; });
  return found == readings->end() ? nullptr : &*found;
}

std::vector<int32_t> Homographs::scores(Tokens tokens, size_t i) const {
  std::vector<int32_t> all;
  const std::vector<HomographReading>* const readings = find(tokens[i].text);
  if (readings == nullptr) return all;
  const std::vector<uint32_t> found = features(tokens, i);
  for (const HomographReading& reading : *readings) {
    int32_t score = 0;
    for (const uint32_t key : reading.keys)
      for (const uint32_t feature : found) score += static_cast<int8_t>(weights_.find(feature ^ key).value_or(0));
    all.push_back(score);
  }
  return all;
}

const HomographReading* Homographs::choose(Tokens tokens, size_t i, std::string_view part) const {
  const std::vector<HomographReading>* const readings = find(part);
  if (readings == nullptr) return nullptr;
  const auto best = [&](Tokens sentence, size_t place) {
    const std::vector<int32_t> all = scores(sentence, place);
    return &(*readings)[static_cast<size_t>(std::max_element(all.begin(), all.end()) - all.begin())];
  };
  std::string_view whole = tokens[i].text;
  if (part.size() == whole.size()) return best(tokens, i);
  whole = whole.substr(0, whole.find_last_not_of('\'') + 1);
  whole.remove_prefix(std::min(whole.find_first_not_of('\''), whole.size()));
  const size_t begin = static_cast<size_t>(part.data() - whole.data()), end = begin + part.size();
  if ((begin > 0 && whole[begin - 1] != '-') || (end < whole.size() && whole[end] != '-')) return nullptr;
  // The parts beside it become tokens, among those that a feature may look at.
  const auto copy = [](const text::Token& original, std::string_view written) {
    text::Token token;
    token.kind = original.kind;
    token.number = original.number;
    token.text = written.substr(written.size() - std::min(written.size(), kLongestNeighbour));
    return token;
  };
  const auto piece = [&](std::string_view written) { return copy(tokens[i], written); };
  const Tokens before = tokens.first(i).last(std::min<size_t>(i, kNear));
  const Tokens after = tokens.subspan(i + 1, std::min<size_t>(tokens.size() - i - 1, kNear));
  std::vector<text::Token> sentence;
  for (const text::Token& token : before) sentence.push_back(copy(token, token.text));
  if (begin > 0) {
    const std::string_view all = whole.substr(0, begin - 1).substr(begin - 1 - std::min(begin - 1, kLongestNeighbour));
    sentence.push_back(piece(all.substr(all.rfind('-') + 1)));
  }
  const size_t place = sentence.size();
  sentence.push_back(piece(part));
  if (end < whole.size()) {
    const std::string_view all = whole.substr(end + 1, kLongestNeighbour);
    sentence.push_back(piece(all.substr(0, all.find('-'))));
  }
  for (const text::Token& token : after) sentence.push_back(copy(token, token.text));
  return best(sentence, place);
}

}  // namespace syrinx::g2p
