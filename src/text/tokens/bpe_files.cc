#include "text/tokens/bpe_files.h"

#include <array>

#include "base/in_quotes.h"
#include "base/json.h"
#include "text/unicode.h"

namespace syrinx::text {
namespace {

// The byte that each character of GPT-2's alphabet stands for: printable bytes of Latin-1 stand for themselves, the
// other 68 are numbered from U+0100 on.  -1 for characters outside.
constexpr size_t kAlphabetEnd = 256 + 68;
std::array<int, kAlphabetEnd> make_alphabet() {
  std::array<int, kAlphabetEnd> alphabet;
  alphabet.fill(-1);
  size_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    alphabet[printable ? static_cast<size_t>(byte) : next++] = byte;
  }
  return alphabet;
}

Result<std::string> spelt_bytes(std::string_view spelling, const std::string& name) {
  static const std::array<int, kAlphabetEnd> kAlphabet = make_alphabet();
  std::string bytes;
  for (size_t offset = 0; offset < spelling.size();) {
    const char32_t c = decode(spelling, offset);
    if (c >= kAlphabetEnd || kAlphabet[c] < 0)
      return fail(Code::kDataLoss, "'{}' is not a byte-level vocabulary: U+{:04X} stands for no byte", name,
                  static_cast<uint32_t>(c));
    bytes += static_cast<char>(kAlphabet[c]);
  }
  return bytes;
}

bool is_text(const Json* value, std::string_view wanted) {
  return value != nullptr && value->string() != nullptr && *value->string() == wanted;
}
bool is_true(const Json* value) { return value != nullptr && value->boolean() != nullptr && *value->boolean(); }
bool is_absent(const Json* value) { return value == nullptr || value->is_null(); }

// "a b", spelt in the alphabet.
Result<BpeVocabulary::Merge> spelt_merge(std::string_view spelling, size_t number, const std::string& name) {
  const size_t space = spelling.find(' ');
  if (space == std::string_view::npos || spelling.find(' ', space + 1) != std::string_view::npos)
    return fail(Code::kDataLoss, "merge {} of '{}' is not two tokens with a space between them", number, name);
  BpeVocabulary::Merge merge;
  SYRINX_TRY(merge.left, spelt_bytes(spelling.substr(0, space), name));
  SYRINX_TRY(merge.right, spelt_bytes(spelling.substr(space + 1), name));
  return merge;
}

tl::unexpected<Error> too_many_merges(size_t count, const std::string& name) {
  return fail(Code::kLimitExceeded, "'{}' has {} merges, the limit is {}", name, count, ByteBpe::kMaxMerges);
}

class Reader {
 public:
  Reader(const std::string& name, bool by_merges) : name_(name), by_merges_(by_merges) {}

  Result<BpeVocabulary> read(const Json& file) {
    SYRINX_TRY_VOID(check(file));
    SYRINX_TRY_VOID(read_split(file.find("pre_tokenizer")));
    if (vocabulary_.nfc && !by_merges_) return unsupported("normalizer");
    const Json& model = *file.find("model");
    SYRINX_TRY_VOID(read_added(file.find("added_tokens")));
    SYRINX_TRY_VOID(read_tokens(model.find("vocab")));
    if (by_merges_) SYRINX_TRY_VOID(read_merges(model));
    return std::move(vocabulary_);
  }

 private:
  tl::unexpected<Error> damaged(std::string_view what) const {
    return fail(Code::kDataLoss, "'{}' is not a readable tokenizer.json: {}", name_, what);
  }
  tl::unexpected<Error> unsupported(std::string_view part) const {
    return fail(Code::kUnsupported,
                "'{}' asks for something in its {} that is not known here; use the vocabulary of a published "
                "model",
                name_, part);
  }

  Status check(const Json& file) {
    const Json* const model = file.find("model");
    if (model == nullptr) return damaged("it has no model");
    if (!is_text(model->find("type"), "BPE"))
      return fail(Code::kUnsupported, "'{}' holds a model that is not of the type BPE, which alone can be used", name_);
    const Json* const normalizer = file.find("normalizer");
    vocabulary_.nfc = normalizer != nullptr && is_text(normalizer->find("type"), "NFC");
    if (!vocabulary_.nfc && !is_absent(normalizer)) return unsupported("normalizer");
    for (const char* const part : {"truncation", "padding"})
      if (!is_absent(file.find(part))) return unsupported(part);
    for (const char* const part : {"dropout", "unk_token"})
      if (!is_absent(model->find(part))) return unsupported(part);
    const Json* const decoder = file.find("decoder");
    if (decoder == nullptr || !is_text(decoder->find("type"), "ByteLevel")) return unsupported("decoder");
    return {};
  }

