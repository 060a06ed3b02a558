#include "text/tokens/byte_bpe.h"

#include <algorithm>

#include "text/unicode.h"

namespace syrinx::text {
namespace {

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

// A pair of neighbours that can be joined.  `end` tells pairs from those that have been joined to others meanwhile.
struct Pair {
  uint64_t order;  // its rank, then where it begins
  uint32_t end;
  int32_t whole;

  uint32_t begin() const { return static_cast<uint32_t>(order); }
  bool operator>(const Pair& other) const { return order > other.order; }
};

// Calls between(part) and found(id) for what lies between the tokens of `added` and for them, in order.
template <class Between, class Found>
void part_at(const BpeAdded& added, std::string_view text, const Between& between, const Found& found) {
  size_t begin = 0;
  while (const auto match = added.find(text, begin)) {
    between(text.substr(begin, match->begin - begin));
    found(match->id);
    begin = match->end;
  }
  between(text.substr(begin));
}

}  // namespace

// The parts of a piece are kept by where they begin: ends[b] is the end of the part that begins at b, ids[b] its token,
// begins[e] the begin of the part that ends at e.
struct ByteBpe::Work {
  std::vector<uint32_t> ends, begins;
  std::vector<int32_t> ids;
  std::vector<Pair> pairs;  // a heap, the lowest rank on top
  std::string known;        // a piece without the bytes that have no token
};

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
  SYRINX_TRY_VOID(bpe.index_tokens(name));
  SYRINX_TRY_VOID(bpe.index_bytes(name));
  SYRINX_TRY_VOID(bpe.index_merges(name));
  return bpe;
}

Status ByteBpe::index_tokens(const std::string& name) {
  std::vector<std::pair<std::string, int32_t>> added, normalized;
  for (size_t i = 0; i < size(); ++i) {
    const BpeVocabulary::Token& token = vocabulary_.tokens[i];
    const auto id = static_cast<int32_t>(i);
    const size_t limit = token.added ? BpeAdded::kMaxTokenBytes : kMaxTokenBytes;
    if (token.bytes.size() > limit)
      return fail(Code::kLimitExceeded, "{} {} of '{}' has {} bytes, the limit is {}",
                  token.added ? "the added token" : "token", id, name, token.bytes.size(), limit);
    if (token.added && token.special)
      return fail(Code::kDataLoss, "token {} of '{}' is both special and not", id, name);
    if (token.added && token.normalized)
      normalized.emplace_back(vocabulary_.nfc ? nfc(token.bytes) : token.bytes, id);
    else if (token.added)
      added.emplace_back(token.bytes, id);
    if (!token.added && !token.bytes.empty()) (token.special ? specials_ : ids_).emplace(token.bytes, id);
  }
  // Merges may name added tokens too, of equal ones the others.
  for (const auto* const tokens : {&added, &normalized})
    for (const auto& token : *tokens)
      ids_.emplace(vocabulary_.tokens[static_cast<size_t>(token.second)].bytes, token.second);
  added_ = BpeAdded(std::move(added));
  normalized_ = BpeAdded(std::move(normalized));
  return {};
}

Status ByteBpe::index_bytes(const std::string& name) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto id = find_token({&c, 1});
    byte_ids_[static_cast<size_t>(byte)] = id.value_or(-1);
    if (id) continue;
    if (!vocabulary_.merges || (byte >= ' ' && byte <= '~'))
      return fail(Code::kDataLoss, "'{}' is not a vocabulary of bytes: it has no token for the byte 0x{:02X}", name,
                  byte);
    lacks_bytes_ = true;
  }
  return {};
}

Status ByteBpe::index_merges(const std::string& name) {
  if (!vocabulary_.merges) return {};
  if (vocabulary_.merges->size() > kMaxMerges)
    return fail(Code::kLimitExceeded, "'{}' has {} merges, the limit is {}", name, vocabulary_.merges->size(),
                kMaxMerges);
  std::vector<BpeMerges::Merge> merges;
  merges.reserve(vocabulary_.merges->size());
  for (const auto& [left, right] : *vocabulary_.merges) {
    const auto left_id = find_token(left), right_id = find_token(right), whole_id = find_token(left + right);
    if (!left_id || !right_id || !whole_id)
      return fail(Code::kDataLoss, "merge {} of '{}' names a token that is not there", merges.size(), name);
    merges.push_back({*left_id, *right_id, *whole_id});
  }
  merges_.emplace(merges, size());
  vocabulary_.merges.reset();
  return {};
}

