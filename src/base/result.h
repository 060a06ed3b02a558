// Result<T>: a value or an Error, for loading and requests (steps gather status bits instead; docs: CONTRIBUTING.md).
//
// An Error is a code from a short list and one sentence that names the thing, the limit and the remedy.  The CLI maps
// the code to an exit status (exit_status), a server to an HTTP status.  Our code never throws.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace syrinx {

enum class Code {
  kInvalidArgument,  // what the caller asked for makes no sense (flag, text, voice name)
  kNotFound,         // a named file, model or voice is not there
  kDataLoss,         // a file is truncated, malformed or does not match its hash
  kUnsupported,      // well-formed, but nothing we can run
  kLimitExceeded,    // larger than a stated limit
  kIo,               // the system refused: permission, disk full, broken pipe, network
  kUnavailable,      // not now: offline, no device, no free slot
  kCancelled,        // the user or the client stopped it
  kInternal,         // our own fault
};

struct Error {
  Code code = Code::kInternal;
  std::string message;  // one sentence, no trailing newline
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// return fail(Code::kNotFound, "voice '{}' is not installed; `syrinx voices` lists them", name);
template <class... Args>
tl::unexpected<Error> fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

const char* code_name(Code code);  // "invalid_argument", ...
int exit_status(Code code);        // process exit status, documented in docs/cli.md; 0 is success, 1 unused by us

}  // namespace syrinx

#define SYRINX_CONCAT_(a, b) a##b
#define SYRINX_CONCAT(a, b) SYRINX_CONCAT_(a, b)
// SYRINX_TRY(const MappedFile file, MappedFile::open(path));  declares `file`, or returns the error.
#define SYRINX_TRY(declaration, ...) SYRINX_TRY_IMPL_(SYRINX_CONCAT(syrinx_try_, __LINE__), declaration, __VA_ARGS__)
#define SYRINX_TRY_IMPL_(temporary, declaration, ...)                  \
  auto temporary = (__VA_ARGS__);                                      \
  if (!temporary) return tl::unexpected(std::move(temporary).error()); \
  declaration = std::move(*temporary)
// SYRINX_TRY_VOID(file.flush());  returns the error, if any, of a Status.
#define SYRINX_TRY_VOID(...)                                                     \
  do {                                                                           \
    auto syrinx_status = (__VA_ARGS__);                                          \
    if (!syrinx_status) return tl::unexpected(std::move(syrinx_status).error()); \
  } while (false)
