#include "engine/speech/marked_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/in_quotes.h"

namespace syrinx {
namespace {

constexpr std::string_view kPause = "[pause:", kVoice = "[voice:";

enum class Begins { kNo, kYes, kMaybe };

Begins begins(std::string_view text, std::string_view with) {
  const size_t known = std::min(text.size(), with.size());
  if (text.substr(0, known) != with.substr(0, known)) return Begins::kNo;
  return known == with.size() ? Begins::kYes : Begins::kMaybe;
}

// Whether a mark begins here; kMaybe: that what follows decides.
Begins begins_mark(std::string_view text) {
  const Begins pause = begins(text, kPause), voice = begins(text, kVoice);
  return pause == Begins::kNo ? voice : pause;
}

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// "500ms", "1.5s"; seconds.
std::optional<double> parse_pause(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest(unit, static_cast<size_t>(end - unit));
  if (rest != "ms" && rest != "s") return std::nullopt;
  if (rest == "ms") value /= 1000;
  // Said so that what is no number is refused.
  return value >= 0 && value <= MarkedText::kMaxPauseS ? std::optional(value) : std::nullopt;
}

}  // namespace

void MarkedText::pass(size_t bytes, std::string* text) {
  const std::string_view passed = std::string_view(pending_).substr(0, bytes);
  line_ += static_cast<size_t>(std::count(passed.begin(), passed.end(), '\n'));
  if (text != nullptr) text->append(passed);
  offset_ += bytes;
  pending_.erase(0, bytes);
}

// The text before the mark has been passed.
void MarkedText::stand_at(Result<Mark> mark, size_t bytes) {
  if (mark) mark_ = std::move(*mark);
  if (!mark) error_ = std::move(mark).error();
  mark_bytes_ = bytes;
  at_mark_ = true;
}

void MarkedText::take_text(std::string& text) {
  if (at_mark_) return;
  size_t at = 0;
  while (at < pending_.size() && !plain_) {
    at = std::min(pending_.find_first_of("[\\", at), pending_.size());
    if (at == pending_.size()) break;
    const std::string_view rest = std::string_view(pending_).substr(at);
    const bool read_out = rest[0] == '\\';
    const Begins begins = read_out && rest.size() == 1 ? Begins::kMaybe : begins_mark(rest.substr(read_out ? 1 : 0));
    if (begins == Begins::kMaybe && !finished_) break;
    if (begins != Begins::kYes) {
      ++at;
      continue;
    }
    if (read_out) {
      pending_[at] = ' ';
      at += 2;
      continue;
    }
    const size_t end = rest.substr(0, kMaxMarkBytes).find_first_of("]\n");
    if (end == std::string_view::npos && rest.size() < kMaxMarkBytes && !finished_) break;
    if (end == std::string_view::npos || rest[end] != ']') {
      const std::string mark = in_quotes(rest.substr(0, rest.find('\n')), 20);
      pass(at, &text);
      stand_at(fail(Code::kInvalidArgument,
                    "line {} of the text: {} has no ']' on its line within {} bytes; add it, or write \\[ to have it "
                    "read",
                    line_, mark, kMaxMarkBytes),
               0);
      return;
    }
    const std::string mark(rest.substr(0, end + 1));
    pass(at, &text);
    stand_at(parse(mark), mark.size());
    return;
  }
  pass(at, &text);
  if (plain_) pass(pending_.size(), &text);
}

Result<MarkedText::Mark> MarkedText::take_mark() {
  if (error_) return tl::unexpected(*error_);
  pass(std::exchange(mark_bytes_, 0), nullptr);
  at_mark_ = false;
  return std::move(mark_);
}

Result<MarkedText::Mark> MarkedText::parse(std::string_view mark) const {
  const std::string_view content = without_spaces(mark.substr(kPause.size(), mark.size() - kPause.size() - 1));
  if (mark.starts_with(kVoice))
    return Mark{.kind = Mark::Kind::kVoice, .pause_s = 0, .voice = std::string(content), .line = line_};
  if (const std::optional<double> seconds = parse_pause(content))
    return Mark{.kind = Mark::Kind::kPause, .pause_s = *seconds, .voice = {}, .line = line_};
  return fail(Code::kInvalidArgument,
              "line {} of the text: {} is not a pause; write e.g. [pause:500ms] or [pause:1.5s], at most {:.0f} s, or "
              "\\[ to have it read",
              line_, in_quotes(mark), kMaxPauseS);
}

}  // namespace syrinx
