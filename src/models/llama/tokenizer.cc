#include "models/llama/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "text/tokens/bpe_files.h"

namespace syrinx::llama {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = size_t{4} << 20;
constexpr size_t kMaxEnds = 64;
constexpr float kMaxTopK = 1 << 20;

// The pre-tokenizers that GGUF files name, and the rest that their makers' tokenizer.json says.
constexpr struct {
  std::string_view name;
  text::BpeSplit split;
  bool ignore_merges, nfc;
} kSplits[] = {
    {"gpt-2", text::BpeSplit::kGpt2, false, false},      {"smollm", text::BpeSplit::kGpt2LoneDigits, false, false},
    {"llama-bpe", text::BpeSplit::kCl100k, true, false}, {"llama3", text::BpeSplit::kCl100k, true, false},
    {"llama-v3", text::BpeSplit::kCl100k, true, false},  {"qwen2", text::BpeSplit::kCl100kLoneDigits, false, true}};

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Result<Json> read_json(const fs::path& path) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path.string()));
  return parse_json(text_of(file), path.string(), {.max_bytes = kMaxConfigBytes});
}

Result<text::ByteBpe> read_gguf_bpe(const GgufFile& file, const std::string& name) {
  SYRINX_TRY(const auto model, file.text("tokenizer.ggml.model"));
  if (model.value_or("") != "gpt2")
    return fail(Code::kUnsupported,
                "'{}' has a vocabulary of the kind {}; known is byte-level BPE, 'gpt2'.  Take a model with such a one",
                name, in_quotes(model.value_or("")));
  SYRINX_TRY(const auto pre, file.text("tokenizer.ggml.pre"));
  const auto* const known = std::ranges::find(kSplits, pre.value_or(""), [](const auto& each) { return each.name; });
  if (known == std::end(kSplits)) {
    std::string names;
    for (const auto& each : kSplits) names += (names.empty() ? "" : ", ") + std::string(each.name);
    return fail(Code::kUnsupported, "'{}' has the pre-tokenizer {}, which is not known here; known are {}", name,
                in_quotes(pre.value_or("")), names);
  }
  SYRINX_TRY(const auto tokens, file.texts("tokenizer.ggml.tokens", text::ByteBpe::kMaxTokens));
  SYRINX_TRY(const auto types, file.wholes("tokenizer.ggml.token_type", text::ByteBpe::kMaxTokens));
  SYRINX_TRY(const auto merges, file.texts("tokenizer.ggml.merges", text::ByteBpe::kMaxMerges));
  return text::make_bpe({.tokens = tokens,
                         .types = types,
                         .merges = merges,
                         .split = known->split,
                         .ignore_merges = known->ignore_merges,
                         .nfc = known->nfc},
                        name);
}

tl::unexpected<Error> no_template(const std::string& name) {
  return fail(Code::kUnsupported, "'{}' has no chat template; take a model that was trained for conversations", name);
}

// One text, or several with names, of which the one that is used without tools counts.
Result<std::string> template_in(const Json& config, const std::string& name) {
  const Json* const found = config.find("chat_template");
  if (found == nullptr) return no_template(name);
  if (found->string() != nullptr) return *found->string();
  for (const Json& each : found->array() != nullptr ? *found->array() : Json::Array()) {
    const Json *const title = each.find("name"), *const text = each.find("template");
    if (title != nullptr && title->string() != nullptr && *title->string() == "default" && text != nullptr &&
        text->string() != nullptr)
      return *text->string();
  }
  return no_template(name);
}

Result<std::string> read_template(const fs::path& folder) {
  const fs::path alone = folder / "chat_template.jinja", config = folder / "tokenizer_config.json";
  if (is_there(alone)) {
    SYRINX_TRY(const MappedFile file, MappedFile::open(alone.string()));
    if (file.bytes().size() > ChatTemplate::kMaxTemplateBytes)
      return fail(Code::kLimitExceeded, "'{}' has {} bytes, the limit is {}", alone.string(), file.bytes().size(),
                  ChatTemplate::kMaxTemplateBytes);
    return std::string(text_of(file));
  }
  if (!is_there(config)) return no_template(folder.string());
  SYRINX_TRY(const Json json, read_json(config));
  return template_in(json, config.string());
}

void add_ends(const Json* ends, std::vector<int32_t>& ids) {
  const auto add = [&](const Json& end) {
    if (end.whole() != nullptr && *end.whole() >= 0 && *end.whole() < INT32_MAX && ids.size() < kMaxEnds)
      ids.push_back(static_cast<int32_t>(*end.whole()));
  };
  if (ends == nullptr) return;
  if (ends->array() == nullptr) return add(*ends);
  for (const Json& end : *ends->array()) add(end);
}

