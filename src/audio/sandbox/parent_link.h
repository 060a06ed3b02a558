// The child's end of the socket: the host of a decoding is the parent, which is asked and told by messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "audio/child/decode_protocol.h"
#include "audio/sandbox/decode_host.h"

namespace syrinx {

class ParentLink final : public DecodeHost {
 public:
  // Its processor time before the first sample, and again behind each block of samples.
  explicit ParentLink(int socket) : socket_(socket) {}
  void set_processor_time(double seconds);

  // Each false once the parent is gone.
  bool give_ready();
  bool take_order(DecodeOrder& order);
  bool give_done();
  bool give_fault(DecodeFault fault, std::string_view detail);

  bool read(uint64_t at, std::span<std::byte> out) override;
  bool give_format(uint32_t rate_hz, uint32_t channels) override;
  bool give_samples(std::span<const float> interleaved) override;
  bool give_silence(uint64_t frames) override;

 private:
  bool send(DecodeMessage kind, std::span<const std::byte> body);
  bool send_bytes(std::span<const std::byte> bytes);
  bool receive_bytes(std::span<std::byte> bytes);

  const int socket_;
  double seconds_ = 0;
};

}  // namespace syrinx
