#include "models/llama/chat_forms.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "base/in_quotes.h"
#include "models/llama/chat_outlines.h"

namespace syrinx::llama {
namespace {

// Families that are known and not written, by a mark that no other has; the more special first.
constexpr struct {
  std::string_view mark, family;
} kOthers[] = {
    {"<|channel|>", "gpt-oss's"},
    {"<start_of_turn>", "Gemma's"},
    {"<|turn>", "Gemma 4's"},
    {"<<SYS>>", "Llama 2's"},
    {"[INST]", "Mistral's or Llama 2's"},
    {"<\xEF\xBD\x9CUser\xEF\xBD\x9C>", "DeepSeek's"},
    {"<|im_sep|>", "Phi-4's"},
    {"<|im_middle|>", "Kimi's"},
    {"<|header_start|>", "Llama 4's"},
    {"<|START_OF_TURN_TOKEN|>", "Command R's"},
    {"<|start_of_role|>", "Granite's"},
    {"[gMASK]", "GLM's"},
    {"<|user|>", "Phi-3's or Zephyr's"},
    {"### Instruction", "Alpaca's"},
    {"USER: ", "Vicuna's"},
};

// The text in the hole, when the outline or line is the known one.
std::optional<std::string> match(std::string_view outline, std::string_view known) {
  const size_t hole = known.find(kOutlineHole);
  if (hole == std::string_view::npos) return outline == known ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = known.substr(0, hole), behind = known.substr(hole + 1);
  if (outline.size() < before.size() + behind.size() || !outline.starts_with(before) || !outline.ends_with(behind))
    return std::nullopt;
  outline.remove_prefix(before.size());
  outline.remove_suffix(behind.size());
  std::string text;
  for (size_t i = 0; i < outline.size(); ++i) {
    if (outline[i] == '\'' || outline[i] == '\n') return std::nullopt;  // more than one string
    if (outline[i] != '\\') {
      text += outline[i];
      continue;
    }
    if (++i == outline.size()) return std::nullopt;
    constexpr std::string_view kLetters = "nrt\\'", kMeant = "\n\r\t\\'";
    const size_t letter = kLetters.find(outline[i]);
    if (letter == std::string_view::npos) return std::nullopt;
    text += kMeant[letter];
  }
  // A control token would be one of the template, and the text is encoded as text.
  return text.find("<|") == std::string::npos ? std::optional<std::string>(text) : std::nullopt;
}

ChatForm filled(const KnownChat& known, std::string text) {
  ChatForm form = known.form;
  if (!form.has_default_system) {
    form.fixed_date = std::move(text);
    return form;
  }
  form.default_system = std::move(text);
  if (form.default_system.find("SmolLM") != std::string::npos) form.maker = ChatMaker::kSmolLm2;
  if (form.needs_message && form.default_system.starts_with("You are Qwen,")) form.maker = ChatMaker::kQwen25;
  return form;
}

// Takes the first line off, with its end.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// The line that differs from the nearest known outline, and that outline's title; no title: the first line does.
std::pair<std::string_view, std::string_view> first_difference(std::string_view outline) {
  size_t nearest = 0;
  std::pair<std::string_view, std::string_view> found;
  for (const KnownChat& known : known_chats()) {
    std::string_view rest = outline, wanted = known.outline, line;
    size_t lines = 0;
    for (; !rest.empty() && match(line = take_line(rest), take_line(wanted)); ++lines) line = {};
    if (lines <= nearest) continue;
    nearest = lines;
    found = {line, known.title};
  }
  return found;
}

}  // namespace

Result<ChatForm> find_chat_form(std::string_view outline, std::string_view jinja, const std::string& name) {
  for (const KnownChat& known : known_chats())
    if (std::optional<std::string> text = match(outline, known.outline)) return filled(known, std::move(*text));

  constexpr std::string_view kRemedy = "take a model with ChatML, Llama 3 or Qwen's template";
  const std::string shown = in_quotes(jinja.substr(0, jinja.find('\n')));
  for (const auto& other : kOthers)
    if (jinja.find(other.mark) != std::string_view::npos)
      return fail(Code::kUnsupported, "{}: the chat template {} is {} (it has {}), which is not supported; {}", name,
                  shown, other.family, other.mark, kRemedy);
  const auto [line, title] = first_difference(outline);
  if (title.empty())
    return fail(Code::kUnsupported, "{}: the chat template {} is of no known family; {}", name, shown, kRemedy);
  return fail(Code::kUnsupported, "{}: the chat template {} begins as {} has it and differs at {}; {}", name, shown,
              title, line.empty() ? "its end" : in_quotes(line, 100), kRemedy);
}

}  // namespace syrinx::llama
