#include "server/settings/access.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/in_quotes.h"
#include "base/mapped_file.h"
#include "base/sha256.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

constexpr size_t kMaxKeyFileBytes = size_t{1} << 20;
constexpr size_t kMaxKeyBytes = 512;

std::string digest(std::string_view key) { return sha256_hex(std::as_bytes(std::span(key.data(), key.size()))); }

// Looks at every byte, whatever the first ones are.
bool same(std::string_view a, std::string_view b) {
  unsigned different = a.size() != b.size() ? 1 : 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) different |= static_cast<unsigned>(a[i] ^ b[i]);
  return different == 0;
}

std::string_view trimmed(std::string_view line) {
  const size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
  return line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}

// The part of "[::1]:8080" or "localhost:8080" before the port.
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

// Other names in .internal are those of an organisation's own hosts.
bool is_own_name(std::string_view name) {
  for (const std::string_view end : {".localhost", ".docker.internal", ".containers.internal"})
    if (name.ends_with(end)) return true;
  if (name == "localhost" || name.starts_with('[')) return true;
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return text::is_ascii_digit(c) || c == '.'; });
}

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// Hosts of all kinds of origins: a name of DNS, an address, the long numbers of a browser's extension.
bool is_host(std::string_view host) {
  const bool six = host.starts_with('[') && host.ends_with(']');
  if (six) host = host.substr(1, host.size() - 2);
  return !host.empty() && std::all_of(host.begin(), host.end(), [six](char c) {
    return is_letter(c) || text::is_ascii_digit(c) || c == '.' || (six ? c == ':' : c == '-' || c == '_');
  });
}

bool is_scheme(std::string_view scheme) {
  return !scheme.empty() && is_letter(scheme.front()) && std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return is_letter(c) || text::is_ascii_digit(c) || c == '+' || c == '-' || c == '.';
  });
}

bool is_port(std::string_view port) {
  int number = 0;
  const auto [behind, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc() && behind == port.data() + port.size() && number > 0 && number <= 65535;
}

}  // namespace

Status check_key(std::string_view key, const std::string& where) {
  if (key.empty()) return fail(Code::kInvalidArgument, "{} holds an empty key; leave it out", where);
  if (key.size() > kMaxKeyBytes)
    return fail(Code::kLimitExceeded, "{} holds a key of {} bytes; give at most {}", where, key.size(), kMaxKeyBytes);
  if (!std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c <= '~'; }))
    return fail(
        Code::kInvalidArgument,
        "{} holds a key with a blank, a control character or one beyond ASCII, which no header can bear; choose "
        "another one",
        where);
  return {};
}

Status check_origin(std::string_view origin) {
  if (origin == "*" || origin == "null" || origin == "file://") return {};
  const size_t colon = origin.find("://");
  const std::string_view scheme = origin.substr(0, colon);
  const std::string_view place = colon == std::string_view::npos ? "" : origin.substr(colon + 3);
  const std::string_view host = without_port(place), port = place.substr(host.size());
  if (!is_scheme(scheme) || !is_host(host) || (!port.empty() && (!port.starts_with(':') || !is_port(port.substr(1)))))
    return fail(Code::kInvalidArgument,
                "'cors_origins' holds {}, which no browser sends; give scheme://host or scheme://host:port in small "
                "letters, and nothing behind it, say https://example.org, or null, file:// or `*`",
                in_quotes(origin));
  if ((scheme == "http" && port == ":80") || (scheme == "https" && port == ":443"))
    return fail(Code::kInvalidArgument, "'cors_origins' holds {}, and browsers leave that port out; leave it out, too",
                in_quotes(origin));
  return {};
}

Result<ApiKeys> ApiKeys::load(const Settings& settings) {
  ApiKeys keys;
  for (const std::string& key : settings.api_keys) keys.digests_.push_back(digest(key));
  if (settings.api_key_file.empty()) return keys;
  const auto file = MappedFile::open(settings.api_key_file);
  if (!file) return fail(file.error().code, "'api_key_file': {}", file.error().message);
  const std::span<const std::byte> bytes = file->bytes();
  const std::string where = fmt::format("'api_key_file': '{}'", settings.api_key_file);
  if (bytes.size() > kMaxKeyFileBytes)
    return fail(Code::kLimitExceeded, "{} has {} bytes; a file of API keys has at most {}", where, bytes.size(),
                kMaxKeyFileBytes);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t before = keys.digests_.size();
  for (size_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view key = trimmed(rest.substr(0, end));
    if (!key.empty() && !key.starts_with('#')) {
      SYRINX_TRY_VOID(check_key(key, fmt::format("{}, line {}", where, line)));
      keys.digests_.push_back(digest(key));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (keys.digests_.size() == before)
    return fail(Code::kInvalidArgument, "{} holds no API key; write one a line", where);
  return keys;
}

bool ApiKeys::allow(std::string_view authorization) const {
  constexpr std::string_view kScheme = "bearer ";
  const bool bearer =
      authorization.size() > kScheme.size() && text::ascii_lower(authorization.substr(0, kScheme.size())) == kScheme;
  const std::string given = digest(bearer ? authorization.substr(kScheme.size()) : "");
  bool allowed = false;
  for (const std::string& known : digests_) allowed = same(given, known) || allowed;
  return allowed && bearer;
}

bool is_listed(std::string_view origin, const Texts& origins) {
  return std::any_of(origins.begin(), origins.end(),
                     [&](const std::string& listed) { return listed == "*" || listed == origin; });
}

bool may_ask(std::string_view origin, std::string_view host, const Texts& origins, bool keys_asked_for) {
  if (origin.empty() || is_listed(origin, origins)) return true;
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme) && origin.substr(scheme.size()) == host)
      return keys_asked_for || is_own_host(host, {});
  return false;
}

bool is_own_host(std::string_view host, const Texts& origins) {
  const std::string small = text::ascii_lower(without_port(host));
  std::string_view name = small;
  if (name.ends_with('.')) name.remove_suffix(1);  // of a name that is complete
  if (name.find('.') == std::string_view::npos || is_own_name(name)) return true;
  return std::any_of(origins.begin(), origins.end(), [&](const std::string& origin) {
    return origin == "*" || (origin.find("://") != std::string::npos &&
                             without_port(std::string_view(origin).substr(origin.find("://") + 3)) == name);
  });
}

}  // namespace syrinx::server
