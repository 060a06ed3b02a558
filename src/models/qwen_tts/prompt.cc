#include "models/qwen_tts/prompt.h"

#include <algorithm>
#include <optional>

#include "base/in_quotes.h"
#include "text/unicode.h"

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kRoleTokens = 3, kMostNames = 30;  // names in a message
constexpr int32_t kNone = PromptPosition::kNone;

bool are_ids(std::span<const int32_t> ids, size_t count) {
  return std::all_of(ids.begin(), ids.end(), [&](int32_t id) { return id >= 0 && static_cast<size_t>(id) < count; });
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    text += (text.empty() ? "" : ", ") + shortened(names[i]);
  if (names.size() > kMostNames) text += fmt::format(" and {} more", names.size() - kMostNames);
  return text;
}
std::string names_of(const std::vector<Language>& languages) {
  std::vector<std::string_view> names = {"auto"};
  for (const Language& language : languages)
    if (!language.is_dialect()) names.emplace_back(language.name);
  return joined(names);
}
std::string names_of(const std::vector<Speaker>& speakers) {
  std::vector<std::string_view> names;
  names.reserve(speakers.size());
  for (const Speaker& speaker : speakers) names.emplace_back(speaker.name);
  return joined(names);
}

Status check_reference(const Config& config, const PromptRequest& request) {
  if (request.reference_text.empty() != request.reference_codes.empty())
    return fail(Code::kInvalidArgument, "a reference needs both its transcript and its codes");
  if (request.reference_codes.size() % config.codebooks != 0)
    return fail(Code::kInvalidArgument, "the reference has {} codes, no whole frames of {}",
                request.reference_codes.size(), config.codebooks);
  for (size_t i = 0; i < request.reference_codes.size(); ++i) {
    const size_t codes = i % config.codebooks == 0 ? config.codes() : config.predictor_codes;
    if (!are_ids(request.reference_codes.subspan(i, 1), codes))
      return fail(Code::kInvalidArgument, "the reference has the code {} where the model knows {}",
                  request.reference_codes[i], codes);
  }
  return {};
}

Status check_begun(const Config& config, const PromptRequest& request) {
  if (request.text_first)
    return fail(Code::kInvalidArgument, "a text that goes on cannot stand before the sound; let it run beside it");
  const size_t least = least_text(request.reference_codes.size() / config.codebooks, request.reference_text.size());
  if (request.text.size() < least)
    return fail(Code::kInvalidArgument, "a text that goes on begins with {} tokens, not {}", least,
                request.text.size());
  return {};
}

Status check(const Config& config, const PromptRequest& request) {
  if (request.text.empty()) return fail(Code::kInvalidArgument, "there is no text to speak");
  if (!request.text_ends) SYRINX_TRY_VOID(check_begun(config, request));
  if (request.role.size() != kRoleTokens)
    return fail(Code::kInvalidArgument, "a role of {} tokens, not {}", request.role.size(), kRoleTokens);
  for (const auto ids : {request.role, request.text, request.instruction, request.reference_text})
    if (!are_ids(ids, config.text_vocabulary))
      return fail(Code::kInvalidArgument, "a text has tokens that the model, which knows {}, does not have",
                  config.text_vocabulary);
  const bool is_base = config.kind == Kind::kBase;
  if (!request.instruction.empty() && !config.takes_instruction())
    return fail(Code::kUnsupported, "this model ({}{}) takes no instruction", kind_name(config.kind),
                config.size.empty() ? "" : ", " + shortened(config.size));
  if (!request.speaker.empty() && config.kind != Kind::kCustomVoice)
    return fail(Code::kUnsupported, "a model of the kind {} has no speakers", kind_name(config.kind));
  if (!is_base && (!request.voice.empty() || !request.reference_codes.empty()))
    return fail(Code::kUnsupported, "a model of the kind {} speaks with no recorded voice; one of the kind base does",
                kind_name(config.kind));
  if (is_base && request.voice.size() != config.talker.width)
    return fail(Code::kInvalidArgument, "a model of the kind base needs a voice of {} numbers, not {}",
                config.talker.width, request.voice.size());
  return check_reference(config, request);
}

class Layout {
 public:
  Layout(const Config& config, const PromptRequest& request) : c_(config), r_(request) {}

  Result<Prompt> make() {
    SYRINX_TRY(const std::vector<int32_t> control, control_tokens());
    for (const int32_t id : r_.instruction) add(id, kNone);
    for (const int32_t id : r_.role) add(id, kNone);
    for (size_t i = 0; i + 1 < control.size(); ++i) add(i + 2 < control.size() ? c_.text.pad : c_.text.bos, control[i]);
    prompt_.shared = prompt_.positions.size();
    if (!r_.reference_codes.empty())
      add_reference();
    else
      add_text();
    prompt_.ends = r_.text_ends;
    prompt_.voice.assign(r_.voice.begin(), r_.voice.end());
    prompt_.codes.assign(r_.reference_codes.begin(), r_.reference_codes.end());
    return std::move(prompt_);
  }

