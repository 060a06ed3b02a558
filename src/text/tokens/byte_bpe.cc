#include "text/tokens/byte_bpe.h"

#include <queue>

#include "text/unicode.h"

namespace syrinx::text {
namespace {

enum class Kind : uint8_t { kSpace, kLetter, kNumber, kOther };

Kind kind_of(char32_t c) {
  switch (classify(c)) {
    case Class::kSpace: return Kind::kSpace;
    case Class::kUpper:
    case Class::kLower:
    case Class::kOtherLetter: return Kind::kLetter;
    case Class::kDigit:
    case Class::kOtherNumber: return Kind::kNumber;
    default: return Kind::kOther;
  }
}

// Bytes of the contraction at the beginning of `text`, or 0.
size_t contraction(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  return 0;
}

// The end of the run of one kind that begins at `offset`.
size_t run_end(std::string_view text, size_t offset, Kind kind) {
  for (size_t next = offset; offset < text.size(); offset = next)
    if (kind_of(decode(text, next)) != kind) break;
  return offset;
}

// The end of the piece that begins at `begin`.
size_t piece_end(std::string_view text, size_t begin) {
  if (const size_t size = contraction(text.substr(begin))) return begin + size;
  // One space may lead what is not space.
  const size_t word = begin + (text[begin] == ' ' ? 1 : 0);
  if (word < text.size()) {
    size_t after = word;
    const Kind kind = kind_of(decode(text, after));
    if (kind != Kind::kSpace) return run_end(text, after, kind);
  }
  // White space leaves its last character to the word that follows.
  const size_t end = run_end(text, begin, Kind::kSpace);
  if (end == text.size()) return end;
  size_t last = begin;
  for (size_t next = begin; next < end;) {
    last = next;
    decode(text, next);
  }
  return last > begin ? last : end;
}

// How many bytes may follow the lead byte, and the range of the first of them (Unicode 15, table 3-7).
struct Lead {
  size_t following;
  uint8_t low, high;
};
Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {0, 0, 0};
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {4, 1, 0};  // no lead: never finished
}

// A pair of neighbours that is a token.  `end` tells pairs from those that have been joined to others meanwhile.
struct Pair {
  int32_t rank;
  size_t begin, end;
  bool operator>(const Pair& other) const { return rank != other.rank ? rank > other.rank : begin > other.begin; }
};

}  // namespace

std::vector<std::string_view> split_gpt2(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = piece_end(text, begin);
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

std::string replace_malformed(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size();) {
    const auto at = [&](size_t k) { return static_cast<uint8_t>(bytes[k]); };
    const Lead lead = lead_of(at(i));
    size_t end = i + 1;
    for (uint8_t low = lead.low, high = lead.high; end < bytes.size() && end - i <= lead.following;
         ++end, low = 0x80, high = 0xBF)
      if (at(end) < low || at(end) > high) break;
    if (end - i == lead.following + 1)
      out += bytes.substr(i, end - i);
    else
      append_utf8(out, 0xFFFD);
    i = end;
  }
  return out;
}

Result<ByteBpe> ByteBpe::make(BpeVocabulary vocabulary, const std::string& name) {
  if (vocabulary.tokens.size() > kMaxTokens)
    return fail(Code::kLimitExceeded, "'{}' has {} tokens, the limit is {}", name, vocabulary.tokens.size(),
                kMaxTokens);
  ByteBpe bpe(std::move(vocabulary));
  for (size_t id = 0; id < bpe.size(); ++id) {
    const BpeVocabulary::Token& token = bpe.vocabulary_.tokens[id];
    if (token.bytes.size() > kMaxTokenBytes)
      return fail(Code::kLimitExceeded, "token {} of '{}' has {} bytes, the limit is {}", id, name, token.bytes.size(),
                  kMaxTokenBytes);
    (token.special ? bpe.specials_ : bpe.ranks_).emplace(token.bytes, static_cast<int32_t>(id));
  }
  for (int byte = 0; byte < 256; ++byte)
    if (const char c = static_cast<char>(byte); !bpe.rank({&c, 1}))
      return fail(Code::kDataLoss, "'{}' is not a vocabulary of bytes: it has no token for the byte 0x{:02X}", name,
                  byte);
  return bpe;
}

std::optional<int32_t> ByteBpe::rank(std::string_view bytes) const {
  const auto found = ranks_.find(bytes);
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

bool ByteBpe::is_special(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < size() && vocabulary_.tokens[static_cast<size_t>(id)].special;
}

std::string_view ByteBpe::special_name(int32_t id) const {
  return is_special(id) ? std::string_view(vocabulary_.tokens[static_cast<size_t>(id)].bytes) : std::string_view();
}

std::optional<int32_t> ByteBpe::find_special(std::string_view name) const {
  const auto found = specials_.find(name);
  return found == specials_.end() ? std::nullopt : std::optional(found->second);
}

// The parts are kept by where they begin: ends[b] is the end of the part that begins at b, begins[e] the begin of the
// one that ends at e.  A pair in the queue is stale when its two parts are no longer what they were.
void ByteBpe::append_piece(std::string_view piece, std::vector<int32_t>& ids) const {
  if (const auto whole = rank(piece)) {
    ids.push_back(*whole);
    return;
  }
  std::vector<size_t> ends(piece.size()), begins(piece.size() + 1);
  for (size_t i = 0; i < piece.size(); ++i) ends[i] = i + 1, begins[i + 1] = i;
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs;
  const auto propose = [&](size_t begin) {
    const size_t middle = ends[begin];
    if (middle == piece.size()) return;
    if (const auto joined = rank(piece.substr(begin, ends[middle] - begin))) pairs.push({*joined, begin, ends[middle]});
  };
  for (size_t i = 0; i < piece.size(); ++i) propose(i);
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    const size_t middle = ends[pair.begin];
    if (middle <= pair.begin || middle >= pair.end || ends[middle] != pair.end) continue;
    ends[middle] = 0;  // no part begins here any more
    ends[pair.begin] = pair.end;
    begins[pair.end] = pair.begin;
    propose(pair.begin);
    if (pair.begin > 0) propose(begins[pair.begin]);
  }
  for (size_t begin = 0; begin < piece.size(); begin = ends[begin])
    ids.push_back(*rank(piece.substr(begin, ends[begin] - begin)));
}

Result<std::vector<int32_t>> ByteBpe::encode(std::string_view text) const {
  if (text.size() > kMaxTextBytes)
    return fail(Code::kLimitExceeded, "the text has {} bytes, the limit is {}", text.size(), kMaxTextBytes);
  std::vector<int32_t> ids;
  for (const std::string_view piece : split_gpt2(text)) append_piece(piece, ids);
  return ids;
}

std::string ByteBpe::bytes(std::span<const int32_t> ids) const {
  std::string out;
  for (const int32_t id : ids)
    if (id >= 0 && static_cast<size_t>(id) < size() && !is_special(id))
      out += vocabulary_.tokens[static_cast<size_t>(id)].bytes;
  return out;
}

std::string ByteBpe::decode(std::span<const int32_t> ids) const { return replace_malformed(bytes(ids)); }

}  // namespace syrinx::text
