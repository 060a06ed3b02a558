// Speaks with Kokoro: sentences become phonemes, phonemes pieces, pieces sound, with the time of each word.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/speech/sentence_speaker.h"
#include "models/g2p/english.h"
#include "models/kokoro/model.h"
#include "models/kokoro/pieces.h"

namespace syrinx {

// What a session needs of its engine; tests bring their own.  Called from the session's thread only.
class SpeechMaker {
 public:
  virtual ~SpeechMaker() = default;
  // Of what comes next; a name, or nothing for the first one.
  virtual Status use_voice(const std::string& name) = 0;
  virtual Result<g2p::Phonemized> phonemize(std::string_view sentence, size_t source_offset) = 0;
  // `ids` without the zeros; `symbols` chooses the row of the voice; `due_ns`: SpeechStream::due_ns(); `is_wanted` is
  // asked while it waits for its turn, when that has come (scheduler.h) and between stages, and kCancelled the end
  // where it says no; kLimitExceeded: it would take too long for one turn; `output` is reused.
  virtual Status synthesize(std::span<const int32_t> ids, size_t symbols, uint64_t seed, int64_t due_ns,
                            const std::function<bool()>& is_wanted, kokoro::PieceOutput& output) = 0;
  // How long synthesize() has waited for other sessions, all together.
  virtual double waited_ms() const = 0;
};

class KokoroSpeaker final : public SentenceSpeaker {
 public:
  static constexpr size_t kPiecesAhead = 2;

  KokoroSpeaker(std::unique_ptr<SpeechMaker> maker, const SpeakOptions& options)
      : SentenceSpeaker(options),
        maker_(std::move(maker)),
        seed_(options.seed),
        phonemes_(options.knobs.flag("phonemes")),
        planner_(kokoro::PiecePolicy::at_speed(static_cast<float>(options.knobs.number("speed").value_or(1)))) {}
  size_t chunks_ahead() const override { return kPiecesAhead; }
  int rate_hz() const override { return kokoro::kSampleRateHz; }

 private:
  void begin_text(size_t offset) override;
  Status feed(std::string_view text) override;
  Status finish_text() override;
  Result<std::optional<Sentence>> next_sentence(Moment moment) override;
  Status read(const Sentence& sentence, SpeechStream& stream) override;
  Result<bool> say(bool now, SpeechStream& stream) override;
  Status end() override;
  Status use_voice(const std::string& name) override { return maker_->use_voice(name); }
  void be_silent(size_t samples) override { samples_made_ += samples; }

  Result<std::optional<Sentence>> next_phonemes(Moment moment);
  Status make(const g2p::Phonemized& piece, SpeechStream& stream);
  Status make_halves(const g2p::Phonemized& piece, SpeechStream& stream);
  std::vector<WordTime> word_times(const g2p::Phonemized& piece, const std::vector<uint32_t>& offsets,
                                   size_t first_sample, size_t kept) const;
  std::string source_text(text::Range range) const;

  const std::unique_ptr<SpeechMaker> maker_;
  const uint64_t seed_;
  const bool phonemes_;

  std::string phoneme_text_;  // phonemes without the end of their sentence yet
  size_t phoneme_offset_ = 0;
  kokoro::PiecePlanner planner_;
  std::deque<Sentence> spoken_;  // those whose pieces are not all made yet, for the words' spelling
  kokoro::PieceOutput output_;
  uint64_t samples_made_ = 0;
  size_t pieces_ = 0;
};

}  // namespace syrinx
