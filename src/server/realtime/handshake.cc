#include "server/realtime/handshake.h"

#include <algorithm>
#include <array>

#include "server/http/base64.h"
#include "text/unicode.h"

namespace syrinx::server::realtime {
namespace {

constexpr std::string_view kKeyProtocol = "openai-insecure-api-key.";
constexpr std::string_view kEncodedKeyProtocol = "syrinx-api-key-base64url.";  // no subprotocol may have a '/' or '='
constexpr size_t kKeyCharacters = 24;                                          // base64 of 16 bytes
constexpr std::string_view kBetaProtocol = "openai-beta.realtime-v1";
constexpr std::array<std::string_view, 4> kModelNames = {"gpt-realtime", "gpt-4o-realtime", "gpt-4o-mini-realtime",
                                                         "gpt-audio"};

// The first member of a list between commas that `is_it` says yes to; empty: none.
template <class Predicate>
std::string_view find_member(std::string_view list, Predicate is_it) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    std::string_view member = list.substr(0, end);
    member.remove_prefix(std::min(member.find_first_not_of(' '), member.size()));
    member = member.substr(0, member.find_last_not_of(' ') + 1);
    if (!member.empty() && is_it(member)) return member;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return {};
}

// Text in an invalid encoding stays as it came.
std::string plain_value(const HttpRequest& request, std::string_view name) {
  const std::string_view coded = request.query_value(name);
  return percent_decoded(coded, /*plus_is_blank=*/true).value_or(std::string(coded));
}

bool offers(const HttpRequest& request, std::string_view protocol) {
  return !find_member(request.header("Sec-WebSocket-Protocol"), [&](std::string_view each) {
            return each == protocol;
          }).empty();
}

}  // namespace

bool is_upgrade(const HttpRequest& request) { return text::ascii_lower(request.header("Upgrade")) == "websocket"; }

std::optional<HttpError> handshake_fault(const HttpRequest& request) {
  if (!is_upgrade(request))
    return HttpError{.status = 426, .message = "this is a WebSocket; ask with the headers of RFC 6455, section 4.1"};
  if (request.header("Sec-WebSocket-Key").size() != kKeyCharacters)
    return HttpError{.status = 400,
                     .message = "'Sec-WebSocket-Key' must be 16 bytes in base64 (RFC 6455, section 4.1)",
                     .param = "Sec-WebSocket-Key"};
  if (request.header("Sec-WebSocket-Version") != "13")
    return HttpError{
        .status = 426, .message = "'Sec-WebSocket-Version' must be 13 (RFC 6455)", .param = "Sec-WebSocket-Version"};
  return std::nullopt;
}

HttpReply refused_handshake(const HttpError& fault) {
  HttpReply reply = error_reply(fault);
  reply.headers.push_back({"Upgrade", "websocket"});
  reply.headers.push_back({"Sec-WebSocket-Version", "13"});
  return reply;
}

// A browser fails a connection whose answer names none of those that it has offered.
std::string chosen_protocol(const HttpRequest& request) {
  for (const std::string_view each : {std::string_view("realtime"), kBetaProtocol})
    if (offers(request, each)) return std::string(each);
  return {};
}

std::string offered_key(const HttpRequest& request) {
  const auto behind = [&](std::string_view prefix) {
    const std::string_view found = find_member(request.header("Sec-WebSocket-Protocol"),
                                               [&](std::string_view each) { return each.starts_with(prefix); });
    return std::string(found.substr(std::min(prefix.size(), found.size())));
  };
  if (std::string plain = behind(kKeyProtocol); !plain.empty()) return plain;
  std::string encoded = behind(kEncodedKeyProtocol);
  std::replace(encoded.begin(), encoded.end(), '-', '+');
  std::replace(encoded.begin(), encoded.end(), '_', '/');
  encoded.append((4 - encoded.size() % 4) % 4, '=');
  const auto bytes = decode_base64(encoded);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "";
}

bool is_realtime_model(std::string_view name) {
  return std::any_of(kModelNames.begin(), kModelNames.end(),
                     [&](std::string_view known) { return name.starts_with(known); });
}

Handshake read_handshake(const HttpRequest& request, std::string_view setting) {
  Handshake handshake{.model = plain_value(request, "model"),
                      .is_transcription = plain_value(request, "intent") == "transcription"};
  const bool is_beta = setting == "auto"
                           ? request.header("OpenAI-Beta").find("realtime=v1") != std::string_view::npos ||
                                 offers(request, kBetaProtocol)
                           : setting == "beta";
  if (is_beta) handshake.dialect = Dialect::kBeta;
  handshake.protocol = chosen_protocol(request);
  return handshake;
}

}  // namespace syrinx::server::realtime
