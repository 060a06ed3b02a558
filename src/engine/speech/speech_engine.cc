#include "engine/speech/speech_engine.h"

#include <algorithm>

#include "base/in_quotes.h"

namespace syrinx {
namespace {

bool names_voice(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

}  // namespace

Result<std::unique_ptr<TextReading>> SpeechEngine::read(const SpeakOptions& /*options*/) {
  return no_text_reader("'" + name() + "'");
}

Status check_voice_name(const std::string& name) {
  if (!name.empty() && std::all_of(name.begin(), name.end(), names_voice)) return {};
  return fail(Code::kInvalidArgument, "{} cannot name a voice: use letters, digits, '_' and '-'", in_quotes(name));
}

Status check_marked_voice(const std::string& name) {
  if (check_voice_name(name)) return {};
  return fail(
      Code::kInvalidArgument,
      "{} is not the name of a voice, and a text opens no files; give a file a name of letters, digits, '_' and '-' "
      "(--cast NAME=FILE)",
      in_quotes(name));
}

}  // namespace syrinx
