#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

namespace syrinx {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warning", "error", "off"};

// Read by every log statement, hence outside spdlog and without a lock.
std::atomic<LogLevel> g_level{LogLevel::kWarning};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: return spdlog::level::off;
  }
  return spdlog::level::off;
}

LogLevel from_spdlog(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug: return LogLevel::kDebug;
    case spdlog::level::info: return LogLevel::kInfo;
    case spdlog::level::warn: return LogLevel::kWarning;
    default: return LogLevel::kError;
  }
}

class FunctionSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(LogSink sink) : sink_(std::move(sink)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    sink_(from_spdlog(message.level), std::string_view(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

 private:
  LogSink sink_;
};

std::shared_ptr<spdlog::logger> make_logger(LogSink sink) {
  std::shared_ptr<spdlog::sinks::sink> target;
  if (sink) {
    target = std::make_shared<FunctionSink>(std::move(sink));
  } else {
    target = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    target->set_pattern("%n: %^%l%$: %v");
  }
  auto logger = std::make_shared<spdlog::logger>("syrinx", std::move(target));
  logger->set_level(spdlog::level::trace);  // g_level decides
  // A log that cannot be written (closed standard error) must not become a second failure.
  logger->set_error_handler([](const std::string&) {});
  return logger;
}

struct Holder {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger = make_logger({});
};

// Never destroyed: threads may still log while the program leaves main().
Holder& holder() {
  static Holder* const instance = new Holder;
  return *instance;
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<LogLevel>(i);
  }
  return fail(Code::kInvalidArgument, "log level '{}' is unknown; choose debug, info, warning, error or off", name);
}

void set_log_level(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }
LogLevel log_level() { return g_level.load(std::memory_order_relaxed); }

void set_log_sink(LogSink sink) {
  auto logger = make_logger(std::move(sink));
  const std::lock_guard lock(holder().mutex);
  holder().logger = std::move(logger);
}

void log_message(LogLevel level, std::string_view message) {
  if (!log_enabled(level)) return;
  std::shared_ptr<spdlog::logger> logger;
  {
    const std::lock_guard lock(holder().mutex);
    logger = holder().logger;
  }
  logger->log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace syrinx
