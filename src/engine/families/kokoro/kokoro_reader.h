// Kokoro's English front end as a reader of texts: without the checkpoint, or as a loaded engine has it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/families/kokoro/lexicon_files.h"
#include "engine/speech/speech_engine.h"
#include "engine/speech/text_reader.h"

namespace syrinx {

using FrontEnd = Result<std::shared_ptr<const g2p::EnglishG2p>>;

// `choose` gives the front end for a voice, of the options at once and later of each mark; it has checked the voice.
Result<std::unique_ptr<TextReading>> read_english(const SpeakOptions& options,
                                                  std::function<FrontEnd(const std::string& voice)> choose);

class KokoroReader final : public TextReader {
 public:
  // Reads the front end for the first voice.  kNotFound: no lexicon is installed.
  static Result<std::shared_ptr<TextReader>> load(SpeechEngineOptions options);
  explicit KokoroReader(std::shared_ptr<FrontEnds> front_ends) : front_ends_(std::move(front_ends)) {}

  // A voice chooses by its name; its file is not looked for.
  Result<std::unique_ptr<TextReading>> start(const SpeakOptions& options) override;

 private:
  const std::shared_ptr<FrontEnds> front_ends_;
};

}  // namespace syrinx
