#include "server/http/http_message.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

int status_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kUnsupported: return 400;
    case Code::kNotFound: return 404;
    case Code::kLimitExceeded: return 413;
    case Code::kUnavailable: return 503;
    case Code::kCancelled: return 499;
    case Code::kDataLoss:  // of the server's own files: what a client sends is checked before
    case Code::kIo:
    case Code::kInternal: break;
  }
  return 500;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char letter = text::ascii_lower(c);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// "host:8080" of "http://host:8080/path", of which the path stays; nothing in other forms.
std::optional<std::string_view> take_authority(std::string_view& target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!same_name(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    const std::string_view authority = target.substr(0, end);
    target.remove_prefix(end);
    return authority;
  }
  return std::nullopt;
}

// Neither coded nor with a user's name: what other readers of the same text may take for another host.
bool is_plain_authority(std::string_view authority) {
  return !authority.empty() && std::all_of(authority.begin(), authority.end(), [](char c) {
    const char small = text::ascii_lower(c);
    return (small >= 'a' && small <= 'z') || text::is_ascii_digit(c) ||
           std::string_view("-._:[]").find(c) != std::string_view::npos;
  });
}

// Decodes what need not have been coded (RFC 3986, section 6.2.2.2): a coded '/' stays within a name, and nothing is
// decoded twice where the name is decoded, a '%' by itself in front of it included.
std::string normalised_path(std::string_view coded) {
  std::string path;
  for (size_t at = 0; at < coded.size(); ++at) {
    const auto plain = coded[at] == '%' ? percent_decoded(coded.substr(at, 3), false) : std::nullopt;
    const char c = plain && plain->size() == 1 ? plain->front() : '%';
    const char small = text::ascii_lower(c);
    const bool is_unreserved =
        (small >= 'a' && small <= 'z') || text::is_ascii_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
    path += is_unreserved ? c : coded[at];
    if (is_unreserved) at += 2;
    if (coded[at] == '%' && !plain) path += "25";
  }
  return path.empty() ? "/" : path;
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

bool HttpRequest::take_target(std::string_view target) {
  const auto authority = take_authority(target);
  if (authority) headers.insert(headers.begin(), HttpHeader{"Host", std::string(*authority)});
  const size_t question = std::min(target.find('?'), target.size());
  path = normalised_path(target.substr(0, question));
  query = std::string(target.substr(std::min(question + 1, target.size())));
  return !authority || is_plain_authority(*authority);
}

// Assignment of a short string would keep the memory of the long one.
void HttpRequest::free_body() {
  std::string().swap(body);
  hold.reset();
}

void HttpRequest::clear() { (void)std::exchange(*this, HttpRequest{}); }

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return text::ascii_lower(x) == text::ascii_lower(y); });
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const HttpHeader& header : headers)
    if (same_name(header.name, name)) return header.value;
  return {};
}

std::string_view HttpRequest::query_value(std::string_view name) const {
  for (std::string_view rest = query; !rest.empty();) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == name) return pair.substr(std::min(equals + 1, pair.size()));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

std::optional<std::string> percent_decoded(std::string_view coded, bool plus_is_blank) {
  std::string plain;
  for (size_t at = 0; at < coded.size(); ++at) {
    if (coded[at] != '%') {
      plain += plus_is_blank && coded[at] == '+' ? ' ' : coded[at];
      continue;
    }
    if (at + 2 >= coded.size()) return std::nullopt;
    const int high = hex_value(coded[at + 1]), low = hex_value(coded[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    plain += static_cast<char>(16 * high + low);
    at += 2;
  }
  return plain;
}

const char* status_phrase(int status) {
  switch (status) {
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Payload Too Large";
    case 415: return "Unsupported Media Type";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 507: return "Insufficient Storage";
    default: return "Unknown";
  }
}

const char* error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string error_body(const HttpError& error) {
  Json inner, body;
  inner.set("message", error.message);
  inner.set("type", error_type(error.status));
  inner.set("param", or_null(error.param));
  inner.set("code", or_null(error.code));
  body.set("error", std::move(inner));
  return body.dump();
}

HttpReply error_reply(const HttpError& error) {
  HttpReply reply{.status = error.status, .body = error_body(error), .error = std::make_shared<const HttpError>(error)};
  if (error.retry_after_s > 0) reply.headers.push_back({"Retry-After", fmt::format("{}", error.retry_after_s)});
  if (error.status == 401) reply.headers.push_back({"WWW-Authenticate", "Bearer"});
  return reply;
}

HttpError http_error(const Error& error, std::string param) {
  const int status = status_of(error.code);
  return {.status = status,
          .message = status == 500 ? "the server failed at this; its log says why" : error.message,
          .param = std::move(param),
          .code = status == 404 ? "not_found" : "",
          .retry_after_s = status == 503 ? 1 : 0};
}

}  // namespace syrinx::server
