#include "models/g2p/flat_json.h"

#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

constexpr size_t kMaxString = 4096;  // a word or a pronunciation is at most some dozen bytes

class Reader {
 public:
  Reader(std::string_view json, std::string_view name) : json_(json), name_(name) {}

  Status object(std::string_view key, const FlatJsonVisitor& visit, bool nested) {
    SYRINX_TRY_VOID(expect('{'));
    skip_space();
    if (accept('}')) return {};
    do {
      std::string member;
      SYRINX_TRY_VOID(string(member));
      SYRINX_TRY_VOID(expect(':'));
      skip_space();
      if (peek() == '{') {
        if (nested) return wrong("an object inside an object's value");
        SYRINX_TRY_VOID(object(member, visit, true));
        continue;
      }
      std::string value;
      const bool is_string = peek() == '"';
      if (is_string) {
        SYRINX_TRY_VOID(string(value));
      } else {
        SYRINX_TRY_VOID(literal(value));
      }
      SYRINX_TRY_VOID(nested ? visit(key, member, value, is_string) : visit(member, {}, value, is_string));
    } while (accept_comma());
    return expect('}');
  }

  Status end() {
    skip_space();
    return at_ == json_.size() ? Status{} : wrong("bytes after the end");
  }

 private:
  char peek() const { return at_ < json_.size() ? json_[at_] : '\0'; }
  void skip_space() {
    while (at_ < json_.size() && (json_[at_] == ' ' || json_[at_] == '\n' || json_[at_] == '\t' || json_[at_] == '\r'))
      ++at_;
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool accept_comma() {
    skip_space();
    return accept(',');
  }
  Status expect(char c) {
    skip_space();
    if (accept(c)) return {};
    return wrong("something else than the expected sign");
  }
  Status wrong(std::string_view what) const {
    return fail(Code::kDataLoss, "'{}' is not a pronunciation file: {} at byte {}; fetch it again with `syrinx pull`",
                name_, what, at_);
  }

  Status string(std::string& out) {
    SYRINX_TRY_VOID(expect('"'));
    while (at_ < json_.size()) {
      const char c = json_[at_++];
      if (c == '"') return {};
      if (static_cast<unsigned char>(c) < 0x20) return wrong("a control character in a string");
      if (out.size() > kMaxString) return wrong("a string that is too long");
      if (c != '\\') {
        out += c;
        continue;
      }
      SYRINX_TRY_VOID(escape(out));
    }
    return wrong("a string without an end");
  }

  Status escape(std::string& out) {
    const char c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/': out += c; return {};
      case 'b': out += '\b'; return {};
      case 'f': out += '\f'; return {};
      case 'n': out += '\n'; return {};
      case 'r': out += '\r'; return {};
      case 't': out += '\t'; return {};
      case 'u': break;
      default: return wrong("an unknown escape");
    }
    SYRINX_TRY(char32_t unit, hex4());
    if (unit >= 0xD800 && unit < 0xDC00 && json_.substr(at_, 2) == "\\u") {
      at_ += 2;
      SYRINX_TRY(const char32_t low, hex4());
      if (low < 0xDC00 || low > 0xDFFF) return wrong("half a surrogate pair");
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    } else if (unit >= 0xD800 && unit < 0xE000) {
      return wrong("half a surrogate pair");
    }
    text::append_utf8(out, unit);
    return {};
  }

  Result<char32_t> hex4() {
    char32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = text::ascii_lower(peek());
      if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return tl::unexpected(wrong("a bad \\u escape").error());
      value = value << 4 | static_cast<char32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
  }

  Status literal(std::string& out) {
    while (at_ < json_.size() && out.size() < 64) {
      const char c = json_[at_];
      if (!text::is_ascii_letter(static_cast<unsigned char>(c)) && (c < '+' || c > '9' || c == ',' || c == '/')) break;
      out += c;
      ++at_;
    }
    return out.empty() ? wrong("no value") : Status{};
  }

  std::string_view json_;
  std::string_view name_;
  size_t at_ = 0;
};

}  // namespace

Status read_flat_json(std::string_view json, std::string_view name, const FlatJsonVisitor& visit) {
  Reader reader(json, name);
  SYRINX_TRY_VOID(reader.object({}, visit, false));
  return reader.end();
}

}  // namespace syrinx::g2p
