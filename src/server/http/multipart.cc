#include "server/http/multipart.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/in_quotes.h"

namespace syrinx::server {
namespace {

constexpr size_t kMaxBoundaryBytes = 70;  // RFC 2046, section 5.1.1
constexpr std::string_view kBlanks = " \t";

template <class... Args>
tl::unexpected<HttpError> malformed(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected(HttpError{
      .status = 400,
      .message = fmt::format(format, std::forward<Args>(args)...) + "; send a form of type multipart/form-data",
      .code = "invalid_multipart"});
}

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const size_t last = text.find_last_not_of(kBlanks);
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// Whether a backslash between quotation marks stands for what is behind it.  Browsers write a path's backslashes as
// they are, so that only marks and backslashes are escaped, and a mark that ends the parameter is not.
bool is_escape(std::string_view text, size_t at) {
  if (text[at] != '\\' || at + 1 >= text.size()) return false;
  if (text[at + 1] != '"') return text[at + 1] == '\\';
  const size_t behind = text.find_first_not_of(kBlanks, at + 2);
  return behind != std::string_view::npos && text[behind] != ';';
}

// Takes the text up to the next `;` outside quotation marks, or the end, off `rest`.
std::string_view take_parameter(std::string_view& rest) {
  bool quoted = false;
  size_t end = 0;
  for (; end < rest.size() && (quoted || rest[end] != ';'); ++end) {
    if (rest[end] == '"') quoted = !quoted;
    if (quoted && is_escape(rest, end)) ++end;
  }
  end = std::min(end, rest.size());
  const std::string_view parameter = without_blanks(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return parameter;
}

std::string unquoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return std::string(value);
  std::string text;
  for (size_t i = 1; i + 1 < value.size(); ++i) {
    if (is_escape(value, i)) ++i;
    text += value[i];
  }
  return text;
}

// The first thing that a header says, and the value of one of its parameters.
std::string_view first_of(std::string_view header) { return take_parameter(header); }

std::optional<std::string> parameter_of(std::string_view header, std::string_view name) {
  take_parameter(header);
  while (!header.empty()) {
    const std::string_view parameter = take_parameter(header);
    const size_t equals = parameter.find('=');
    if (equals == std::string_view::npos || !same_name(without_blanks(parameter.substr(0, equals)), name)) continue;
    return unquoted(without_blanks(parameter.substr(equals + 1)));
  }
  return std::nullopt;
}

// The lines in front of a part's content; only Content-Disposition means anything.
tl::expected<FormPart, HttpError> parse_header(std::string_view lines) {
  FormPart part;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = std::min(lines.find("\r\n", begin), lines.size());
    const std::string_view line = lines.substr(begin, end - begin);
    begin = std::min(end + 2, lines.size());
    const size_t colon = std::min(line.find(':'), line.size());
    if (!same_name(without_blanks(line.substr(0, colon)), "Content-Disposition")) continue;
    const std::string_view value = line.substr(std::min(colon + 1, line.size()));
    if (!same_name(first_of(value), "form-data")) return malformed("a part of the body is not a field of a form");
    part.name = parameter_of(value, "name").value_or("");
    part.file_name = parameter_of(value, "filename").value_or("");
  }
  if (part.name.empty()) return malformed("a part of the body has no name");
  if (part.name.size() > FormLimits::kMaxNameBytes)
    return malformed("a part's name has {} bytes, more than {}", part.name.size(), FormLimits::kMaxNameBytes);
  return part;
}

// Behind a boundary: the end of its line, or the two dashes that end the form.
enum class Behind { kPart, kEnd, kNothing };

Behind take_behind(std::string_view& rest) {
  if (rest.starts_with("--")) return Behind::kEnd;
  const size_t text = std::min(rest.find_first_not_of(kBlanks), rest.size());
  if (!rest.substr(text).starts_with("\r\n")) return Behind::kNothing;
  rest.remove_prefix(text + 2);
  return Behind::kPart;
}

}  // namespace

tl::expected<std::string, HttpError> form_boundary(std::string_view type) {
  if (!same_name(first_of(type), "multipart/form-data"))
    return tl::unexpected(HttpError{
        .status = 415,
        .message = fmt::format("the body's type is {}; send a form of type multipart/form-data", in_quotes(type))});
  const std::string boundary = parameter_of(type, "boundary").value_or("");
  if (boundary.empty() || boundary.size() > kMaxBoundaryBytes)
    return malformed("the body's type names no boundary of 1 to {} bytes", kMaxBoundaryBytes);
  return boundary;
}

FormPartsOrError parse_multipart(std::string_view type, std::string_view body) {
  const auto boundary = form_boundary(type);
  if (!boundary) return tl::unexpected(boundary.error());
  const std::string separator = "\r\n--" + *boundary;
  std::string_view rest = body;
  // The first boundary may stand at the very beginning, else behind a preamble.
  if (rest.starts_with(std::string_view(separator).substr(2))) {
    rest.remove_prefix(separator.size() - 2);
  } else {
    const size_t first = rest.find(separator);
    if (first == std::string_view::npos) return malformed("the body holds no boundary");
    rest.remove_prefix(first + separator.size());
  }
  std::vector<FormPart> parts;
  for (;;) {
    const Behind behind = take_behind(rest);
    if (behind == Behind::kEnd) return parts;
    if (behind == Behind::kNothing) return malformed("a boundary of the body is followed by something else");
    if (parts.size() == FormLimits::kMaxParts) return malformed("the body has more than {} parts", parts.size());
    const std::string_view head = rest.substr(0, FormLimits::kMaxHeaderBytes);
    const size_t blank = head.find("\r\n\r\n");
    if (blank == std::string_view::npos)
      return malformed("a part's header does not end within {} bytes", FormLimits::kMaxHeaderBytes);
    auto part = parse_header(head.substr(0, blank));
    if (!part) return tl::unexpected(std::move(part).error());
    rest.remove_prefix(blank + 4);
    // A part without content ends with the line end that its header ends with.
    const size_t end = rest.find(separator);
    if (end == std::string_view::npos) return malformed("the body is cut off in the field {}", in_quotes(part->name));
    part->content = rest.substr(0, end);
    rest.remove_prefix(end + separator.size());
    parts.push_back(std::move(*part));
  }
}

}  // namespace syrinx::server