// `generation_config.json`, where it asks for drawing at all.
std::optional<TemplateSampling> sampling_in(const Json& config) {
  const auto number = [&](const char* name, float usual) {
    const Json* const found = config.find(name);
    if (found == nullptr) return usual;
    if (found->whole() != nullptr) return static_cast<float>(*found->whole());
    return found->real() != nullptr ? static_cast<float>(*found->real()) : usual;
  };
  const Json* const draws = config.find("do_sample");
  if (draws == nullptr || draws->boolean() == nullptr || !*draws->boolean()) return std::nullopt;
  const float top_k = number("top_k", 50);
  if (!(top_k >= 0 && top_k <= kMaxTopK)) return std::nullopt;
  // transformers' own where the file says nothing.
  TemplateSampling sampling{.temperature = number("temperature", 1),
                            .top_p = number("top_p", 1),
                            .top_k = static_cast<int>(top_k),
                            .repetition_penalty = number("repetition_penalty", 1),
                            .source = "generation_config.json"};
  const bool is_sound = sampling.temperature >= 0 && sampling.temperature <= 2 && sampling.top_p > 0 &&
                        sampling.top_p <= 1 && sampling.repetition_penalty >= 0.5f && sampling.repetition_penalty <= 2;
  return is_sound ? std::optional(sampling) : std::nullopt;
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  const fs::path place(path);
  if (place.extension() != ".gguf")
    return read_folder(place.has_parent_path() ? place.parent_path().string() : std::string("."));
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  SYRINX_TRY(const GgufFile parsed, GgufFile::parse(file.bytes(), path));
  return read_gguf(parsed, path);
}

Result<Tokenizer> Tokenizer::read_gguf(const GgufFile& file, const std::string& name) {
  SYRINX_TRY(text::ByteBpe bpe, read_gguf_bpe(file, name));
  SYRINX_TRY(const auto jinja, file.text("tokenizer.chat_template"));
  if (!jinja) return no_template(name);
  SYRINX_TRY(Tokenizer made, make(std::move(bpe), *jinja, name));
  for (const char* const key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    SYRINX_TRY(const auto end, file.whole(key));
    if (end && *end < made.bpe_.size()) made.ends_.push_back(static_cast<int32_t>(*end));
  }
  return made;
}

Result<Tokenizer> Tokenizer::read_folder(const std::string& folder) {
  const fs::path vocabulary = fs::path(folder) / "tokenizer.json",
                 generation = fs::path(folder) / "generation_config.json";
  if (!is_there(vocabulary))
    return fail(Code::kNotFound, "'{}' is not there; it must lie beside the weights, since it is their vocabulary",
                vocabulary.string());
  SYRINX_TRY(const MappedFile file, MappedFile::open(vocabulary.string()));
  SYRINX_TRY(text::ByteBpe bpe, text::read_bpe_json_by_merges(text_of(file), vocabulary.string()));
  SYRINX_TRY(const std::string jinja, read_template(folder));
  SYRINX_TRY(Tokenizer made, make(std::move(bpe), jinja, folder));
  if (!is_there(generation)) return made;
  SYRINX_TRY(const Json json, read_json(generation));
  add_ends(json.find("eos_token_id"), made.ends_);
  if (const auto sampling = sampling_in(json)) made.sampling_ = sampling;
  return made;
}

Result<Tokenizer> Tokenizer::make(text::ByteBpe bpe, std::string_view jinja, const std::string& name) {
  SYRINX_TRY(ChatTemplate chat, ChatTemplate::recognise(jinja, name));
  Tokenizer made(std::move(bpe), std::move(chat));
  for (const std::string_view token : made.chat_.tokens())
    if (!made.bpe_.find_named(token))
      return fail(Code::kDataLoss, "the chat template of '{}' writes {}, which its vocabulary does not have", name,
                  in_quotes(token));
  for (const std::string_view token : made.chat_.end_tokens())
    if (const auto id = made.bpe_.find_named(token)) made.ends_.push_back(*id);
  made.sampling_ = made.chat_.sampling();
  return made;
}

Result<std::vector<int32_t>> Tokenizer::ids_of(std::span<const ChatPart> parts) const {
  std::vector<int32_t> ids;
  for (const ChatPart& part : parts) {
    if (part.is_token) {
      ids.push_back(*bpe_.find_named(part.text));
      continue;
    }
    SYRINX_TRY(const std::vector<int32_t> more, bpe_.encode(part.text));
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

Result<std::vector<int32_t>> Tokenizer::encode(std::span<const text::ChatMessage> messages,
                                               std::string_view today) const {
  SYRINX_TRY(const std::vector<ChatPart> parts, chat_.render(messages, true, today));
  return ids_of(parts);
}

// The template's last text may grow together with what follows: it is left out.
Result<std::vector<int32_t>> Tokenizer::encode_opening(const text::ChatMessage& system, std::string_view today) const {
  if (system.role != text::ChatRole::kSystem) return std::vector<int32_t>();
  SYRINX_TRY(std::vector<ChatPart> parts, chat_.render({&system, 1}, false, today));
  while (!parts.empty() && !parts.back().is_token) parts.pop_back();
  return ids_of(parts);
}

bool Tokenizer::ends(int32_t id) const { return std::ranges::find(ends_, id) != ends_.end(); }

}  // namespace syrinx::llama
