// A client of the transport: requests one behind the other, in pieces of any size.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"
#include "server/http/reply_stream.h"
#include "server/settings/access.h"

namespace {

namespace server = syrinx::server;

const server::HttpLimits kLimits{.max_header_bytes = 1024};
constexpr size_t kMaxBody = 2000, kRoom = 1500;

class AnyService : public server::HttpService {
 public:
  Admission admit(const server::HttpRequest& head) override {
    size_t header_bytes = head.method.size() + head.path.size() + head.query.size();
    for (const auto& header : head.headers) header_bytes += header.name.size() + header.value.size();
    if (header_bytes > kLimits.max_header_bytes || head.method.empty() || head.id.empty()) __builtin_trap();
    Admission admission;
    if (head.method == "POST") admission.max_body_bytes = kMaxBody;
    if (head.path == "/refused") admission.refusal = reply(server::error_reply({.status = 401, .message = "no"}));
    if (head.path == "/room")
      admission.grow = [](size_t bytes) {
        return bytes <= kRoom ? nullptr : reply(server::error_reply({.status = 503, .message = "full"}));
      };
    return admission;
  }
  server::HttpReply answer(server::HttpRequest& request) override {
    if (request.body.size() > (request.path == "/room" ? kRoom : kMaxBody)) __builtin_trap();
    if (request.path != "/stream") return {.body = request.body};
    auto stream = std::make_shared<server::ReplyStream>();
    stream->begin({.type = "audio/wav"}, request.query == "whole");
    if (!stream->write(std::string_view(request.body).substr(0, 1000))) __builtin_trap();
    stream->finish();
    return {.stream = std::move(stream)};
  }
  void answered(const server::HttpRequest& request, const Answered& answered) override {
    if (answered.status < 200 || answered.status > 599) __builtin_trap();
    if (answered.status != 499) are_heads.push_back(request.method == "HEAD");
  }
  void refused() override { __builtin_trap(); }
  void handshake_failed() override { __builtin_trap(); }

  std::vector<bool> are_heads;  // for each answer, whether it is of a head alone

 private:
  static std::unique_ptr<server::HttpReply> reply(server::HttpReply of) {
    return std::make_unique<server::HttpReply>(std::move(of));
  }
};

// Answers whose bodies have a length come whole, but for those to HEAD, which say the length alone; chunked ones are
// taken as one, to the end.
void check_answers(std::string_view heard, const std::vector<bool>& are_heads) {
  size_t found = 0;
  while (!heard.empty()) {
    if (!heard.starts_with("HTTP/1.")) __builtin_trap();
    const bool goes_on = heard.substr(9, 3) == "100";
    found += !goes_on;
    const size_t head = heard.find("\r\n\r\n");
    if (head == std::string_view::npos) __builtin_trap();
    const std::string_view fields = heard.substr(0, head);
    heard.remove_prefix(head + 4);
    if (goes_on || (found <= are_heads.size() && are_heads[found - 1])) continue;
    if (fields.find("Transfer-Encoding: chunked") != std::string_view::npos) return;
    const size_t length = fields.find("Content-Length: ");
    if (length == std::string_view::npos) return;  // to the connection's end
    const size_t bytes = std::stoul(std::string(fields.substr(length + 16, 12)));
    heard.remove_prefix(std::min(bytes, heard.size()));
  }
  if (found > are_heads.size()) __builtin_trap();
}

// A target is taken the same where its path is written out again, and names no host but a plain one.
void check_target(std::string_view target) {
  server::HttpRequest request, again;
  const bool is_plain = request.take_target(target);
  const std::string_view host = request.header("Host");
  if (is_plain && host.find_first_of("@%#\\ /?") != std::string_view::npos) __builtin_trap();
  static_cast<void>(server::is_own_host(host.empty() ? target : host, {"https://good.example"}));
  if (!request.path.starts_with('/')) return;
  if (!again.take_target(request.path) || again.path != request.path) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_target(text.substr(0, text.find_first_of(" \r\n")));
  if (const size_t blank = text.find(' '); blank != std::string_view::npos)
    check_target(text.substr(blank + 1, text.find(' ', blank + 1) - blank - 1));
  static AnyService service;
  static server::Transport transport(kLimits, service);
  transport.io.restart();
  service.are_heads.clear();
  syrinx::fuzz::Client client(transport);
  client.send({reinterpret_cast<const char*>(data) + 1, size - 1}, 1 + size_t{data[0]} * data[0]);
  if (size % 2 == 0) client.end_sending();
  client.settle();
  client.leave();
  check_answers(client.heard(), service.are_heads);
  return 0;
}
