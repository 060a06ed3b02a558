#include "models/llama/jinja_pieces.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/in_quotes.h"

namespace syrinx::llama {
namespace {

using Kind = JinjaToken::Kind;

constexpr std::string_view kBlanks = " \t\n\v\f\r";

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_byte(char c) { return is_name_start(c) || is_digit(c); }

// Line ends as \n, and without the last one.
std::string plain_lines(std::string_view source) {
  std::string lines;
  lines.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    lines += source[i] == '\r' ? '\n' : source[i];
  }
  if (lines.ends_with('\n')) lines.pop_back();
  return lines;
}

class Reader {
 public:
  Reader(std::string source, const std::string& name) : source_(std::move(source)), name_(name) {}

  Result<std::vector<JinjaPiece>> read() {
    while (at_ < source_.size()) {
      const size_t tag = find_tag();
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      if (std::string data = data_before(tag, sign); !data.empty()) add(JinjaPiece::Kind::kData).data = std::move(data);
      if (tag == source_.size()) break;
      const char kind = source_[tag + 1];
      at_ = tag + (sign == '-' || sign == '+' ? 3 : 2);
      SYRINX_TRY_VOID(kind == '#' ? read_comment() : read_tag(kind));
    }
    return std::move(pieces_);
  }

 private:
  tl::unexpected<Error> malformed(std::string_view reason) const {
    return fail(Code::kDataLoss, "{}: the chat template is malformed: {}", name_, reason);
  }
  JinjaPiece& add(JinjaPiece::Kind kind) {
    pieces_.emplace_back().kind = kind;
    return pieces_.back();
  }
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }

  // The next {{, {% or {#, or the end.
  size_t find_tag() const {
    for (size_t at = source_.find('{', at_); at != std::string::npos; at = source_.find('{', at + 1)) {
      const char next = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return source_.size();
  }

  // The text from here to the tag, without the blanks that the tag takes away.
  std::string data_before(size_t tag, char sign) const {
    std::string data = source_.substr(at_, tag - at_);
    if (tag == source_.size()) return data;
    if (sign == '-') {
      data.erase(data.find_last_not_of(kBlanks) + 1);
    } else if (sign != '+' && source_[tag + 1] != '{') {
      const size_t line = data.rfind('\n') + 1;  // 0 when there is none
      const bool is_line_start = line > 0 || at_ == 0 || source_[at_ - 1] == '\n';
      if (is_line_start && std::all_of(data.begin() + static_cast<ptrdiff_t>(line), data.end(), is_blank))
        data.erase(line);
    }
    return data;
  }

  // Behind a tag's end: `-` takes all blanks, a statement or comment one line end.
  void skip_behind(char sign, bool takes_line_end) {
    if (sign == '-') {
      while (at_ < source_.size() && is_blank(source_[at_])) ++at_;
    } else if (sign != '+' && takes_line_end && peek() == '\n') {
      ++at_;
    }
  }

  Status read_comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) return malformed("a comment has no end");
    const char sign = end > at_ ? source_[end - 1] : '\0';
    at_ = end + 2;
    skip_behind(sign, true);
    return {};
  }

  Status read_tag(char kind) {
    const bool is_output = kind == '{';
    std::vector<JinjaToken>& tokens = add(is_output ? JinjaPiece::Kind::kOutput : JinjaPiece::Kind::kStatement).tokens;
    std::string brackets;  // those that are open
    for (;;) {
      while (at_ < source_.size() && is_blank(source_[at_])) ++at_;
      if (at_ == source_.size()) return malformed("a tag has no end");
      if (brackets.empty() && skip_end(is_output)) return {};
      SYRINX_TRY(JinjaToken token, read_token());
      if (token.kind == Kind::kOperator && !follow_bracket(token.text[0], brackets))
        return malformed("a bracket does not match");
      tokens.push_back(std::move(token));
    }
  }

  bool skip_end(bool is_output) {
    const char sign = peek() == '-' || (peek() == '+' && !is_output) ? peek() : '\0';
    const size_t end = sign == '\0' ? 0 : 1;
    if (peek(end) != (is_output ? '}' : '%') || peek(end + 1) != '}') return false;
    at_ += end + 2;
    skip_behind(sign, !is_output);
    return true;
  }

  static bool follow_bracket(char c, std::string& open) {
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c != ')' && c != ']' && c != '}') return true;
    const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open.empty() || open.back() != wanted) return false;
    open.pop_back();
    return true;
  }

  Result<JinjaToken> read_token() {
    const char c = peek();
    if (c == '\'' || c == '"') return read_string(c);
    const size_t begin = at_;
    if (is_name_start(c) || is_digit(c)) {
      const bool is_number = is_digit(c);
      while (at_ < source_.size() && (is_number ? is_digit(source_[at_]) : is_name_byte(source_[at_]))) ++at_;
      return JinjaToken{is_number ? Kind::kNumber : Kind::kName, source_.substr(begin, at_ - begin)};
    }
    const char next = peek(1);
    const bool is_pair =
        (next == '=' && (c == '=' || c == '!' || c == '<' || c == '>')) || (next == c && (c == '/' || c == '*'));
    constexpr std::string_view kOperators = "+-*/%~=<>!()[]{}.,:|;";
    if (kOperators.find(c) == std::string_view::npos)
      return malformed(fmt::format("a tag has {}", in_quotes(std::string_view(source_).substr(at_), 8)));
    at_ += is_pair ? 2 : 1;
    return JinjaToken{Kind::kOperator, source_.substr(begin, at_ - begin)};
  }

  Result<JinjaToken> read_string(char quote) {
    JinjaToken token{Kind::kString, ""};
    for (++at_; at_ < source_.size(); ++at_) {
      char c = source_[at_];
      if (c == quote) {
        ++at_;
        return token;
      }
      if (c == '\\') {
        constexpr std::string_view kEscapes = "nrt\\'\"", kMeant = "\n\r\t\\'\"";
        ++at_;
        const size_t found = kEscapes.find(peek());
        if (at_ == source_.size()) break;
        if (found == std::string_view::npos) {
          token.is_exact = false;
          token.text += '\\';
        }
        c = found == std::string_view::npos ? source_[at_] : kMeant[found];
      }
      token.text += c;
    }
    return malformed("a string has no end");
  }

  const std::string source_;
  const std::string& name_;
  size_t at_ = 0;
  std::vector<JinjaPiece> pieces_;
};

