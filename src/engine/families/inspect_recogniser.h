// What `syrinx inspect` says of recognisers: Whisper as CTranslate2 keeps it, FastConformer archives, voice activity.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/file_description.h"

namespace syrinx {

// Whether describe_recogniser() knows a file by its first bytes.
bool looks_like_recogniser(std::span<const std::byte> bytes);
// `bytes` are those of the file at `out.path`.  Errors: the readers'.
Status describe_recogniser(std::span<const std::byte> bytes, FileDescription& out);

}  // namespace syrinx
