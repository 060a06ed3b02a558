#include "models/qwen_tts/tokenizer.h"

#include <charconv>
#include <filesystem>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "text/tokens/bpe_files.h"
#include "text/unicode.h"

namespace syrinx::qwen_tts {
namespace {

using text::ByteBpe;

constexpr size_t kMaxTemplateTokens = 2;     // of "assistant\n"
constexpr size_t kMaxNativeTokens = 100000;  // of a vocabulary that transformers never patches

// An array of tokens for make_bpe(), whose types are those of a GGUF file.
class Vocabulary {
 public:
  Vocabulary(const Config& config, const std::string& name) : config_(config), name_(name) {}

  Status read_vocabulary(std::string_view json) {
    SYRINX_TRY(const Json file, parse_json(json, name_ + "/vocab.json", {.max_bytes = text::kMaxBpeFileBytes}));
    if (file.object() == nullptr) return damaged("vocab.json is not an object");
    for (const JsonMember& member : *file.object()) {
      const int64_t* const id = member.value.whole();
      if (id == nullptr) return damaged(fmt::format("vocab.json has no id for {}", in_quotes(member.key)));
      SYRINX_TRY_VOID(place(*id, member.key, kNormal));
    }
    count_ = file.object()->size();
    return {};
  }

  // added_tokens_decoder: {"ID": {"content": TEXT, "special": FLAG}}.
  Status read_added(std::string_view json) {
    const JsonLimits limits{.max_bytes = text::kMaxBpeFileBytes};
    SYRINX_TRY(const Json file, parse_json(json, name_ + "/tokenizer_config.json", limits));
    const Json* const added = file.find("added_tokens_decoder");
    if (added == nullptr || added->object() == nullptr)
      return damaged("tokenizer_config.json has no added_tokens_decoder");
    for (const JsonMember& member : *added->object()) {
      int64_t id = -1;
      const char* const end = member.key.data() + member.key.size();
      const auto [read_to, fault] = std::from_chars(member.key.data(), end, id);
      const Json* const content = member.value.find("content");
      const Json* const special = member.value.find("special");
      if (fault != std::errc() || read_to != end || content == nullptr || content->string() == nullptr)
        return damaged(fmt::format("the added token {} has no id or no content", in_quotes(member.key)));
      const bool is_special = special != nullptr && special->boolean() != nullptr && *special->boolean();
      SYRINX_TRY_VOID(place(id, *content->string(), is_special ? kControl : kUserDefined));
    }
    return {};
  }

