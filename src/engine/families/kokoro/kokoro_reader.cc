#include "engine/families/kokoro/kokoro_reader.h"

#include <utility>
#include <vector>

#include "engine/families/kokoro/kokoro_engine.h"
#include "engine/families/kokoro/kokoro_family.h"

namespace syrinx {
namespace {

class EnglishReader final : public SentenceReader {
 public:
  using Choose = std::function<FrontEnd(const std::string& voice)>;
  EnglishReader(Choose choose, std::shared_ptr<const g2p::EnglishG2p> first)
      : choose_(std::move(choose)), first_(std::move(first)), chosen_(first_) {}

  Status use_voice(const std::string& name) override {
    if (name.empty()) {
      chosen_ = first_;
      return {};
    }
    SYRINX_TRY_VOID(KokoroEngine::check_mark(name));
    SYRINX_TRY(chosen_, choose_(name));
    return {};
  }

  Result<SentenceReading> read(std::string_view sentence, size_t offset) override {
    std::vector<g2p::ReadWord> words;
    SYRINX_TRY(g2p::Phonemized spoken, chosen_->phonemize(sentence, offset, &words));
    SentenceReading reading;
    reading.text = sentence;
    reading.source_begin = offset;
    reading.source_end = offset + sentence.size();
    reading.dropped_characters = spoken.dropped;
    reading.words.reserve(words.size());
    for (g2p::ReadWord& word : words)
      reading.words.push_back({std::move(word.word), word.rule, word.sound,
                               spoken.phonemes.substr(word.phonemes.begin, word.phonemes.size()), word.source.begin,
                               word.source.end});
    reading.phonemes = std::move(spoken.phonemes);
    return reading;
  }

 private:
  const Choose choose_;
  const std::shared_ptr<const g2p::EnglishG2p> first_;
  std::shared_ptr<const g2p::EnglishG2p> chosen_;
};

}  // namespace

Result<std::unique_ptr<TextReading>> read_english(const SpeakOptions& options,
                                                  std::function<FrontEnd(const std::string& voice)> choose) {
  SYRINX_TRY_VOID(check_knobs(options.knobs, kokoro_family()));
  if (options.knobs.flag("phonemes"))
    return fail(
        Code::kInvalidArgument,
        "phonemes are what the model is given, and no rule reads them; leave 'phonemes' out to have a text read");
  SYRINX_TRY(auto first, choose(options.voice.empty() ? kDefaultVoice : options.voice));
  auto reader = std::make_unique<EnglishReader>(std::move(choose), std::move(first));
  return std::make_unique<TextReading>(std::move(reader), options.plain);
}

Result<std::shared_ptr<TextReader>> KokoroReader::load(SpeechEngineOptions options) {
  auto front_ends =
      std::make_shared<FrontEnds>(options.files, std::move(options.dictionary), std::move(options.cache_folder));
  const std::string voice = options.first_voice.empty() ? kDefaultVoice : options.first_voice;
  SYRINX_TRY_VOID(KokoroEngine::check_language(voice));
  SYRINX_TRY_VOID(front_ends->get(kokoro::speaks_british(voice)));
  return std::make_shared<KokoroReader>(std::move(front_ends));
}

Result<std::unique_ptr<TextReading>> KokoroReader::start(const SpeakOptions& options) {
  return read_english(options, [front_ends = front_ends_](const std::string& voice) -> FrontEnd {
    SYRINX_TRY_VOID(KokoroEngine::check_language(voice));
    return front_ends->get(kokoro::speaks_british(voice));
  });
}

}  // namespace syrinx
