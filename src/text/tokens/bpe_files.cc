#include "text/tokens/bpe_files.h"

#include <array>

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

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  Result<BpeVocabulary> read(const Json& file) {
    SYRINX_TRY_VOID(check(file));
    const Json* const vocab = file.find("model")->find("vocab");
    if (vocab == nullptr || vocab->object() == nullptr) return damaged("it has no vocabulary");
    for (const JsonMember& member : *vocab->object()) {
      SYRINX_TRY(BpeVocabulary::Token* const token, place(&member.value));
      SYRINX_TRY(token->bytes, spelt_bytes(member.key, name_));
    }
    const Json* const added = file.find("added_tokens");
    if (is_absent(added)) return std::move(vocabulary_);
    if (added->array() == nullptr) return damaged("added_tokens is not a list");
    for (const Json& entry : *added->array()) {
      const Json* const content = entry.find("content");
      if (content == nullptr || content->string() == nullptr) return damaged("an added token has no content");
      SYRINX_TRY(BpeVocabulary::Token* const token, place(entry.find("id")));
      *token = {*content->string(), true};
    }
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

  Status check(const Json& file) const {
    const Json* const model = file.find("model");
    if (model == nullptr) return damaged("it has no model");
    if (!is_text(model->find("type"), "BPE"))
      return fail(Code::kUnsupported, "'{}' holds a model that is not of the type BPE, which alone can be used", name_);
    for (const char* const part : {"truncation", "padding", "normalizer"})
      if (!is_absent(file.find(part))) return unsupported(part);
    for (const char* const part : {"dropout", "unk_token"})
      if (!is_absent(model->find(part))) return unsupported(part);
    const Json* const split = file.find("pre_tokenizer");
    if (split == nullptr || !is_text(split->find("type"), "ByteLevel") || is_true(split->find("add_prefix_space")))
      return unsupported("pre_tokenizer");
    const Json* const decoder = file.find("decoder");
    if (decoder == nullptr || !is_text(decoder->find("type"), "ByteLevel")) return unsupported("decoder");
    return {};
  }

  // The token of an id; those that no entry names stay empty, which nothing spells.
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
  BpeVocabulary vocabulary_;
};

}  // namespace

Result<ByteBpe> read_bpe_json(std::string_view json, const std::string& name) {
  SYRINX_TRY(const Json file, parse_json(json, name, {.max_bytes = kMaxBpeFileBytes}));
  SYRINX_TRY(BpeVocabulary vocabulary, Reader(name).read(file));
  return ByteBpe::make(std::move(vocabulary), name);
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

}  // namespace syrinx::text
