// The voices of a checkpoint of Qwen3-TTS: of CustomVoice the speakers in its configuration, of Base recordings called
// NAME.wav, .flac, .mp3, .ogg or .opus in voices/ beside it, each perhaps with what is said in NAME.txt, and exported
// voices, NAME.safetensors; of VoiceDesign none, as instructions tell who speaks.  Looks into folders; thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/speech/speech_family.h"
#include "models/qwen_tts/config.h"

namespace syrinx {

// With languages and genders of the makers' nine, by language; `folder` is the checkpoint's.
std::vector<VoiceEntry> list_qwen_voices(const qwen_tts::Config& config, const std::string& folder);
// The voice where none is named: ryan, vivian, else the first speaker; the only recording there is; else nothing.
std::string default_qwen_voice(const qwen_tts::Config& config, const std::string& folder);

// OpenAI's names to the nearest speakers.
std::span<const std::pair<const char*, const char*>> known_qwen_voices();

// The speaker's name as the checkpoint has it, found in any case.  kNotFound says which there are.
Result<std::string> find_qwen_speaker(const qwen_tts::Config& config, const std::string& voice);

struct QwenRecording {
  std::string name, path;
  std::string words_path;  // what is said in it; empty: not known
};
// A name, or a path: whatever holds a '/' or a '.'; hf:// and http(s):// are fetched unless they are here.  kNotFound.
Result<QwenRecording> find_qwen_recording(const std::string& folder, const std::string& voice);

// Whether a text can be spoken with that voice, by the names of voices and files alone.  kNotFound; kUnsupported: a
// voice for VoiceDesign, where instructions tell who speaks.
Status find_qwen_voice(const qwen_tts::Config& config, const std::string& folder, const std::string& voice);
// The words beside a recording, without blanks around them; empty where there are none.  kLimitExceeded; kDataLoss:
// they are no UTF-8.
Result<std::string> read_qwen_words(const QwenRecording& recording);
// kUnsupported unless voices can be made of recordings.
Status check_qwen_clones(const qwen_tts::Config& config);

}  // namespace syrinx
