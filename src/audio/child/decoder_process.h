// A child that decodes one recording: the program syrinx-decode, and the socket to it.
//
//   SYRINX_TRY(DecoderProcess child, DecoderProcess::start({path}));
//   SYRINX_TRY_VOID(decode_by(child, job));
//
// Works within any program: the child inherits no descriptor but its socket and no environment but the loader's path;
// no signal of it reaches the parent but SIGCHLD, and none is raised by a socket that has closed.  One thread at a
// time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "audio/child/decode_talk.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"

namespace syrinx {

struct DecoderPatience {
  int64_t start_ms = 120000;   // until its first byte: the libraries come from a disk, no file is read yet
  int64_t silence_ms = 30000;  // then without a byte of the child
  int64_t all_ms = 3600000;    // of all waiting for one child, while it decodes
};

class DecoderProcess final : public DecodeChannel {
 public:
  // `arguments`: the program's path first.  kUnsupported: it cannot be run; kIo: the system has no more processes or
  // descriptors.
  static Result<DecoderProcess> start(std::vector<std::string> arguments);

  DecoderProcess(DecoderProcess&& other) noexcept;
  DecoderProcess& operator=(DecoderProcess&&) = delete;
  ~DecoderProcess() override;  // ends the child and waits for it

  Status receive(std::span<std::byte> bytes) override;
  Status send(std::span<const std::byte> bytes) override;

  bool is_running() const;  // its socket is open
  void set_patience(const DecoderPatience& patience) { patience_ = patience; }
  pid_t pid() const { return pid_; }

 private:
  DecoderProcess(pid_t pid, Descriptor handle, Descriptor socket)
      : pid_(pid), handle_(std::move(handle)), socket_(std::move(socket)) {}
  Status wait_for(short events);
  Status ended();     // why
  std::string end();  // how it ended

  pid_t pid_;          // -1: ended
  Descriptor handle_;  // of the process, where the system has such
  Descriptor socket_;
  DecoderPatience patience_;
  int64_t waited_ms_ = 0;  // since its first byte
  bool has_answered_ = false;
};

}  // namespace syrinx
