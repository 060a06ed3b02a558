// Models that are loaded, by kind.
#pragma once

#include <cstdint>
#include <memory>

#include "server/host/chat_model.h"
#include "server/host/recognition_model.h"
#include "server/host/speech_model.h"

namespace syrinx::server {

struct Models {  // null: there is none of that kind, or it is not loaded
  std::shared_ptr<const SpeechModel> speech = {};
  std::shared_ptr<const RecognitionModel> recognition = {};
  std::shared_ptr<const ChatModel> chat = {};

  bool any() const { return speech || recognition || chat; }
  // Whether one of them is held elsewhere, too.
  bool in_use() const { return speech.use_count() > 1 || recognition.use_count() > 1 || chat.use_count() > 1; }
  uint64_t memory_bytes() const {
    return (speech ? speech->memory_bytes() : 0) + (recognition ? recognition->memory_bytes() : 0) +
           (chat ? chat->memory_bytes() : 0);
  }
};

}  // namespace syrinx::server