std::optional<int32_t> ByteBpe::find_token(std::string_view bytes) const {
  const auto found = ids_.find(bytes);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

BpeMerges::Place ByteBpe::joined(int32_t left, int32_t right, std::string_view bytes) const {
  if (merges_) return merges_->find(left, right);
  const int32_t id = find_token(bytes).value_or(-1);
  return {id, id};
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

std::optional<int32_t> ByteBpe::find_named(std::string_view name) const {
  if (const auto special = find_special(name)) return special;
  const auto found = ids_.find(name);
  const bool is_added = found != ids_.end() && vocabulary_.tokens[static_cast<size_t>(found->second)].added;
  return is_added ? std::optional(found->second) : std::nullopt;
}

// A pair in the heap is stale when its two parts are no longer what they were.
void ByteBpe::append_piece(std::string_view piece, Work& work, std::vector<int32_t>& ids) const {
  if (!merges_ || vocabulary_.ignore_merges) {
    if (const auto whole = find_token(piece)) {
      ids.push_back(*whole);
      return;
    }
  }
  const auto byte_id = [&](char c) { return byte_ids_[static_cast<uint8_t>(c)]; };
  if (lacks_bytes_) {
    work.known.clear();
    std::copy_if(piece.begin(), piece.end(), std::back_inserter(work.known), [&](char c) { return byte_id(c) >= 0; });
    piece = work.known;
  }
  const auto count = static_cast<uint32_t>(piece.size());
  work.ends.resize(count);
  work.begins.resize(count + 1);
  work.ids.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    work.ids[i] = byte_id(piece[i]);
    work.ends[i] = i + 1;
    work.begins[i + 1] = i;
  }
  const auto propose = [&](uint32_t begin) {
    const uint32_t middle = work.ends[begin];
    if (middle == count) return;
    const uint32_t end = work.ends[middle];
    const BpeMerges::Place place = joined(work.ids[begin], work.ids[middle], piece.substr(begin, end - begin));
    if (place.rank < 0) return;
    work.pairs.push_back({static_cast<uint64_t>(place.rank) << 32 | begin, end, place.whole});
    std::push_heap(work.pairs.begin(), work.pairs.end(), std::greater<>());
  };
  for (uint32_t i = 0; i < count; ++i) propose(i);
  while (!work.pairs.empty()) {
    std::pop_heap(work.pairs.begin(), work.pairs.end(), std::greater<>());
    const Pair pair = work.pairs.back();
    work.pairs.pop_back();
    const uint32_t begin = pair.begin(), middle = work.ends[begin];
    if (middle <= begin || middle >= pair.end || work.ends[middle] != pair.end) continue;
    work.ends[middle] = 0;  // no part begins here any more
    work.ends[begin] = pair.end;
    work.begins[pair.end] = begin;
    work.ids[begin] = pair.whole;
    propose(begin);
    if (begin > 0) propose(work.begins[begin]);
  }
  for (uint32_t begin = 0; begin < count; begin = work.ends[begin]) ids.push_back(work.ids[begin]);
}

// `text` holds no added token.
void ByteBpe::append_text(std::string_view text, Work& work, std::vector<int32_t>& ids) const {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = piece_end(text, begin, vocabulary_.split);
    append_piece(text.substr(begin, end - begin), work, ids);
    begin = end;
  }
}

Result<std::vector<int32_t>> ByteBpe::encode(std::string_view text) const {
  if (text.size() > kMaxTextBytes)
    return fail(Code::kLimitExceeded, "the text has {} bytes, the limit is {}", text.size(), kMaxTextBytes);
  std::vector<int32_t> ids;
  Work work;
  const auto found = [&](int32_t id) { ids.push_back(id); };
  const auto append = [&](std::string_view part) { append_text(part, work, ids); };
  const auto normalize = [&](std::string_view part) {
    const std::string composed = vocabulary_.nfc ? nfc(part) : std::string();
    part_at(normalized_, vocabulary_.nfc ? composed : part, append, found);
  };
  part_at(added_, text, normalize, found);
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
