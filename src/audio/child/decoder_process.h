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
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "audio/child/decode_talk.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"

namespace syrinx {

struct DecoderPatience {
  int64_t start_ms = 30000;    // until its first byte: the libraries come from a disk, no file is read yet
  int64_t silence_ms = 30000;  // then without a byte of the child
  int64_t all_ms = 3600000;    // of all waiting for one child, while it decodes
  // Time in which the child computes, or would if the machine had time for it, does not count (its own limits are of
  // processor time), up to so many times the above.
  int64_t starved_times = 10;
};

class DecoderProcess final : public DecodeChannel {
 public:
  // `arguments`: the program's path first.  kUnsupported: it cannot be run; kUnavailable: the system has no more
  // processes or descriptors.
  static Result<DecoderProcess> start(std::vector<std::string> arguments);

  DecoderProcess(DecoderProcess&& other) noexcept;
  DecoderProcess& operator=(DecoderProcess&&) = delete;
  ~DecoderProcess() override;  // ends the child and waits for it

  Status receive(std::span<std::byte> bytes) override;
  Status send(std::span<const std::byte> bytes) override;

  // Called on the waiting thread ten times a second while the child is waited for; its error ends the waiting.
  void ask_while_waiting(std::function<Status()> ask) { ask_ = std::move(ask); }
  // Whether a byte of it, or its end, comes within the time.
  bool has_answer_within(int ms) const;
  bool has_answered() const { return has_answered_; }

  bool is_running() const;  // its socket is open
  void set_patience(const DecoderPatience& patience) { patience_ = patience; }
  pid_t pid() const { return pid_; }

 private:
  DecoderProcess(pid_t pid, Descriptor handle, Descriptor socket)
      : pid_(pid), handle_(std::move(handle)), socket_(std::move(socket)) {}
  Status wait_for(short events);
  Status ask();
  Status check_patience(int64_t elapsed_ms, std::optional<int64_t> busy_at_ms);
  Status ended();  // why
  Error end();     // how it ended

  pid_t pid_;          // -1: ended
  Descriptor handle_;  // of the process, where the system has such
  Descriptor socket_;
  DecoderPatience patience_;
  std::function<Status()> ask_;
  Stopwatch since_asked_;
  int64_t waited_ms_ = 0;       // since its first byte
  int64_t busy_before_ms_ = 0;  // that
  bool has_answered_ = false;
};

}  // namespace syrinx
