#include "engine/families/check_speech.h"

#include <string_view>

#include "base/mapped_file.h"
#include "engine/families/kokoro/kokoro_engine.h"
#include "engine/families/pocket_tts/pocket_voices.h"
#include "engine/speech/speech_engine.h"
#include "models/kokoro/voice.h"
#include "models/pocket_tts/config_file.h"
#include "models/pocket_tts/model.h"

namespace syrinx {
namespace {

// How wide the model's styles are stands in its checkpoint; the file of a voice holds whole rows in any case.
Status check_kokoro(const WatchedFile& file, const std::string& name) {
  constexpr size_t kColumnBytes = kokoro::kVoiceRows * sizeof(float);
  const size_t bytes = file.bytes().size();
  if (bytes == 0 || bytes % kColumnBytes != 0)
    return fail(Code::kDataLoss, "voice '{}' has {} bytes, and those of Kokoro have a multiple of {}; give such a file",
                name, bytes, kColumnBytes);
  const auto voice = kokoro::Voice::parse(file.bytes(), name, bytes / kColumnBytes);
  SYRINX_TRY_VOID(file.check_all());
  if (!voice) return tl::unexpected(voice.error());
  return {};
}

Status check_pocket(const SpeechFiles& files, const std::string& path, bool truncate) {
  SYRINX_TRY(const pocket::CheckpointPath place, pocket::find_checkpoint(files.checkpoint));
  SYRINX_TRY(const MappedFile text, MappedFile::open(place.config));
  SYRINX_TRY(
      const pocket::ConfigFile read,
      pocket::parse_config({reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size()}, place.config));
  const auto content = read_pocket_voice(path, truncate, read.config.flow_lm);
  if (!content) return tl::unexpected(content.error());
  return {};
}

}  // namespace

Status check_precision(ModelFamily family, Precision precision) {
  if (family != ModelFamily::kKokoro) return {};
  const auto taken = KokoroEngine::precision_of(precision);
  if (!taken) return tl::unexpected(taken.error());
  return {};
}

std::string default_voice(const SpeechFiles& files) {
  if (files.family == ModelFamily::kKokoro) return kDefaultVoice;
  return default_pocket_voice(list_pocket_voices(files.voices), files.checkpoint);
}

Status check_voice(const SpeechFiles& files, const std::string& voice) {
  if (files.family == ModelFamily::kPocketTts) {
    SYRINX_TRY(const PocketVoiceFile file, find_pocket_voice(voice, files.voices));
    return check_pocket(files, file.path, /*truncate=*/false);
  }
  SYRINX_TRY(const std::vector<kokoro::VoicePart> parts, kokoro::parse_voice(voice));
  for (const kokoro::VoicePart& part : parts) {
    SYRINX_TRY(const WatchedFile file, kokoro::open_voice(files.voices, part));
    SYRINX_TRY_VOID(check_kokoro(file, part.name));
  }
  SYRINX_TRY_VOID(KokoroEngine::check_lexicon(files));
  return KokoroEngine::check_language(voice);
}

Status check_voice_file(const SpeechFiles& files, const std::string& name, const std::string& path) {
  SYRINX_TRY_VOID(check_voice_name(name));
  if (files.family == ModelFamily::kPocketTts) return check_pocket(files, path, /*truncate=*/true);
  SYRINX_TRY(const WatchedFile file, WatchedFile::open(path));
  return check_kokoro(file, name);
}

}  // namespace syrinx