  // ByteLevel alone; or after a Split that cuts in its place, or after Digits.
  Status read_split(const Json* split) {
    if (split != nullptr && is_byte_level(*split, true)) return {};
    if (split == nullptr || !is_text(split->find("type"), "Sequence")) return unsupported("pre_tokenizer");
    by_merges_ = true;
    const Json* const steps = split->find("pretokenizers");
    const Json::Array* const list = steps == nullptr ? nullptr : steps->array();
    if (list == nullptr || list->empty() || list->size() > 2) return unsupported("pre_tokenizer");
    const Json& first = list->front();
    if (is_text(first.find("type"), "Split") && is_byte_level(list->back(), false)) return read_expression(first);
    if (!is_byte_level(list->back(), true)) return unsupported("pre_tokenizer");
    if (list->size() == 1) return {};
    if (!is_text(first.find("type"), "Digits") || !is_true(first.find("individual_digits")))
      return unsupported("pre_tokenizer");
    vocabulary_.split = BpeSplit::kGpt2LoneDigits;
    return {};
  }

  // Whether it is one that adds no space, and cuts by GPT-2's expression or not at all.
  static bool is_byte_level(const Json& step, bool cuts) {
    const Json* const use = step.find("use_regex");
    const bool uses = is_absent(use) || is_true(use);
    return is_text(step.find("type"), "ByteLevel") && !is_true(step.find("add_prefix_space")) && uses == cuts;
  }

  Status read_expression(const Json& step) {
    const Json* const pattern = step.find("pattern");
    const Json* const expression = pattern == nullptr ? nullptr : pattern->find("Regex");
    if (expression == nullptr || expression->string() == nullptr || !is_text(step.find("behavior"), "Isolated") ||
        is_true(step.find("invert")))
      return unsupported("pre_tokenizer");
    const auto found = find_bpe_expression(*expression->string());
    if (!found)
      return fail(Code::kUnsupported,
                  "'{}' cuts texts by the expression {}, which is not known here; known are those of GPT-2, of "
                  "cl100k, with one or three digits, and of Tekken",
                  name_, in_quotes(*expression->string()));
    vocabulary_.split = *found;
    return {};
  }

  Status read_tokens(const Json* vocab) {
    if (vocab == nullptr || vocab->object() == nullptr) return damaged("it has no vocabulary");
    for (const JsonMember& member : *vocab->object()) {
      SYRINX_TRY(BpeVocabulary::Token* const token, place(&member.value));
      // Added tokens may stand here as well, in any characters.
      if (token->special || token->added) continue;
      SYRINX_TRY(token->bytes, spelt_bytes(member.key, name_));
    }
    return {};
  }

  Status read_added(const Json* added) {
    if (!is_absent(added) && added->array() == nullptr) return damaged("added_tokens is not a list");
    for (const Json& entry : is_absent(added) ? Json::Array() : *added->array()) {
      const Json* const content = entry.find("content");
      if (content == nullptr || content->string() == nullptr) return damaged("an added token has no content");
      SYRINX_TRY(BpeVocabulary::Token* const token, place(entry.find("id")));
      const bool special = !by_merges_ || is_true(entry.find("special"));
      for (const char* const condition : {"single_word", "lstrip", "rstrip"})
        if (!special && is_true(entry.find(condition))) return unsupported("added_tokens");
      *token = {*content->string(), special, !special, !special && is_true(entry.find("normalized"))};
    }
    return {};
  }

  Status read_merges(const Json& model) {
    for (const char* const part : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const Json* const text = model.find(part); !is_absent(text) && !is_text(text, "")) return unsupported(part);
    if (is_true(model.find("byte_fallback"))) return unsupported("byte_fallback");
    vocabulary_.ignore_merges = is_true(model.find("ignore_merges"));
    const Json* const list = model.find("merges");
    if (list == nullptr || list->array() == nullptr) return damaged("it has no list of merges");
    if (list->array()->size() > ByteBpe::kMaxMerges) return too_many_merges(list->array()->size(), name_);
    vocabulary_.merges.emplace().reserve(list->array()->size());
    for (const Json& entry : *list->array()) {
      SYRINX_TRY(BpeVocabulary::Merge merge, read_merge(entry));
      vocabulary_.merges->push_back(std::move(merge));
    }
    return {};
  }

  // "a b" or ["a", "b"].
  Result<BpeVocabulary::Merge> read_merge(const Json& entry) const {
    const size_t number = vocabulary_.merges->size();
    if (entry.string() != nullptr) return spelt_merge(*entry.string(), number, name_);
    const Json::Array* const pair = entry.array();
    if (pair == nullptr || pair->size() != 2 || pair->front().string() == nullptr || pair->back().string() == nullptr)
      return fail(Code::kDataLoss, "merge {} of '{}' is not two tokens", number, name_);
    BpeVocabulary::Merge merge;
    SYRINX_TRY(merge.left, spelt_bytes(*pair->front().string(), name_));
    SYRINX_TRY(merge.right, spelt_bytes(*pair->back().string(), name_));
    return merge;
  }

