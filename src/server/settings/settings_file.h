// The TOML file of `syrinx serve --config`.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "server/settings/settings.h"

namespace syrinx::server {

inline constexpr size_t kMaxSettingsBytes = size_t{1} << 20;

// Sets what `text` sets.  kInvalidArgument naming `name`, the line, the setting and what it may be.
Status read_settings(std::string_view text, const std::string& name, Settings& settings);
// The same of a file.  Also kNotFound, kIo, kLimitExceeded beyond kMaxSettingsBytes.
Status read_settings_file(const std::string& path, Settings& settings);

}  // namespace syrinx::server