bool is_word(const JinjaToken& token) { return token.kind != Kind::kOperator; }

bool is_identifier(std::string_view text) {
  return !text.empty() && is_name_start(text[0]) && std::all_of(text.begin(), text.end(), is_name_byte);
}

// Whether [ behind the token asks for a member, instead of beginning a list.
bool has_members(const JinjaToken& token) {
  constexpr std::string_view kKeywords[] = {"in", "not", "and", "or", "is", "if", "else"};
  if (token.kind == Kind::kOperator) return token.text == ")" || token.text == "]";
  return token.kind == Kind::kName &&
         std::find(std::begin(kKeywords), std::end(kKeywords), token.text) == std::end(kKeywords);
}

std::vector<JinjaToken> with_dots(std::span<const JinjaToken> tokens) {
  std::vector<JinjaToken> out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_member = i + 2 < tokens.size() && tokens[i].is("[") && tokens[i + 1].kind == Kind::kString &&
                           tokens[i + 1].is_exact && is_identifier(tokens[i + 1].text) && tokens[i + 2].is("]") &&
                           !out.empty() && has_members(out.back());
    if (!is_member) {
      out.push_back(tokens[i]);
      continue;
    }
    out.push_back({Kind::kOperator, "."});
    out.push_back({Kind::kName, tokens[i + 1].text});
    i += 2;
  }
  return out;
}

// 'a' + 'b' where both are whole terms of a sum.
void join_strings(std::vector<JinjaToken>& tokens) {
  const auto is_term = [&](size_t i) {
    return tokens[i].kind == Kind::kString && tokens[i].is_exact && (i + 1 == tokens.size() || tokens[i + 1].is("+"));
  };
  std::vector<JinjaToken> out;
  bool is_open = false;  // the last token of `out` is such a term
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_string = is_term(i) && (i == 0 || tokens[i - 1].is("+"));
    if (is_open && i + 1 < tokens.size() && tokens[i].is("+") && is_term(i + 1)) {
      out.back().text += tokens[++i].text;
      continue;
    }
    out.push_back(tokens[i]);
    is_open = is_string;
  }
  tokens = std::move(out);
}

std::string quoted(const JinjaToken& token) {
  std::string out = token.is_exact ? "'" : "?'";
  for (const char c : token.text) {
    constexpr std::string_view kEscaped = "\n\r\t\\'", kLetters = "nrt\\'";
    if (const size_t found = kEscaped.find(c); found != std::string_view::npos) {
      out += '\\';
      out += kLetters[found];
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace

Result<std::vector<JinjaPiece>> read_jinja(std::string_view source, const std::string& name) {
  return Reader(plain_lines(source), name).read();
}

std::string write_jinja(std::span<const JinjaToken> tokens) {
  std::vector<JinjaToken> plain = with_dots(tokens);
  join_strings(plain);
  std::string out;
  for (size_t i = 0; i < plain.size(); ++i) {
    if (i > 0 && is_word(plain[i - 1]) && is_word(plain[i])) out += ' ';
    out += plain[i].kind == Kind::kString ? quoted(plain[i]) : plain[i].text;
  }
  return out;
}

}  // namespace syrinx::llama
