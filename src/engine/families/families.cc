#include "engine/families/families.h"

#include <utility>
#include <vector>

#include "engine/threads.h"

namespace syrinx {

#define SPEECH_FAMILY(name) const SpeechFamily& name##_family();
#define RECOGNITION_FAMILY(name) const RecognitionFamily& name##_family();
#define CHAT_FAMILY(name) const ChatFamily& name##_family();
#include "engine/families/families.def"
#undef SPEECH_FAMILY
#undef RECOGNITION_FAMILY
#undef CHAT_FAMILY

std::span<const SpeechFamily* const> speech_families() {
  static const SpeechFamily* const families[] = {
#define SPEECH_FAMILY(name) &name##_family(),
#define RECOGNITION_FAMILY(name)
#define CHAT_FAMILY(name)
#include "engine/families/families.def"
#undef SPEECH_FAMILY
#undef RECOGNITION_FAMILY
#undef CHAT_FAMILY
  };
  return families;
}

std::span<const RecognitionFamily* const> recognition_families() {
  static const RecognitionFamily* const families[] = {
#define SPEECH_FAMILY(name)
#define RECOGNITION_FAMILY(name) &name##_family(),
#define CHAT_FAMILY(name)
#include "engine/families/families.def"
#undef SPEECH_FAMILY
#undef RECOGNITION_FAMILY
#undef CHAT_FAMILY
  };
  return families;
}

std::span<const ChatFamily* const> chat_families() {
  static const std::vector<const ChatFamily*> families = {
#define SPEECH_FAMILY(name)
#define RECOGNITION_FAMILY(name)
#define CHAT_FAMILY(name) &name##_family(),
#include "engine/families/families.def"
#undef SPEECH_FAMILY
#undef RECOGNITION_FAMILY
#undef CHAT_FAMILY
  };
  return families;
}

const SpeechFamily* find_speech_family(std::string_view kind) {
  for (const SpeechFamily* const family : speech_families())
    if (family->kind == kind) return family;
  return nullptr;
}

const RecognitionFamily* find_recognition_family(std::string_view kind) {
  for (const RecognitionFamily* const family : recognition_families())
    if (family->kind == kind) return family;
  return nullptr;
}

const ChatFamily* find_chat_family(std::string_view kind) {
  for (const ChatFamily* const family : chat_families())
    if (family->kind == kind) return family;
  return nullptr;
}

Result<std::shared_ptr<SpeechEngine>> load_speech_engine(SpeechEngineOptions options) {
  SYRINX_TRY(options.threads, choose_threads(options.threads));
  if (options.files.family == nullptr)
    return fail(Code::kUnsupported, "this build has no engine for the model '{}'", options.files.name);
  SYRINX_TRY_VOID(check_load_options(options));
  const SpeechFamily& family = *options.files.family;
  return family.load(std::move(options));
}

Result<std::shared_ptr<TextReader>> load_text_reader(SpeechEngineOptions options) {
  if (options.files.family == nullptr)
    return fail(Code::kUnsupported, "this build has no engine for the model '{}'", options.files.name);
  const SpeechFamily& family = *options.files.family;
  if (family.load_reader == nullptr) return no_text_reader(family.title);
  return family.load_reader(std::move(options));
}

Result<std::shared_ptr<Recogniser>> load_recogniser(RecogniserOptions options) {
  SYRINX_TRY(options.threads, choose_threads(options.threads));
  if (options.files.family == nullptr)
    return fail(Code::kUnsupported, "this build has no engine for the recogniser '{}'", options.files.name);
  const RecognitionFamily& family = *options.files.family;
  if (options.precision) SYRINX_TRY_VOID(check_precision(family, *options.precision));
  SYRINX_TRY_VOID(check_knobs(options.knobs, family));
  return family.load(std::move(options));
}

Result<std::shared_ptr<ChatEngine>> load_chat_engine(ChatEngineOptions options) {
  SYRINX_TRY(options.threads, choose_threads(options.threads));
  if (options.files.family == nullptr)
    return fail(Code::kUnsupported, "this build has no engine for the language model '{}'", options.files.name);
  const ChatFamily& family = *options.files.family;
  if (options.precision) SYRINX_TRY_VOID(check_precision(family, *options.precision));
  if (options.conversations < 1 || options.conversations > ChatEngineOptions::kMaxConversations)
    return fail(Code::kInvalidArgument, "{} conversations at once; give 1 to {}", options.conversations,
                ChatEngineOptions::kMaxConversations);
  return family.load(std::move(options));
}

}  // namespace syrinx
