#include "engine/speech_engine.h"

#include <algorithm>
#include <utility>

#include "base/cpu_info.h"
#include "base/in_quotes.h"
#include "engine/kokoro_engine.h"
#include "engine/pocket_engine.h"

namespace syrinx {
namespace {

constexpr int kMaxThreads = 64;
constexpr int kMaxDefaultThreads = 8;

bool names_voice(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

}  // namespace

int default_threads() { return std::clamp(cpu_info().logical_cores, 1, kMaxDefaultThreads); }

Result<int> choose_threads(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    return fail(Code::kInvalidArgument, "{} threads: give 1 to {}, or 0 for the default", threads, kMaxThreads);
  return threads == 0 ? default_threads() : threads;
}

Status check_voice_name(const std::string& name) {
  if (!name.empty() && std::all_of(name.begin(), name.end(), names_voice)) return {};
  return fail(Code::kInvalidArgument, "{} cannot name a voice: use letters, digits, '_' and '-'", in_quotes(name));
}

Status check_marked_voice(const std::string& name) {
  if (check_voice_name(name)) return {};
  return fail(Code::kInvalidArgument,
              "{} is no voice's name, and a text opens no files; give a file a name of letters, digits, '_' and '-' "
              "(--cast NAME=FILE)",
              in_quotes(name));
}

Result<std::shared_ptr<SpeechEngine>> SpeechEngine::load(SpeechEngineOptions options) {
  SYRINX_TRY(options.threads, choose_threads(options.threads));
  switch (options.files.family) {
    case ModelFamily::kKokoro: return KokoroEngine::load(std::move(options));
    case ModelFamily::kPocketTts: return PocketEngine::load(std::move(options));
  }
  return fail(Code::kInternal, "no engine for the model '{}'", options.files.name);
}

}  // namespace syrinx
