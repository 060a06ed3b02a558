// The voices beside a checkpoint of Pocket TTS: files called NAME.safetensors (exported voices) or NAME.wav, .flac,
// .mp3, .ogg, .opus (recordings to be cloned) in voices/ or, as in the maker's repositories, embeddings/.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "models/pocket_tts/voice_file.h"

namespace syrinx {

struct PocketVoiceFile {
  std::string name;
  std::string path;
  bool recording = false;
};

// By name; of files of one name, an exported voice before a recording.  None where there is no such folder.
std::vector<PocketVoiceFile> list_pocket_voices(const std::string& folder);

// "alba, maria, ...", the first of them, for messages.
std::string pocket_voice_names(const std::vector<PocketVoiceFile>& voices);

// `voice` is a name, or a path: whatever holds a '/' or a '.'; hf:// and http(s):// are fetched unless they are here.
// kNotFound says which names there are.
Result<PocketVoiceFile> find_pocket_voice(const std::string& voice, const std::string& folder);

// What is made of a voice's file: an exported voice, or a recording made ready to be cloned.
using PocketVoiceContent = std::variant<pocket::VoiceFile, std::vector<float>>;

// Of the file's bytes; `truncate`: of a recording the beginning alone.  `name` stands in messages.  Errors: those of
// pocket::parse_voice_file() and read_voice_recording().
Result<PocketVoiceContent> read_pocket_voice(std::span<const std::byte> content, const std::string& name, bool truncate,
                                             const pocket::FlowLmConfig& config);
// The same of a file that others may write anew meanwhile; errors also those of WatchedFile.
Result<PocketVoiceContent> read_pocket_voice(const std::string& path, bool truncate,
                                             const pocket::FlowLmConfig& config);

// What is taken where no voice is named: alba, or what the maker takes for the language that the path tells of; else
// the only voice there is; else nothing.
std::string default_pocket_voice(const std::vector<PocketVoiceFile>& voices, const std::string& checkpoint);

// What the checkpoint speaks by its path: "it", "es", "de", "pt", "fr", "nl", or "en" for everything else.
std::string pocket_language(const std::string& checkpoint);

}  // namespace syrinx
