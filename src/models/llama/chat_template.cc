#include "models/llama/chat_template.h"

#include <algorithm>
#include <utility>

#include "models/llama/jinja_outline.h"

namespace syrinx::llama {
namespace {

using text::chat_role_name;
using text::ChatMessage;
using text::ChatRole;

constexpr std::string_view kStart = "<|im_start|>", kEnd = "<|im_end|>";
constexpr std::string_view kHeader = "<|start_header_id|>", kHeaderEnd = "<|end_header_id|>", kEndOfTurn = "<|eot_id|>";
constexpr std::string_view kThink = "<think>", kThinkEnd = "</think>";
constexpr std::string_view kBos = "<|begin_of_text|>";

class Parts {
 public:
  void token(std::string_view name) { parts_.push_back({true, std::string(name)}); }
  void text(std::string_view text) {
    if (text.empty()) return;
    if (parts_.empty() || parts_.back().is_token) parts_.emplace_back();
    parts_.back().text += text;
  }
  std::vector<ChatPart> take() { return std::move(parts_); }

 private:
  std::vector<ChatPart> parts_;
};

// The bytes of the blank that the text begins with, 0 for none: the characters that Python's str.isspace() has.
size_t blank_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  if (const int c = byte(0); (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20)) return 1;
  if (byte(0) == 0xC2) return byte(1) == 0x85 || byte(1) == 0xA0 ? 2 : 0;  // U+0085, U+00A0
  const int last = byte(2);
  const bool is_blank = (byte(0) == 0xE1 && byte(1) == 0x9A && last == 0x80) ||  // U+1680
                        (byte(0) == 0xE2 && byte(1) == 0x80 &&
                         ((last >= 0x80 && last <= 0x8A) || last == 0xA8 || last == 0xA9 || last == 0xAF)) ||
                        (byte(0) == 0xE2 && byte(1) == 0x81 && last == 0x9F) ||  // U+205F
                        (byte(0) == 0xE3 && byte(1) == 0x80 && last == 0x80);    // U+3000
  return is_blank ? 3 : 0;
}

// Python's str.strip().
std::string_view trimmed(std::string_view text) {
  while (const size_t bytes = blank_bytes(text)) text.remove_prefix(bytes);
  for (size_t bytes = 1; bytes <= std::min<size_t>(3, text.size());) {
    const bool is_blank = blank_bytes(text.substr(text.size() - bytes)) == bytes;
    if (is_blank) text.remove_suffix(bytes);
    bytes = is_blank ? 1 : bytes + 1;
  }
  return text;
}

std::string_view without_leading_lines(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}
std::string_view without_trailing_lines(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

void write_chatml(Parts& parts, std::string_view role, std::string_view content) {
  parts.token(kStart);
  parts.text(role);
  parts.text("\n");
  parts.text(content);
  parts.token(kEnd);
  parts.text("\n");
}

void open_chatml(Parts& parts) {
  parts.token(kStart);
  parts.text("assistant\n");
}

void render_chatml(const ChatForm& form, std::span<const ChatMessage> messages, Parts& parts) {
  if (form.has_default_system && !messages.empty() && messages[0].role != ChatRole::kSystem)
    write_chatml(parts, "system", form.default_system);
  for (const ChatMessage& message : messages) write_chatml(parts, chat_role_name(message.role), message.content);
}

void write_header(Parts& parts, std::string_view role) {
  parts.token(kHeader);
  parts.text(role);
  parts.token(kHeaderEnd);
  parts.text("\n\n");
}

void render_llama3(const ChatForm& form, std::span<const ChatMessage> messages, std::string_view today, Parts& parts) {
  if (!messages.empty()) parts.token(kBos);
  if (form.has_dates) {
    write_header(parts, "system");
    parts.text("Cutting Knowledge Date: December 2023\nToday Date: ");
    parts.text(form.uses_today ? today : form.fixed_date);
    parts.text("\n\n");
    if (messages[0].role == ChatRole::kSystem) {
      parts.text(trimmed(messages[0].content));
      messages = messages.subspan(1);
    }
    parts.token(kEndOfTurn);
  }
  for (const ChatMessage& message : messages) {
    write_header(parts, chat_role_name(message.role));
    parts.text(trimmed(message.content));
    parts.token(kEndOfTurn);
  }
}

// Thoughts and answer of a message of the assistant.
struct Thought {
  std::string_view reasoning, answer;
};
Thought split_thought(std::string_view content) {
  const size_t first = content.find(kThinkEnd);
  if (first == std::string_view::npos) return {"", content};
  std::string_view reasoning = without_trailing_lines(content.substr(0, first));
  if (const size_t begin = reasoning.rfind(kThink); begin != std::string_view::npos)
    reasoning.remove_prefix(begin + kThink.size());
  return {without_leading_lines(reasoning),
          without_leading_lines(content.substr(content.rfind(kThinkEnd) + kThinkEnd.size()))};
}

// The last question of the user: thoughts before it are dropped.
size_t last_question(std::span<const ChatMessage> messages) {
  for (size_t i = messages.size(); i-- > 0;) {
    const std::string& content = messages[i].content;
    const bool is_answer = content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
    if (messages[i].role == ChatRole::kUser && !is_answer) return i;
  }
  return messages.size() - 1;
}

void render_qwen3(const ChatForm& form, std::span<const ChatMessage> messages, Parts& parts) {
  const size_t question = last_question(messages);
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role != ChatRole::kAssistant) {
      write_chatml(parts, chat_role_name(message.role), message.content);
      continue;
    }
    const auto [reasoning, answer] = split_thought(message.content);
    const bool has_thought = !(form.skips_blank_thoughts ? trimmed(reasoning) : reasoning).empty();
    if (i <= question || !(i + 1 == messages.size() || has_thought)) {
      write_chatml(parts, "assistant", answer);
      continue;
    }
    open_chatml(parts);
    parts.token(kThink);
    parts.text("\n");
    parts.text(without_leading_lines(without_trailing_lines(reasoning)));
    parts.text("\n");
    parts.token(kThinkEnd);
    parts.text("\n\n");
    parts.text(without_leading_lines(answer));
    parts.token(kEnd);
    parts.text("\n");
  }
}

