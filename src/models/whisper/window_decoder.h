// From an encoded window to its tokens (spec whisper.md, section 5; openai/whisper, decoding.py and the fallback of
// transcribe.py): greedy or by a beam at temperature 0, else the best of some samples; hotter as long as the text
// repeats itself or is improbable.  Also the language of a window, and the times of its words.
//
// One thread at a time; shares the model, borrows the team.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "models/whisper/beam_search.h"
#include "models/whisper/decoder.h"
#include "models/whisper/long_form.h"
#include "models/whisper/rules.h"

namespace syrinx::whisper {

inline constexpr size_t kUsualBeam = 5, kUsualBestOf = 5;  // of the maker's command
inline constexpr size_t kMaxBestOf = 16;

struct DecodeSettings {
  std::vector<float> temperatures = {0.0f, 0.2f, 0.4f, 0.6f, 0.8f, 1.0f};  // tried in turn; at least one
  size_t beam = 0;                            // hypotheses at temperature 0, up to BeamSearch::kMaxBeam; 0: greedy
  double patience = 1;                        // of the beam: BeamSearch::wanted() of both must be 1 or more
  size_t best_of = kUsualBestOf;              // samples at temperatures above 0, 1 to kMaxBestOf
  std::optional<double> length_penalty = {};  // 0 to 1, in what hypotheses are compared by; nothing: their mean
  size_t max_tokens = 224;                    // of a window, and at most half of the model's positions
  float compression_ratio_threshold = 2.4f;   // a text above it repeats itself
  float log_probability_threshold = -1.0f;    // a mean below it is improbable
  float no_speech_threshold = 0.6f;           // an improbable text of a window above it is silence, not a failure
  // Voice activity has called the window speech: a first text of some words that is improbable by little stands,
  // whatever no_speech says.  Else it is no silence before all temperatures have failed, and neither is an empty text.
  // Where none of them improves it, such a text, or nothing, stays.
  bool is_speech = false;
  float speech_log_probability_threshold = -1.25f;  // at or above it a first text is improbable by little
  // Ends a window when its text repeats the same tokens three times and already compresses beyond the threshold, which
  // the maker finds out only after all 224 tokens.
  bool stop_loops = true;
  uint64_t seed = 0;  // of the samples; each window and temperature draws from a stream of its own
};

// Text and tokens before a window's own tokens.
struct WindowPrompt {
  std::vector<int32_t> previous;       // text before, less than half of the model's positions
  const Language* language = nullptr;  // not for English-only models
  bool translate = false;
  bool timestamps = true;
};

class WindowDecoder {
 public:
  // `bpe` and `tokens` must outlive it.
  static Result<std::unique_ptr<WindowDecoder>> create(std::shared_ptr<const Model> model, const text::ByteBpe& bpe,
                                                       const Tokens& tokens, ThreadTeam& team);

  // Called from now on behind each step of the decoder; empty: nothing is.
  void set_between(const BetweenJobs& between) {
    between_ = between;
    decoder_->set_between(between);
  }

  // The most probable language; the model must be multilingual.
  const Language& detect_language(const AudioState& audio, float* probability = nullptr);

  // `stream` numbers the window, for the samples' random numbers.  Memory grows for more hypotheses than before, which
  // DecoderState::check() must allow.
  DecodedWindow decode(const AudioState& audio, const WindowPrompt& prompt, const DecodeSettings& settings,
                       uint64_t stream);

  // The words of a window's text tokens with their times, and their tokens', from its beginning; the window holds
  // `frames` of mel.
  std::vector<Word> time_words(const AudioState& audio, const WindowPrompt& prompt, std::span<const int32_t> text_ids,
                               size_t frames);

 private:
  WindowDecoder(std::shared_ptr<const Model> model, const text::ByteBpe& bpe, const Tokens& tokens, ThreadTeam& team,
                DecoderState state);
  void reserve(size_t hypotheses);
  DecodedWindow decode_at(float temperature, const AudioState& audio, const WindowPrompt& prompt,
                          const DecodeSettings& settings, uint64_t stream);
  DecodedWindow search(const AudioState& audio, const WindowPrompt& prompt, const DecodeSettings& settings);
  void find_candidates(const Rules& rules, const View<const float, 2>* logits);
  float read_prompt(const AudioState& audio, const WindowPrompt& prompt);
  void give_way() const {
    if (between_) between_();
  }
  void extend(Sequence& sequence, std::span<float> logits, const Rules& rules, float temperature, Rng& rng);
  bool repeats_itself(const Sequence& sequence, const DecodeSettings& settings) const;
  DecodedWindow finish(const Sequence& sequence, float no_speech, float temperature) const;
  size_t max_tokens(const DecodeSettings& settings) const;
  std::span<float> logits_of(size_t row) {
    const size_t vocabulary = model_->config().vocabulary;
    return std::span(logits_).subspan(row * vocabulary, vocabulary);
  }

  std::shared_ptr<const Model> model_;
  const text::ByteBpe& bpe_;
  const Tokens& tokens_;
  Rules timed_, untimed_;
  std::vector<AlignmentHead> alignment_heads_;
  ThreadTeam& team_;
  BetweenJobs between_;
  std::unique_ptr<Decoder> decoder_;
  DecoderState state_;
  BeamSearch beam_;
  BeamCaches caches_;
  std::vector<Candidate> candidates_;               // [sequences, BeamSearch::candidates()]
  std::vector<DecoderInput> inputs_;                // of a step
  std::vector<float> logits_;                       // [hypotheses, V], masked
  std::vector<float> exponentials_;                 // [V]
  std::vector<float> weights_, log_probabilities_;  // of time_words()
};

// Whether a text repeats itself or is improbable, and its window no silence: it should be decoded again, hotter.
bool has_failed(const DecodedWindow& window, const DecodeSettings& settings);

// Whether the last tokens of `ids` are the same n-gram three times in a row, for any n up to 32.
bool ends_in_loop(std::span<const int32_t> ids);

}  // namespace syrinx::whisper