 private:
  void add(int32_t text, int32_t codec, int32_t frame = kNone) {
    prompt_.positions.push_back({.text = text, .codec = codec, .frame = frame});
  }

  // The codec side in front of the text: what is thought, the voice, pad and bos.
  Result<std::vector<int32_t>> control_tokens() const {
    SYRINX_TRY(const Speaker* const speaker, find_speaker());
    SYRINX_TRY(const std::optional<int32_t> language, language_token(speaker));
    std::vector<int32_t> control;
    if (language)
      control = {c_.codec.think, c_.codec.think_begin, *language, c_.codec.think_end};
    else
      control = {c_.codec.no_think, c_.codec.think_begin, c_.codec.think_end};
    if (speaker != nullptr) control.push_back(speaker->id);
    if (!r_.voice.empty()) control.push_back(PromptPosition::kVoice);
    control.insert(control.end(), {c_.codec.pad, c_.codec.bos});
    return control;
  }

  Result<const Speaker*> find_speaker() const {
    if (r_.speaker.empty()) return nullptr;
    const Speaker* const speaker = c_.speaker(r_.speaker);
    if (speaker == nullptr)
      return fail(Code::kInvalidArgument, "the model has no speaker {}; it has {}", in_quotes(r_.speaker),
                  names_of(c_.speakers));
    return speaker;
  }

  // A speaker of a dialect speaks it where Chinese or no language is asked for.
  Result<std::optional<int32_t>> language_token(const Speaker* speaker) const {
    const std::string asked = text::ascii_lower(r_.language);
    const Language* language = nullptr;
    if (asked != "auto") {
      language = c_.language(asked);
      if (language == nullptr || language->is_dialect())
        return fail(Code::kInvalidArgument, "the model has no language {}; it has {}", in_quotes(r_.language),
                    names_of(c_.languages));
    }
    if (speaker != nullptr && !speaker->dialect.empty() && (asked == "auto" || asked == "chinese"))
      language = c_.language(speaker->dialect);
    return language == nullptr ? std::nullopt : std::optional(language->id);
  }

  void add_text() {
    if (!r_.text_first) {
      add(r_.text.front(), c_.codec.bos);
      prompt_.trailing.assign(r_.text.begin() + 1, r_.text.end());
      if (r_.text_ends) prompt_.trailing.push_back(c_.text.eos);
      return;
    }
    for (const int32_t id : r_.text) add(id, c_.codec.pad);
    add(c_.text.eos, c_.codec.pad);
    add(c_.text.pad, c_.codec.bos);
  }

  // The texts and tts_eos beside bos and the frames of the reference, or one behind the other.
  void add_reference() {
    std::vector<int32_t> texts(r_.reference_text.begin(), r_.reference_text.end());
    texts.insert(texts.end(), r_.text.begin(), r_.text.end());
    if (r_.text_ends) texts.push_back(c_.text.eos);
    const size_t sounds = r_.reference_codes.size() / c_.codebooks + 1;
    const auto add_sound = [&](int32_t text, size_t i) {
      add(text, i == 0 ? c_.codec.bos : kNone, i == 0 ? kNone : static_cast<int32_t>(i - 1));
    };
    prompt_.shared += r_.text_first ? r_.reference_text.size() : std::min(r_.reference_text.size(), sounds);
    if (r_.text_first) {
      for (const int32_t id : texts) add(id, c_.codec.pad);
      for (size_t i = 0; i < sounds; ++i) add_sound(c_.text.pad, i);
      return;
    }
    for (size_t i = 0; i < sounds; ++i) add_sound(i < texts.size() ? texts[i] : c_.text.pad, i);
    if (texts.size() > sounds)
      prompt_.trailing.assign(texts.begin() + static_cast<std::ptrdiff_t>(sounds), texts.end());
  }

  const Config& c_;
  const PromptRequest& r_;
  Prompt prompt_;
};

}  // namespace

// Beside bos and the frames.
size_t least_text(size_t reference_frames, size_t reference_tokens) {
  if (reference_frames == 0) return 1;
  return std::max(reference_frames + 1, reference_tokens + 1) - reference_tokens;
}

Result<Prompt> make_prompt(const Config& config, const PromptRequest& request) {
  SYRINX_TRY_VOID(check(config, request));
  return Layout(config, request).make();
}

}  // namespace syrinx::qwen_tts
