// Where the program syrinx-decode is.
#pragma once

#include <string>

#include "base/result.h"

namespace syrinx {

// SYRINX_DECODE where the environment has it and it is not empty; else beside the program or library that holds this
// code, or in
// ../libexec/syrinx of its folder (../../libexec/syrinx of a library's), or where this build installs it. kUnsupported:
// nowhere.  The folder is found once, so that another version of the file may take its place.
Result<std::string> find_decoder_program();

}  // namespace syrinx
