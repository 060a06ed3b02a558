// Where a decoding gets its file and leaves its sound: the parent, behind a socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syrinx {

class DecodeHost {
 public:
  virtual ~DecodeHost() = default;
  // Bytes of the file, all of which lie in it.  False: nobody is there any more.
  virtual bool read(uint64_t at, std::span<std::byte> out) = 0;
  // Each false where nobody takes it any more.  The format once, before the first sample.
  virtual bool give_format(uint32_t rate_hz, uint32_t channels) = 0;
  virtual bool give_samples(std::span<const float> interleaved) = 0;
  virtual bool give_silence(uint64_t frames) = 0;
};

}  // namespace syrinx
