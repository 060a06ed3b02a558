// The table of families: which there are, and the engine of whichever family a model's files belong to.  Thread-safe.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "engine/chat/chat_engine.h"
#include "engine/chat/chat_family.h"
#include "engine/recognition/recogniser.h"
#include "engine/recognition/recognition_family.h"
#include "engine/speech/speech_engine.h"
#include "engine/speech/speech_family.h"

namespace syrinx {

// By the kind of the catalogue and of manifests; null where no family is of that kind.
const SpeechFamily* find_speech_family(std::string_view kind);
const RecognitionFamily* find_recognition_family(std::string_view kind);
const ChatFamily* find_chat_family(std::string_view kind);

// Errors: those of choose_threads(), of check_load_options() and of the family's own loader.
Result<std::shared_ptr<SpeechEngine>> load_speech_engine(SpeechEngineOptions options);
// The front end without the model: options.files of find_reader_files(), the dictionary, the cache's folder and
// the first voice are used.  kUnsupported where the model takes text as it is written.
Result<std::shared_ptr<TextReader>> load_text_reader(SpeechEngineOptions options);
Result<std::shared_ptr<Recogniser>> load_recogniser(RecogniserOptions options);
// kInvalidArgument for the numbers of the options, besides.
Result<std::shared_ptr<ChatEngine>> load_chat_engine(ChatEngineOptions options);

}  // namespace syrinx
