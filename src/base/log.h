// The one door to the log.  Messages go to standard error as "syrinx: warning: ..."; below kWarning they are off until
// somebody asks (--verbose, SYRINX_LOG=debug).  A message is formatted by the caller only when its level is on, and is
// handed over as a finished string, so that the sink may be another thread.  Any thread may log.  Never in a step.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace syrinx {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

Result<LogLevel> parse_log_level(std::string_view name);  // "debug", "info", "warning", "error", "off"
void set_log_level(LogLevel level);
LogLevel log_level();
inline bool log_enabled(LogLevel level) { return level >= log_level() && level != LogLevel::kOff; }

// Replaces standard error, for an embedding program or a test; an empty function brings it back.  Calls are serialised.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;
void set_log_sink(LogSink sink);

void log_message(LogLevel level, std::string_view message);

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kDebug)) log_message(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kInfo)) log_message(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kWarning))
    log_message(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kError)) log_message(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace syrinx
