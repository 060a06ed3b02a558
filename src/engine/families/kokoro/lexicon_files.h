// The files of the English front end.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/result.h"
#include "engine/speech/speech_files.h"
#include "models/g2p/english.h"

namespace syrinx {

// The front end's files in a lexicon folder, for a voice of either side of the ocean.
g2p::G2pFiles lexicon_files(const std::string& lexicon_folder, bool british);

// The American and the British front end, each read when it is first asked for.  Thread-safe.
class FrontEnds {
 public:
  FrontEnds(const SpeechFiles& files, std::string dictionary, std::string cache_folder)
      : lexicon_(files.lexicon), dictionary_(std::move(dictionary)), cache_folder_(std::move(cache_folder)) {}
  // kNotFound: no lexicon is installed.
  Result<std::shared_ptr<const g2p::EnglishG2p>> get(bool british);

 private:
  Result<std::shared_ptr<const g2p::EnglishG2p>> load(bool british) const;

  const std::string lexicon_, dictionary_, cache_folder_;
  std::mutex mutex_;
  std::shared_ptr<const g2p::EnglishG2p> kept_[2];  // American, British
};

// kNotFound with the way to get it, where `lexicon_folder` is empty.
Status check_lexicon_folder(const std::string& lexicon_folder);

}  // namespace syrinx
