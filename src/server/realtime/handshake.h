// Parameters of the request that opens a realtime session.  Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/http_message.h"
#include "server/realtime/events.h"

namespace syrinx::server::realtime {

struct Handshake {
  Dialect dialect = Dialect::kReleased;
  std::string model = {};
  bool is_transcription = false;  // by `intent=transcription`
  std::string protocol = {};      // chosen_protocol()
};

// The dialect is that of `setting`, "released" or "beta"; with "auto" the request's own: a client of the beta names
// says so by `OpenAI-Beta: realtime=v1` or the subprotocol openai-beta.realtime-v1.
Handshake read_handshake(const HttpRequest& request, std::string_view setting);
// Whether it asks for a WebSocket at all.
bool is_upgrade(const HttpRequest& request);
// Fault of a request for a WebSocket (RFC 6455, section 4.1): 426 where another version, or none, is asked for.
std::optional<HttpError> handshake_fault(const HttpRequest& request);
// The answer to that fault: with the headers that say how to ask.
HttpReply refused_handshake(const HttpError& fault);
// The subprotocol to choose among those offered: realtime or else openai-beta.realtime-v1, beside which a browser may
// offer its key; empty: none.
std::string chosen_protocol(const HttpRequest& request);
// Browsers can send no Authorization with it: the key of the subprotocol openai-insecure-api-key.KEY, or, as a key may
// have what no subprotocol may, of syrinx-api-key-base64url.KEY; else empty.
std::string offered_key(const HttpRequest& request);
// Whether it is a name of OpenAI's models for realtime sessions, which stand for the server's own.
bool is_realtime_model(std::string_view name);

}  // namespace syrinx::server::realtime
