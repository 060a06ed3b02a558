#include "audio/sandbox/parent_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "audio/sandbox/sandbox.h"

namespace syrinx {
namespace {

template <class Body>
std::span<const std::byte> bytes_of(const Body& body) {
  return std::as_bytes(std::span(&body, 1));
}

}  // namespace

void ParentLink::set_processor_time(double seconds) {
  seconds_ = seconds;
  allow_processor_time(seconds_);
}

bool ParentLink::send_bytes(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return true;
}

bool ParentLink::receive_bytes(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

bool ParentLink::send(DecodeMessage kind, std::span<const std::byte> body) {
  const MessageHeader header{kind, static_cast<uint32_t>(body.size())};
  return send_bytes(bytes_of(header)) && send_bytes(body);
}

bool ParentLink::give_ready() { return send(DecodeMessage::kReady, bytes_of(ReadyBody{kDecodeVersion})); }
bool ParentLink::take_order(DecodeOrder& order) { return receive_bytes(std::as_writable_bytes(std::span(&order, 1))); }
bool ParentLink::give_done() { return send(DecodeMessage::kDone, {}); }

bool ParentLink::give_fault(DecodeFault fault, std::string_view detail) {
  std::array<std::byte, sizeof fault + kMaxDetailBytes> body;
  const size_t size = std::min<size_t>(detail.size(), kMaxDetailBytes);
  std::memcpy(body.data(), &fault, sizeof fault);
  std::memcpy(body.data() + sizeof fault, detail.data(), size);
  return send(DecodeMessage::kFault, std::span(body).first(sizeof fault + size));
}

bool ParentLink::read(uint64_t at, std::span<std::byte> out) {
  while (!out.empty()) {
    const auto part = out.first(std::min<size_t>(out.size(), kMaxReadBytes));
    const ReadBody wanted{at, static_cast<uint32_t>(part.size()), 0};
    if (!send(DecodeMessage::kRead, bytes_of(wanted)) || !receive_bytes(part)) return false;
    at += part.size();
    out = out.subspan(part.size());
  }
  return true;
}

bool ParentLink::give_format(uint32_t rate_hz, uint32_t channels) {
  return send(DecodeMessage::kFormat, bytes_of(FormatBody{rate_hz, channels}));
}

bool ParentLink::give_samples(std::span<const float> interleaved) {
  allow_processor_time(seconds_);
  return send(DecodeMessage::kSamples, std::as_bytes(interleaved));
}

bool ParentLink::give_silence(uint64_t frames) { return send(DecodeMessage::kSilence, bytes_of(SilenceBody{frames})); }

}  // namespace syrinx