void open_answer(const ChatForm& form, Parts& parts) {
  if (form.family == TemplateKind::kLlama3) return write_header(parts, "assistant");
  open_chatml(parts);
  if (!form.opens_thought) return;
  parts.token(kThink);
  parts.text("\n\n");
  parts.token(kThinkEnd);
  parts.text("\n\n");
}

Status check_size(std::span<const ChatMessage> messages) {
  if (messages.size() > ChatTemplate::kMaxMessages)
    return fail(Code::kLimitExceeded, "the conversation has {} messages, and the limit is {}; leave out the oldest",
                messages.size(), ChatTemplate::kMaxMessages);
  size_t bytes = 0;
  for (const ChatMessage& message : messages) bytes += message.content.size();
  if (bytes > ChatTemplate::kMaxContentBytes)
    return fail(Code::kLimitExceeded, "the conversation has {} bytes, and the limit is {}; shorten its messages", bytes,
                ChatTemplate::kMaxContentBytes);
  return {};
}

}  // namespace

Result<ChatTemplate> ChatTemplate::recognise(std::string_view jinja, const std::string& name) {
  if (jinja.size() > kMaxTemplateBytes)
    return fail(Code::kLimitExceeded, "{}: the chat template has {} bytes, and the limit is {}; take another model",
                name, jinja.size(), kMaxTemplateBytes);
  SYRINX_TRY(const std::string outline, outline_jinja(jinja, name));
  SYRINX_TRY(ChatForm form, find_chat_form(outline, jinja, name));
  return ChatTemplate(std::move(form));
}

Result<std::vector<ChatPart>> ChatTemplate::render(std::span<const ChatMessage> messages, bool add_generation_prompt,
                                                   std::string_view today) const {
  SYRINX_TRY_VOID(check_size(messages));
  if (form_.needs_message && messages.empty())
    return fail(Code::kInvalidArgument, "the conversation has no message; give at least one");
  if (form_.uses_today && today.empty())
    return fail(Code::kInvalidArgument, "the chat template needs the date of today; give it as 26 Jul 2024");
  Parts parts;
  switch (form_.family) {
    case TemplateKind::kChatMl: render_chatml(form_, messages, parts); break;
    case TemplateKind::kLlama3: render_llama3(form_, messages, today, parts); break;
    case TemplateKind::kQwen3: render_qwen3(form_, messages, parts); break;
  }
  if (add_generation_prompt || form_.always_prompts) open_answer(form_, parts);
  return parts.take();
}

std::string_view ChatTemplate::family() const {
  constexpr std::string_view kNames[] = {"ChatML", "Llama 3", "Qwen3"};
  return kNames[static_cast<size_t>(form_.family)];
}

std::span<const std::string_view> ChatTemplate::tokens() const {
  static constexpr std::string_view kLlama3[] = {kBos, kHeader, kHeaderEnd, kEndOfTurn};
  static constexpr std::string_view kQwen3[] = {kStart, kEnd, kThink, kThinkEnd};
  if (form_.family == TemplateKind::kLlama3) return kLlama3;
  return std::span(kQwen3).first(form_.family == TemplateKind::kQwen3 ? 4 : 2);
}

std::span<const std::string_view> ChatTemplate::end_tokens() const {
  static constexpr std::string_view kLlama3[] = {kEndOfTurn, "<|eom_id|>", "<|end_of_text|>"};
  static constexpr std::string_view kChatMl[] = {kEnd, "<|endoftext|>"};
  if (form_.family == TemplateKind::kLlama3) return kLlama3;
  return kChatMl;
}

std::optional<TemplateSampling> ChatTemplate::sampling() const {
  switch (form_.maker) {
    case ChatMaker::kSmolLm2:  // without a penalty every second answer ends in a loop
      return TemplateSampling{0.2f, 0.9f, 0, 1.1f, "card of SmolLM2-135M-Instruct; the penalty is ours"};
    case ChatMaker::kQwen25:  // its 0.5B and 1.5B: a penalty of 1.1
      return TemplateSampling{0.7f, 0.8f, 20, 1.05f, "generation_config.json of Qwen2.5-7B-Instruct"};
    case ChatMaker::kQwen3: return TemplateSampling{0.7f, 0.8f, 20, 1, "card of Qwen3-0.6B, without thinking"};
    case ChatMaker::kLlama3:
      return TemplateSampling{0.6f, 0.9f, 0, 1, "generation_config.json of Llama-3.1-8B-Instruct"};
    case ChatMaker::kUnknown: break;
  }
  return std::nullopt;
}

std::string chat_date(int year, int month, int day) {
  constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{:02} {} {}", day, kMonths[static_cast<size_t>(std::clamp(month, 1, 12) - 1)], year);
}

}  // namespace syrinx::llama
