#include "server/settings/module_plan.h"
#include "server/settings/settings_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syrinx::server;
  Settings settings;
  const auto read = read_settings({reinterpret_cast<const char*>(data), size}, "a.toml", settings);
  if (!read) {
    if (read.error().message.empty()) __builtin_trap();
    return 0;
  }
  // Accepted values are within their limits, and are read back as they are written.
  if (settings.port < 0 || settings.port > 65535 || !(settings.idle_timeout_s >= 0.1)) __builtin_trap();
  Settings again;
  if (!read_settings(settings_as_toml(settings), "b.toml", again)) __builtin_trap();
  if (settings.voice != again.voice || settings.voices != again.voices) __builtin_trap();
  if (modules_as_toml(settings.modules) != modules_as_toml(again.modules)) __builtin_trap();
  static_cast<void>(check_modules(settings));
  return 0;
}
