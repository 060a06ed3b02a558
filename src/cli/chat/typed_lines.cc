#include "cli/chat/typed_lines.h"

#include <utility>

#include "engine/chat/chat_engine.h"
#include "text/unicode.h"

namespace syrinx::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// "/name", alone or before a blank; a path such as /etc/hosts is none.
bool is_command(std::string_view word) {
  if (word.size() < 2 || word[0] != '/') return false;
  for (const char c : word.substr(1))
    if (!text::is_ascii_letter(static_cast<unsigned char>(c))) return false;
  return true;
}

}  // namespace

Result<Typed> TypedLines::push(std::string_view line) {
  if (is_in_block_) {
    if (!trimmed(line).ends_with(kQuotes)) {
      add(line);
      return Typed{.kind = Typed::Kind::kMore};
    }
    const std::string_view last = line.substr(0, line.rfind(kQuotes));
    if (!trimmed(last).empty()) add(last);
    return close();
  }
  const std::string_view text = trimmed(line);
  if (text.empty()) return Typed{};
  if (text.starts_with(kQuotes)) {
    is_in_block_ = true;
    const std::string_view rest = text.substr(kQuotes.size());
    if (!rest.empty()) return push(rest);
    return Typed{.kind = Typed::Kind::kMore};
  }
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  if (is_command(word))
    return Typed{Typed::Kind::kCommand, std::string(word), std::string(trimmed(text.substr(word.size())))};
  return Typed{.kind = Typed::Kind::kQuestion, .text = std::string(text)};
}

void TypedLines::abandon_block() {
  is_in_block_ = is_too_long_ = has_line_ = false;
  block_.clear();
}

// A block that is too long is read to its end, so that its lines do not become questions.
void TypedLines::add(std::string_view line) {
  is_too_long_ = is_too_long_ || block_.size() + line.size() >= ChatRequest::kMaxContentBytes;
  if (is_too_long_) return;
  if (has_line_) block_ += '\n';
  has_line_ = true;
  block_ += line;
}

Result<Typed> TypedLines::close() {
  const bool was_too_long = is_too_long_;
  Typed typed{.kind = Typed::Kind::kQuestion, .text = std::exchange(block_, {})};
  abandon_block();
  if (was_too_long)
    return fail(Code::kLimitExceeded, "the text is longer than {} bytes; give a shorter one",
                ChatRequest::kMaxContentBytes);
  if (trimmed(typed.text).find_first_not_of('\n') == std::string_view::npos) return Typed{};
  return typed;
}

}  // namespace syrinx::cli
