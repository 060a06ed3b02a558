// The content of a file: for `syrinx inspect FILE`.  Reads directories and headers, not the values of large tensors,
// and executes nothing.  The kind is told by the content, not by the name, but for configurations (.yaml, or the folder
// of one).
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "engine/file_description.h"

namespace syrinx {

// kNotFound, kIo, kUnsupported (no kind that we know), or the reader's own error.
Result<FileDescription> describe_file(const std::string& path);

// One object: path, kind, model, size_bytes, facts as members of "facts", and the two lists.
Json to_json(const FileDescription& description);
// Lines for people, the last without a newline.
std::string to_text(const FileDescription& description);

}  // namespace syrinx
