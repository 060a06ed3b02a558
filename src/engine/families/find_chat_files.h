// Finds the files of a language model, of whichever family.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/chat/chat_files.h"

namespace syrinx {

// `model` is the name of an installed model ("smollm2"), a folder that holds a checkpoint, or a checkpoint file:
// whatever holds a '/', or a '.' and is not installed, is a path.  Empty: kDefaultChatModel.  kNotFound says what is
// missing and how to get it, kUnsupported what the place holds.
Result<ChatFiles> find_chat_files(const std::string& model, const std::string& models_folder);

}  // namespace syrinx
