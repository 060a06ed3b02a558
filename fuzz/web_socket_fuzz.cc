// A client of a WebSocket: frames of every kind, in pieces of any size, to a session that echoes its messages.  Of some
// clients a message has begun that needs room.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "client.h"
#include "server/http/message_stream.h"
#include "text/unicode.h"

namespace {

namespace server = syrinx::server;

constexpr size_t kShortBytes = server::MessageStream::kShortBytes, kRoomBytes = kShortBytes + 2000;
const server::HttpLimits kLimits{.max_message_bytes = 3000, .leaving_s = 0.02};
const server::HttpLimits kLongLimits{.max_message_bytes = kShortBytes + 3000, .leaving_s = 0.02};
constexpr std::string_view kHandshake =
    "GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

class OneSession : public server::HttpService {
 public:
  Admission admit(const server::HttpRequest& /*head*/) override { return {}; }
  server::HttpReply answer(server::HttpRequest& /*request*/) override { return {.messages = messages}; }
  void answered(const server::HttpRequest& /*request*/, const Answered& /*answered*/) override {}
  void refused() override { __builtin_trap(); }
  void handshake_failed() override { __builtin_trap(); }

  std::shared_ptr<server::MessageStream> messages;
};

// The first fragment of a message, of as many bytes as need no room.
std::string long_beginning() {
  std::string frame("\x01\xff", 2);
  for (int shift = 56; shift >= 0; shift -= 8) frame += static_cast<char>(kShortBytes >> shift & 0xff);
  return frame + std::string(4, '\0') + std::string(kShortBytes, 'x');
}

void say_back(server::MessageStream& messages, size_t max_bytes) {
  server::MessageStream::Message message;
  while (messages.has_room(1) && messages.try_receive(message)) {
    if (message.bytes.size() > max_bytes) __builtin_trap();
    if ((message.bytes.size() > kShortBytes) != static_cast<bool>(message.room)) __builtin_trap();
    if (message.is_text && syrinx::text::find_invalid(message.bytes)) __builtin_trap();
    messages.send(std::move(message));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static OneSession service;
  static server::Transport short_transport(kLimits, service), long_transport(kLongLimits, service);
  const bool is_long = size % 8 == 7;
  server::Transport& transport = is_long ? long_transport : short_transport;
  transport.io.restart();
  const auto messages = service.messages = std::make_shared<server::MessageStream>();
  messages->set_room([]() -> server::MessageStream::Room { return [](size_t bytes) { return bytes <= kRoomBytes; }; });
  syrinx::fuzz::Client client(transport);
  client.send(kHandshake, kHandshake.size());
  if (!client.heard().starts_with("HTTP/1.1 101 ")) __builtin_trap();
  const auto session = [&] { say_back(*messages, is_long ? kRoomBytes : kLimits.max_message_bytes); };
  if (is_long) client.send(long_beginning(), kShortBytes, session);
  client.send({reinterpret_cast<const char*>(data) + 1, size - 1}, 1 + size_t{data[0]} * data[0], session);
  if (size % 3 == 0) messages->end({.code = 1000, .reason = "done"});
  client.settle(session);
  if (size % 2 == 0) client.end_sending();
  client.settle(session);
  client.leave();
  if (!messages->is_gone()) __builtin_trap();
  service.messages.reset();
  return 0;
}
