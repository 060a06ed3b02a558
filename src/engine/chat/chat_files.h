// Where a language model is.
#pragma once

#include <string>

#include "base/result.h"
#include "store/paths.h"

namespace syrinx {

struct ChatFamily;  // chat_family.h

struct ChatFiles {
  std::string name = {};  // what was asked for
  const ChatFamily* family = nullptr;
  std::string checkpoint = {};  // a file, or the folder of several
};

// Where what is packed from these files is kept: packed/NAME for an installed model, packed/files for others.
std::string packed_folder(const UserPaths& paths, const ChatFiles& files);

}  // namespace syrinx
