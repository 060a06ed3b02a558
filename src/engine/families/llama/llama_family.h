// The family of language models of Llama's kind (engine/chat/chat_family.h).
#pragma once

#include "engine/chat/chat_family.h"

namespace syrinx {

const ChatFamily& llama_family();

}  // namespace syrinx
