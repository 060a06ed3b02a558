// SYRINX_CHECK: our own bugs abort with file, line and values.  Stays on in release: it protects memory.
// Nothing that a client or a file can cause may reach one; those are Results.
#pragma once

#include <fmt/format.h>

#include <string>

namespace syrinx {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& values);
}

// SYRINX_CHECK(rows <= capacity, "rows {} capacity {}", rows, capacity);   the format is optional
#define SYRINX_CHECK(condition, ...)                                                                               \
  do {                                                                                                             \
    if (!(condition)) [[unlikely]]                                                                                 \
      ::syrinx::check_failed(__FILE__, __LINE__, #condition, std::string(__VA_OPT__(::fmt::format(__VA_ARGS__)))); \
  } while (false)

#ifdef NDEBUG
#define SYRINX_DCHECK(condition, ...) \
  do {                                \
  } while (false && (condition))
#else
#define SYRINX_DCHECK(condition, ...) SYRINX_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#endif