  // Where the token of an id is read to.  Ids that no entry names stay empty, which nothing spells.
  Result<BpeVocabulary::Token*> place(const Json* id) {
    if (id == nullptr || id->whole() == nullptr || *id->whole() < 0) return damaged("a token has no id");
    if (static_cast<uint64_t>(*id->whole()) >= ByteBpe::kMaxTokens)
      return fail(Code::kLimitExceeded, "'{}' has a token of the id {}, the limit is {}", name_, *id->whole(),
                  ByteBpe::kMaxTokens - 1);
    const auto index = static_cast<size_t>(*id->whole());
    if (index >= vocabulary_.tokens.size()) vocabulary_.tokens.resize(index + 1);
    return &vocabulary_.tokens[index];
  }

  const std::string& name_;
  bool by_merges_;
  BpeVocabulary vocabulary_;
};

Result<ByteBpe> read_json(std::string_view json, const std::string& name, bool by_merges) {
  SYRINX_TRY(const Json file, parse_json(json, name, {.max_bytes = kMaxBpeFileBytes}));
  SYRINX_TRY(BpeVocabulary vocabulary, Reader(name, by_merges).read(file));
  return ByteBpe::make(std::move(vocabulary), name);
}

}  // namespace

Result<ByteBpe> read_bpe_json(std::string_view json, const std::string& name) { return read_json(json, name, false); }

Result<ByteBpe> read_bpe_json_by_merges(std::string_view json, const std::string& name) {
  return read_json(json, name, true);
}

Result<ByteBpe> read_vocabulary_txt(std::string_view text, const std::string& name) {
  if (text.size() > kMaxBpeFileBytes)
    return fail(Code::kLimitExceeded, "'{}' has {} bytes, the limit is {}", name, text.size(), kMaxBpeFileBytes);
  BpeVocabulary vocabulary;
  bool special = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    special = special || line == "<|endoftext|>";
    if (vocabulary.tokens.size() == ByteBpe::kMaxTokens)
      return fail(Code::kLimitExceeded, "'{}' has more than {} tokens, the limit", name, ByteBpe::kMaxTokens);
    if (special) {
      vocabulary.tokens.push_back({std::string(line), true});
    } else {
      SYRINX_TRY(std::string bytes, spelt_bytes(line, name));
      vocabulary.tokens.push_back({std::move(bytes), false});
    }
  }
  return ByteBpe::make(std::move(vocabulary), name);
}

Result<ByteBpe> make_bpe(const BpeArrays& arrays, const std::string& name) {
  if (arrays.types.size() != arrays.tokens.size())
    return fail(Code::kDataLoss, "'{}' has {} tokens and {} types of tokens", name, arrays.tokens.size(),
                arrays.types.size());
  if (arrays.tokens.size() > ByteBpe::kMaxTokens)
    return fail(Code::kLimitExceeded, "'{}' has {} tokens, the limit is {}", name, arrays.tokens.size(),
                ByteBpe::kMaxTokens);
  if (arrays.merges.size() > ByteBpe::kMaxMerges) return too_many_merges(arrays.merges.size(), name);
  BpeVocabulary vocabulary;
  vocabulary.split = arrays.split;
  vocabulary.ignore_merges = arrays.ignore_merges;
  vocabulary.nfc = arrays.nfc;
  vocabulary.tokens.resize(arrays.tokens.size());
  for (size_t id = 0; id < arrays.tokens.size(); ++id) {
    enum Type : int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5 };
    BpeVocabulary::Token& token = vocabulary.tokens[id];
    const int64_t type = arrays.types[id];
    token.special = type == kUnknown || type == kControl;
    token.added = type == kUserDefined;
    if (type == kNormal) {
      SYRINX_TRY(token.bytes, spelt_bytes(arrays.tokens[id], name));
    } else if (token.special || token.added) {
      token.bytes = arrays.tokens[id];
    } else if (type != kUnused) {
      return fail(Code::kUnsupported, "token {} of '{}' has the type {}; a vocabulary of bytes has those from 1 to 5",
                  id, name, type);
    }
  }
  vocabulary.merges.emplace().reserve(arrays.merges.size());
  for (size_t i = 0; i < arrays.merges.size(); ++i) {
    SYRINX_TRY(BpeVocabulary::Merge merge, spelt_merge(arrays.merges[i], i, name));
    vocabulary.merges->push_back(std::move(merge));
  }
  return ByteBpe::make(std::move(vocabulary), name);
}

}  // namespace syrinx::text
