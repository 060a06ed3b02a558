#include "cli/chat/chat_history.h"

#include <algorithm>
#include <utility>

namespace syrinx::cli {

using text::ChatRole;

bool ChatHistory::ends_in_question() const { return !messages_.empty() && messages_.back().role == ChatRole::kUser; }

bool ChatHistory::has_system() const { return !messages_.empty() && messages_.front().role == ChatRole::kSystem; }

void ChatHistory::set_system(std::string text) {
  if (has_system()) messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), {ChatRole::kSystem, std::move(text)});
}

void ChatHistory::ask(std::string text) { messages_.push_back({ChatRole::kUser, std::move(text)}); }

void ChatHistory::answer(std::string text) {
  if (text.empty()) return take_back();
  messages_.push_back({ChatRole::kAssistant, std::move(text)});
}

void ChatHistory::take_back() {
  if (ends_in_question()) messages_.pop_back();
}

void ChatHistory::clear() { messages_.resize(has_system() ? 1 : 0); }

bool ChatHistory::drop_oldest() {
  const auto is_question = [](const text::ChatMessage& message) { return message.role == ChatRole::kUser; };
  const auto first = messages_.begin() + (has_system() ? 1 : 0);
  if (first == messages_.end()) return false;
  const auto next = std::find_if(first + 1, messages_.end(), is_question);
  if (next == messages_.end()) return false;
  messages_.erase(first, next);
  return true;
}

}  // namespace syrinx::cli
