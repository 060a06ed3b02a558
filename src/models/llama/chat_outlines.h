// The outlines (jinja_outline.h) of the chat templates that are known.
#pragma once

#include <string>
#include <vector>

#include "models/llama/chat_forms.h"

namespace syrinx::llama {

// In an outline: the inner text of a string, which is the default message of the system or the date.
inline constexpr char kOutlineHole = '\1';

struct KnownChat {
  std::string outline;  // with one hole at most
  std::string title;    // for messages
  ChatForm form;        // without the text in the hole
};

const std::vector<KnownChat>& known_chats();  // made once

}  // namespace syrinx::llama
