// A client of /v2/decode/stream: messages of any kind and length, one after another, up to the end.  A byte gives the
// length of the next message and whether it is text.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "../tests/engine/recognition/fake_recogniser.h"
#include "base/json.h"
#include "server/decode/stream_session.h"
#include "text/unicode.h"

namespace {

namespace server = syrinx::server;
namespace decode = syrinx::server::decode;
using server::MessageStream;

std::shared_ptr<const server::RecognitionModel> model() {
  static const auto made = server::RecognitionModel::of({}, {}, std::make_shared<syrinx::FakeRecogniser>());
  if (!made) __builtin_trap();
  return *made;
}

// A client that reads nothing until there is no room for one answer more, and all there is then: a session whose client
// never reads waits for as long as the transport lets it.
class Reader {
 public:
  explicit Reader(MessageStream& messages) : messages_(messages) {
    messages_.on_news([this] {
      messages_.taken();
      if (!messages_.has_room(1)) read_all();
    });
  }
  ~Reader() { messages_.on_news({}); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // All that it was told: JSON, of a known status each, of which the last alone ends the stream.
  void check_end() {
    read_all();
    const auto end = messages_.ended();
    if (!end || end->reason.size() > 120) __builtin_trap();
    if ((status_ == "COMPLETE") != (end->code == 1000 || end->code == 1001)) __builtin_trap();
    const bool is_refusal = end->code == 1003 || end->code == 1008 || end->code == 1013;
    if (status_ != "COMPLETE" && (status_ != "ERROR" || !is_refusal)) __builtin_trap();
  }

 private:
  void read_all() {
    MessageStream::Message message;
    while (messages_.try_pop(message)) check(message);
  }

  void check(const MessageStream::Message& message) {
    const auto told = syrinx::parse_json(message.bytes, "the message");
    if (!message.is_text || !told || status_ == "COMPLETE") __builtin_trap();
    status_ = *told->find("status")->string();
    const bool is_error = status_ == "ERROR", ends = status_ == "COMPLETE";
    if (status_ != "ACTIVE" && status_ != "PAUSED" && !ends && !is_error) __builtin_trap();
    if (is_error == (told->find("message") == nullptr) && !ends) __builtin_trap();
    if (told->find("transcription")->string() == nullptr) __builtin_trap();
  }

  MessageStream& messages_;
  std::string status_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static server::Metrics metrics;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(input.find('\n'), input.size());
  const auto opaque = decode::parse_opaque(input.substr(0, line));
  if (opaque && *opaque && syrinx::text::find_invalid(**opaque)) __builtin_trap();
  std::string_view rest = input.substr(std::min(line + 1, input.size()));
  const auto session = std::make_shared<decode::StreamSession>(
      decode::StreamOrder{
          .model = model(), .opaque = opaque.value_or(decode::Opaque()), .messages_per_s = 20, .max_backlog_s = 2},
      server::JobReports{.metrics = metrics});
  MessageStream& messages = *session->messages();
  Reader reader(messages);
  for (size_t i = 0; i < MessageStream::kMessages && !rest.empty() && messages.takes_more(); ++i) {
    const auto head = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    const size_t bytes = std::min(rest.size(), size_t{head} % 128 * (head % 3 == 0 ? 40 : 1));
    messages.deliver({.bytes = std::string(rest.substr(0, bytes)), .is_text = head >= 0xF8});
    rest.remove_prefix(bytes);
  }
  messages.end_when_idle();
  server::SlotWatch watch(syrinx::system_clock());
  session->run(watch);
  session->end();
  reader.check_end();
  return 0;
}