  // A line "a b" is a merge; the first may tell a version.
  Status read_merges(std::string_view lines) {
    if (lines.size() > text::kMaxBpeFileBytes)
      return fail(Code::kLimitExceeded, "'{}/merges.txt' has {} bytes, the limit is {}", name_, lines.size(),
                  text::kMaxBpeFileBytes);
    for (bool is_first = true; !lines.empty(); is_first = false) {
      const size_t end = std::min(lines.find('\n'), lines.size());
      std::string_view line = lines.substr(0, end);
      lines.remove_prefix(std::min(end + 1, lines.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || (is_first && line.starts_with("#version"))) continue;
      merges_.push_back(line);
    }
    return {};
  }

  Result<ByteBpe> make() const {
    const bool by_case = config_.cuts_by_case && count_ > kMaxNativeTokens;
    const std::vector<std::string_view> tokens(tokens_.begin(), tokens_.end());
    return text::make_bpe({.tokens = tokens,
                           .types = types_,
                           .merges = merges_,
                           .split = by_case ? text::BpeSplit::kCasedWords : text::BpeSplit::kCl100kLoneDigits,
                           .ignore_merges = false,
                           .nfc = true},
                          name_);
  }

 private:
  enum Type : int64_t { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };

  tl::unexpected<Error> damaged(std::string_view what) const {
    return fail(Code::kDataLoss, "the tokenizer of '{}' cannot be read: {}; download it again", name_, what);
  }

  // Ids that no file names stay unused.  An added token may stand in vocab.json too.
  Status place(int64_t id, const std::string& token, Type type) {
    if (id < 0 || static_cast<size_t>(id) >= config_.text_vocabulary)
      return damaged(fmt::format("the token {} has the id {}, outside the {} of the model", in_quotes(token), id,
                                 config_.text_vocabulary));
    const auto index = static_cast<size_t>(id);
    if (index >= tokens_.size()) {
      tokens_.resize(index + 1);
      types_.resize(index + 1, kUnused);
    }
    if (types_[index] != kUnused && (tokens_[index] != token || type == kNormal))
      return damaged(
          fmt::format("the tokens {} and {} have one id, {}", in_quotes(tokens_[index]), in_quotes(token), id));
    tokens_[index] = token;
    types_[index] = type;
    return {};
  }

  const Config& config_;
  const std::string& name_;
  size_t count_ = 0;  // of tokens in vocab.json
  std::vector<std::string> tokens_;
  std::vector<int64_t> types_;
  std::vector<std::string_view> merges_;
};

std::string_view without_space_around(std::string_view text) {
  while (!text.empty()) {
    size_t next = 0;
    if (!text::is_space(text::decode(text, next))) break;
    text.remove_prefix(next);
  }
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<uint8_t>(text[last]) & 0xC0) == 0x80) --last;
    size_t next = last;
    if (!text::is_space(text::decode(text, next)) || next != text.size()) break;
    text = text.substr(0, last);
  }
  return text;
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const std::string& folder, const Config& config) {
  MappedFile files[3];
  const char* const names[] = {"vocab.json", "merges.txt", "tokenizer_config.json"};
  std::string_view texts[3];
  for (size_t i = 0; i < std::size(names); ++i) {
    SYRINX_TRY(files[i], MappedFile::open((std::filesystem::path(folder) / names[i]).string()));
    texts[i] = {reinterpret_cast<const char*>(files[i].bytes().data()), files[i].bytes().size()};
  }
  return read({.vocabulary = texts[0], .merges = texts[1], .config = texts[2]}, config, folder);
}

Result<Tokenizer> Tokenizer::read(const TokenizerFiles& files, const Config& config, const std::string& name) {
  Vocabulary vocabulary(config, name);
  SYRINX_TRY_VOID(vocabulary.read_vocabulary(files.vocabulary));
  SYRINX_TRY_VOID(vocabulary.read_added(files.config));
  SYRINX_TRY_VOID(vocabulary.read_merges(files.merges));
  SYRINX_TRY(ByteBpe bpe, vocabulary.make());
  const std::pair<const char*, int32_t> specials[] = {{"<|im_start|>", config.text.im_start},
                                                      {"<|im_end|>", config.text.im_end},
                                                      {"<tts_pad>", config.text.pad},
                                                      {"<tts_text_bos>", config.text.bos},
                                                      {"<tts_text_eod>", config.text.eos}};
  for (const auto& [token, id] : specials)
    if (bpe.find_special(token) != id)
      return fail(Code::kDataLoss, "the tokenizer of '{}' does not have {} as token {}, as its config.json says", name,
                  token, id);
  Tokenizer made(std::move(bpe), config.text);
  SYRINX_TRY(made.role_, made.bpe_.encode("assistant\n"));
  if (made.role_.size() != kMaxTemplateTokens)
    return fail(Code::kUnsupported, "the tokenizer of '{}' makes {} tokens of \"assistant\\n\", the layout needs {}",
                name, made.role_.size(), kMaxTemplateTokens);
  made.role_.insert(made.role_.begin(), config.text.im_start);
  return made;
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text) const {
  SYRINX_TRY(std::vector<int32_t> ids, bpe_.encode(without_space_around(text)));
  if (ids.empty()) return fail(Code::kInvalidArgument, "there is no text to speak");
  return ids;
}

Result<std::vector<int32_t>> Tokenizer::encode_instruction(std::string_view instruction) const {
  if (instruction.empty()) return std::vector<int32_t>();
  SYRINX_TRY(const std::vector<int32_t> middle, bpe_.encode("user\n" + std::string(instruction)));
  SYRINX_TRY(const std::vector<int32_t> end, bpe_.encode("\n"));
  std::vector<int32_t> ids = {ids_.im_start};
  ids.insert(ids.end(), middle.begin(), middle.end());
  ids.push_back(ids_.im_end);
  ids.insert(ids.end(), end.begin(), end.end());
  return ids;
}

}  // namespace syrinx::qwen_tts
