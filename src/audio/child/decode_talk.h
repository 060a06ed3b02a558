// The parent's side of a decoding: answers the child's reads, and gives its samples to a mixer.
//
// A child that has met a hostile file may send anything.  Each message is checked against its place and its bounds
// before its body is taken; memory is one block, whatever the child announces.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "audio/child/decode_protocol.h"
#include "audio/mono_mixer.h"
#include "base/result.h"

namespace syrinx {

// Bytes to and from a child.
class DecodeChannel {
 public:
  virtual ~DecodeChannel() = default;
  // All of the bytes, or the reason why they do not come or go, which follows "its decoder ".  kUnsupported: the file
  // may be to blame; kUnavailable: it is not.
  virtual Status receive(std::span<std::byte> bytes) = 0;
  virtual Status send(std::span<const std::byte> bytes) = 0;
};

struct DecodeJob {
  std::span<const std::byte> file;
  SoundContainer container;
  const std::string& name;  // in messages
  MonoMixer& mixer;
  bool is_ready = false;  // await_ready() has found the child so
};

// Until the child has loaded its libraries.  kUnsupported: it lacks them, or is of another version; kUnavailable: it
// ends or hangs before it has seen a file.
Status await_ready(DecodeChannel& child);

// From kReady to kDone.  Errors: as read_sound(); kUnsupported besides for a child that ends, hangs or sends nonsense;
// kUnavailable: one that the system or another program ended, or that got no processor time; kLimitExceeded: a file
// that needs more memory than the child may have.
Status decode_by(DecodeChannel& child, const DecodeJob& job);

}  // namespace syrinx
