#include "text/speech/markdown.h"

#include <algorithm>

namespace syrinx::text {
namespace {

constexpr size_t kNever = std::string_view::npos;
constexpr size_t kFenceRun = 3, kMaxHeadingRun = 6;
constexpr int kMaxDepth = 4;
constexpr std::string_view kMarks = "\n`\\*_~![<#";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_gap(char c) { return is_blank(c) || c == '\n'; }
bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// Any letter that is not ASCII may be one of a word.
bool is_of_word(char c) { return is_alphanumeric(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
bool is_punctuation(char c) { return c > ' ' && c < 0x7f && !is_alphanumeric(c); }

size_t run_of(std::string_view text) { return std::min(text.find_first_not_of(text[0]), text.size()); }

// Where the bracket at `at` closes; text.size(): not yet, kNever: not in this line.
size_t closing(std::string_view text, size_t at, char close) {
  const char open = text[at];
  for (size_t depth = 0; at < text.size(); ++at) {
    if (text[at] == '\n') return kNever;
    if (text[at] == '\\') {
      ++at;
      continue;
    }
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at;
  }
  return text.size();
}

}  // namespace

void MarkdownReader::push(std::string_view text, std::string& out) {
  held_ += text;
  read(/*is_end=*/false, out);
}

void MarkdownReader::finish(std::string& out) { read(/*is_end=*/true, out); }

void MarkdownReader::read(bool is_end, std::string& out) {
  size_t at = 0;
  while (at < held_.size()) {
    const std::string_view rest = std::string_view(held_).substr(at);
    const bool is_whole = rest.size() <= kMaxHeldBytes;
    const Ahead ahead{rest.substr(0, kMaxHeldBytes), is_end || rest.size() >= kMaxHeldBytes, is_end && is_whole};
    const Used used = is_line_start_ ? read_line_start(ahead) : read_within_line(ahead, out);
    if (!used) break;
    at += *used;
  }
  held_.erase(0, at);
}

// The rest of the line is its text.
MarkdownReader::Used MarkdownReader::begin_line(size_t used) {
  is_line_start_ = is_item_ = false;
  return used;
}

MarkdownReader::Used MarkdownReader::read_line_start(const Ahead& ahead) {
  const std::string_view text = ahead.text;
  if (is_blank(text[0])) return 1;
  if (fence_ != 0) return read_fence_end(ahead);
  switch (text[0]) {
    case '>': return 1;
    case '`':
    case '~': return read_fence(ahead);
    case '-':
    case '*':
    case '+':
    case '_':
    case '=': return read_rule_or_item(ahead);
    case '#': {
      const size_t run = run_of(text);
      if (run == text.size() && !ahead.is_settled) return std::nullopt;
      is_heading_ = run <= kMaxHeadingRun && (run == text.size() ? ahead.is_end : is_gap(text[run]));
      return begin_line(is_heading_ ? run : 0);
    }
    case '[': {
      if (!is_item_) break;
      if (text.size() < 4 && !ahead.is_settled) return std::nullopt;
      const bool is_box = text.size() >= 4 && (text[1] == ' ' || text[1] == 'x' || text[1] == 'X') && text[2] == ']' &&
                          is_blank(text[3]);
      return begin_line(is_box ? 4 : 0);
    }
    default: break;
  }
  return begin_line(0);
}

MarkdownReader::Used MarkdownReader::read_fence_end(const Ahead& ahead) {
  if (ahead.text[0] != fence_) return begin_line(0);
  const size_t run = run_of(ahead.text);
  if (run == ahead.text.size() && !ahead.is_settled) return std::nullopt;
  if (run < fence_run_) return begin_line(0);
  fence_ = 0;
  is_dropped_ = true;
  return begin_line(run);
}

// Backticks that follow in the line make it code within a line.
MarkdownReader::Used MarkdownReader::read_fence(const Ahead& ahead) {
  const std::string_view text = ahead.text;
  const size_t run = run_of(text);
  if (run == text.size() && !ahead.is_settled) return std::nullopt;
  if (run < kFenceRun) return begin_line(0);
  if (text[0] == '`') {
    const size_t stop = text.find_first_of("`\n", run);
    if (stop == kNever && !ahead.is_settled) return std::nullopt;
    if (stop != kNever && text[stop] == '`') return begin_line(0);
  }
  fence_ = text[0];
  fence_run_ = run;
  is_dropped_ = true;
  return begin_line(run);
}

MarkdownReader::Used MarkdownReader::read_rule_or_item(const Ahead& ahead) {
  const std::string_view text = ahead.text;
  const char mark = text[0];
  const size_t stop = std::min(text.find_first_not_of(std::string{mark, ' ', '\t', '\r'}), text.size());
  if (stop == text.size() && !ahead.is_settled) return std::nullopt;
  const auto marks = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(stop), mark);
  const bool is_underlined = mark == '-' || mark == '=';  // what stands above is a heading
  if ((stop == text.size() ? ahead.is_end : text[stop] == '\n') && mark != '+' && marks >= (is_underlined ? 2 : 3)) {
    is_dropped_ = true;
    return begin_line(0);
  }
  if (mark == '_' || mark == '=') return begin_line(0);
  if (text.size() > 1 && is_blank(text[1])) {
    is_item_ = true;
    return 2;
  }
  const bool is_empty = text.size() > 1 ? text[1] == '\n' : ahead.is_end;
  return begin_line(is_empty ? 1 : 0);
}

MarkdownReader::Used MarkdownReader::read_within_line(const Ahead& ahead, std::string& out) {
  const std::string_view text = ahead.text;
  if (is_dropped_) {
    const size_t stop = text.find('\n');
    if (stop == kNever) return text.size();
    is_dropped_ = false;
    is_line_start_ = true;
    return stop + 1;
  }
  if (text[0] == '\n') return end_line(out);
  if (fence_ != 0) return plain(text, text.find('\n'), out);
  if (code_run_ > 0 && text[0] != '`') return plain(text, text.find_first_of("\n`"), out);
  if (previous_ == '\n' && is_blank(text[0])) return 1;
  switch (text[0]) {
    case '`': return read_code_mark(ahead, out);
    case '\\': return read_escape(ahead, out);
    case '*':
    case '_':
    case '~': return read_emphasis(ahead, out);
    case '[': return read_link(ahead, 0, out);
    case '<': return read_address(ahead, out);
    case '!':
      if (text.size() == 1 && !ahead.is_settled) return std::nullopt;
      if (text.size() > 1 && text[1] == '[') return read_link(ahead, 1, out);
      break;
    case '#':
      if (is_heading_) return read_heading_end(ahead, out);
      break;
    default: break;
  }
  return plain(text, text.find_first_of(kMarks, 1), out);
}

size_t MarkdownReader::plain(std::string_view text, size_t bytes, std::string& out) {
  text = text.substr(0, bytes);
  out += text;
  previous_ = text.back();
  return text.size();
}

// Emphasis ends with its paragraph, code with its line.
size_t MarkdownReader::end_line(std::string& out) {
  out += '\n';
  if (previous_ == '\n') {
    stars_ = underscores_ = 0;
    is_struck_ = false;
  }
  previous_ = '\n';
  is_line_start_ = true;
  is_heading_ = false;
  code_run_ = 0;
  return 1;
}

MarkdownReader::Used MarkdownReader::read_code_mark(const Ahead& ahead, std::string& out) {
  const size_t run = run_of(ahead.text);
  if (run == ahead.text.size() && !ahead.is_settled) return std::nullopt;
  if (code_run_ > 0 && run != code_run_) return plain(ahead.text, run, out);
  code_run_ = code_run_ > 0 ? 0 : run;
  previous_ = '`';
  return run;
}

MarkdownReader::Used MarkdownReader::read_escape(const Ahead& ahead, std::string& out) {
  const std::string_view text = ahead.text;
  if (text.size() == 1) return ahead.is_settled ? Used(plain(text, 1, out)) : std::nullopt;
  if (text[1] == '\n') return 1;
  if (!is_punctuation(text[1])) return plain(text, 1, out);
  return 1 + plain(text.substr(1), 1, out);
}

// Whether a run of it is a mark, before `next`; what is open is kept up.  It opens in front of a word and closes behind
// one; between two letters it does neither: 5*3, snake_case.
bool MarkdownReader::is_emphasis(char mark, size_t run, char next) {
  const bool is_behind = !is_gap(previous_), is_before = !is_gap(next);
  if (mark == '~') {
    if (run != 2 || !(is_struck_ ? is_behind : is_before)) return false;
    is_struck_ = !is_struck_;
    return true;
  }
  const bool is_star = mark == '*';
  size_t& open = is_star ? stars_ : underscores_;
  const bool is_within = is_star ? run == 1 && is_alphanumeric(previous_) && is_alphanumeric(next)
                                 : is_of_word(previous_) && is_of_word(next);
  if (is_within) return false;
  if (open > 0 && is_behind && (is_star || !is_of_word(next))) {
    open -= std::min(open, run);
    return true;
  }
  if (!is_before || (is_star ? is_alphanumeric(previous_) : is_of_word(previous_) && previous_ != '_')) return false;
  open += run;
  return true;
}

MarkdownReader::Used MarkdownReader::read_emphasis(const Ahead& ahead, std::string& out) {
  const size_t run = run_of(ahead.text);
  if (run == ahead.text.size() && !ahead.is_settled) return std::nullopt;
  const char next = run < ahead.text.size() ? ahead.text[run] : '\n';
  if (!is_emphasis(ahead.text[0], run, next)) return plain(ahead.text, run, out);
  previous_ = ahead.text[0];
  return run;
}

// [label](target), [label][name], and with a ! in front; [^1] is a note's number, which nobody says.
MarkdownReader::Used MarkdownReader::read_link(const Ahead& ahead, size_t begin, std::string& out) {
  const std::string_view text = ahead.text;
  const size_t most = begin + kMaxOpenBytes, close = closing(text.substr(0, most), begin, ']');
  if (close == kNever || close == most) return plain(text, 1, out);
  if (close + 1 >= text.size() && !ahead.is_settled) return std::nullopt;
  const char next = close + 1 < text.size() ? text[close + 1] : '\n';
  if (next != '(' && next != '[') {
    const bool is_note = close < text.size() && begin == 0 && text.starts_with("[^");
    return is_note ? close + 1 : plain(text, 1, out);
  }
  const size_t end = closing(text, close + 1, next == '(' ? ')' : ']');
  if (end == text.size() && !ahead.is_settled) return std::nullopt;
  if (end == kNever || (end == text.size() && !ahead.is_end)) return plain(text, 1, out);
  read_label(text.substr(begin + 1, close - begin - 1), out);
  return std::min(end + 1, text.size());
}

void MarkdownReader::read_label(std::string_view label, std::string& out) {
  if (depth_ == kMaxDepth) {
    out += label;
    return;
  }
  MarkdownReader inner;
  inner.is_line_start_ = false;
  inner.previous_ = previous_;
  inner.depth_ = depth_ + 1;
  inner.push(label, out);
  inner.finish(out);
  previous_ = inner.previous_;
}

MarkdownReader::Used MarkdownReader::read_address(const Ahead& ahead, std::string& out) {
  const std::string_view text = ahead.text.substr(0, kMaxOpenBytes);
  const size_t stop = text.find_first_of("<> \t\r\n", 1);
  if (stop == kNever && !ahead.is_settled && text.size() < kMaxOpenBytes) return std::nullopt;
  if (stop == kNever || text[stop] != '>') return plain(text, 1, out);
  const std::string_view address = text.substr(1, stop - 1);
  if (address.find("://") == kNever && address.find('@') == kNever) return plain(text, 1, out);
  plain(address, address.size(), out);
  return stop + 1;
}

// As in "## Title ##".
MarkdownReader::Used MarkdownReader::read_heading_end(const Ahead& ahead, std::string& out) {
  const std::string_view text = ahead.text;
  const size_t run = run_of(text), stop = std::min(text.find_first_not_of(" \t\r", run), text.size());
  if (stop == text.size() && !ahead.is_settled) return std::nullopt;
  if (is_blank(previous_) && (stop == text.size() ? ahead.is_end : text[stop] == '\n')) return run;
  return plain(text, run, out);
}

}  // namespace syrinx::text
