// A speaker that spells, instead of a model that speaks, for tests of sessions.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/families/kokoro/kokoro_speaker.h"
#include "engine/speech/speech_session.h"

namespace syrinx {

inline constexpr int kLeadFrames = 8, kTrailFrames = 8;  // silence before the first id, and after the last
inline constexpr int kFrames = 4;                        // sound of each id

struct Log {
  std::atomic<int> phonemized{0}, synthesized{0};
  std::atomic<bool> hold{false}, asked{false};  // synthesize() was asked, and waits while it is to be held
  std::atomic<size_t> most_ids{1000};           // more of them would take too long
};

// Spells: each ASCII letter is its own phoneme.  Sound is a square wave; its seed decides the level.
class SpellingMaker final : public SpeechMaker {
 public:
  explicit SpellingMaker(std::shared_ptr<Log> log) : log_(std::move(log)) {}

  // Voices that are there have names of one letter.
  Status use_voice(const std::string& name) override {
    if (name.size() > 1) return fail(Code::kNotFound, "there is no voice '{}'", name);
    voice_level_ = name.empty() ? 0.0f : 0.01f * static_cast<float>(name[0]);
    return {};
  }

  Result<g2p::Phonemized> phonemize(std::string_view sentence, size_t source_offset) override {
    ++log_->phonemized;
    if (sentence.find("fail") != std::string_view::npos) return fail(Code::kDataLoss, "the lexicon is broken");
    g2p::Phonemized made;
    for (size_t i = 0; i < sentence.size();) {
      const size_t end = std::min(sentence.find(' ', i), sentence.size());
      std::string_view word = sentence.substr(i, end - i);
      std::string_view mark;
      if (!word.empty() && (word.back() == '.' || word.back() == ',')) {
        mark = word.substr(word.size() - 1);
        word.remove_suffix(1);
      }
      if (word.starts_with("#")) {
        ++made.dropped;
        word = {};
      }
      if (!word.empty() && !made.phonemes.empty()) made.phonemes += ' ';
      const size_t begin = made.phonemes.size();
      made.phonemes += word;
      if (!word.empty())
        made.words.push_back({{source_offset + i, source_offset + i + word.size()},
                              {begin, made.phonemes.size()},
                              g2p::WordKind::kLexicon});
      if (!mark.empty()) {
        made.phonemes += mark;
        made.words.push_back({{source_offset + end - 1, source_offset + end},
                              {made.phonemes.size() - 1, made.phonemes.size()},
                              g2p::WordKind::kPunctuation});
      }
      i = end + 1;
    }
    return made;
  }

  Status synthesize(std::span<const int32_t> ids, size_t symbols, uint64_t seed, int64_t /*due_ns*/,
                    const std::function<bool()>& /*is_wanted*/, kokoro::PieceOutput& output) override {
    const Stopwatch asked;
    log_->asked = true;
    while (log_->hold) std::this_thread::yield();
    waited_ms_ += asked.elapsed_ms();
    if (ids.size() > log_->most_ids) return fail(Code::kLimitExceeded, "a piece of too many seconds");
    ++log_->synthesized;
    EXPECT_GE(symbols, ids.size());
    output.durations.assign(ids.size() + 2, kFrames);
    output.durations.front() = kLeadFrames;
    output.durations.back() = kTrailFrames;
    output.samples.clear();
    const float level = 0.1f + voice_level_ + static_cast<float>(seed % 97) / 1000.0f;
    for (size_t i = 0; i < output.durations.size(); ++i) {
      const bool silent = i == 0 || i + 1 == output.durations.size();
      output.samples.resize(output.samples.size() + static_cast<size_t>(output.durations[i]) * kokoro::kSamplesPerFrame,
                            silent ? 0.0f : level);
    }
    return {};
  }

  // As if another session spoke while it is held.
  double waited_ms() const override { return waited_ms_; }

 private:
  std::shared_ptr<Log> log_;
  float voice_level_ = 0;
  double waited_ms_ = 0;
};

inline std::unique_ptr<SpeechSession> session(std::shared_ptr<Log> log = std::make_shared<Log>(),
                                              const SpeakOptions& options = {}) {
  return std::make_unique<SpeechSession>(
      std::make_unique<KokoroSpeaker>(std::make_unique<SpellingMaker>(std::move(log)), options));
}

struct Heard {
  std::vector<float> samples;
  std::vector<WordTime> words;
  size_t chunks = 0;
  Status status;
};

// `heard_s`: what the caller has taken already.
inline Heard hear(SpeechSession& speech, double heard_s = 0) {
  Heard heard;
  for (;;) {
    auto chunk = speech.next();
    if (!chunk) {
      heard.status = tl::unexpected(chunk.error());
      return heard;
    }
    if (!*chunk) return heard;
    EXPECT_NEAR((*chunk)->start_s, heard_s + static_cast<double>(heard.samples.size()) / 24000.0, 1e-9);
    heard.samples.insert(heard.samples.end(), (*chunk)->samples.begin(), (*chunk)->samples.end());
    heard.words.insert(heard.words.end(), (*chunk)->words.begin(), (*chunk)->words.end());
    ++heard.chunks;
  }
}

inline Heard speak(std::string_view text, const SpeakOptions& options = {}) {
  auto speech = session(std::make_shared<Log>(), options);
  EXPECT_TRUE(speech->speak(text));
  return hear(*speech);
}

}  // namespace syrinx
