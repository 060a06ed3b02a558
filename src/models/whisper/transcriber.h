// A whole sound to segments of text (spec whisper.md, sections 1, 5 and 6): log-mel, window after window through
// encoder and decoder, times, words.  One thread at a time; shares the model, borrows the team.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/whisper/encoder.h"
#include "models/whisper/features.h"
#include "models/whisper/window_decoder.h"

namespace syrinx::whisper {

struct TranscriberSettings {
  const Language* language = nullptr;  // null: found out from the first window
  bool translate = false;              // into English
  bool words = false;                  // times of words, by which windows and segments are cut, too
  bool words_aside = false;            // the same times, while windows and segments are as without
  // hear() encodes the sound with a second of silence behind it, and at least 10 s, in place of 30 s; all 30 s where
  // the text has failed then.  A third of the time for short sounds, which the model was not trained on.
  bool short_windows = false;
  DecodeSettings decode;
  LongFormSettings long_form;
};

// The vocabulary that lies beside a model: tokenizer.json, else vocabulary.txt.
struct Vocabulary {
  text::ByteBpe bpe;
  Tokens tokens;

  // kNotFound where neither file is there; errors of their readers and of find_tokens().
  static Result<std::shared_ptr<const Vocabulary>> load(const Model& model);
};

// The transcript of one window.
struct HeardWindow {
  Segment segment;             // all of its text and words, with times from the beginning of the window
  std::vector<double> ends_s;  // of the segments that were finished in it
};

class Transcriber {
 public:
  // Called after each window with the seconds done; false stops.
  using Progress = std::function<bool(double done_s)>;

  static Result<std::unique_ptr<Transcriber>> create(std::shared_ptr<const Model> model,
                                                     std::shared_ptr<const Vocabulary> vocabulary, ThreadTeam& team);

  // Mono, 16 kHz, any length; shorter than 10 ms gives nothing.  kUnsupported for a translation by a model that knows
  // English alone, kCancelled when `progress` says so.
  Result<std::vector<Segment>> transcribe(std::span<const float> samples, const TranscriberSettings& settings,
                                          const Progress& progress = {});

  // The same of one window, of which 30 s are heard at most: no second window for what was left unfinished, and the
  // words' times always.  `before` is the text that came before, told behind the settings' prompt.  Silence gives no
  // words.
  HeardWindow hear(std::span<const float> samples, const TranscriberSettings& settings, std::string_view before = {});

  // Runs a window of 30 s and, as hear() takes it, one of 10 s, with a few tokens, so that the first sound does not
  // wait for memory.
  void warm_up();

  // Called from now on between jobs of a few milliseconds, in which the team may do other work; empty: nothing is.
  void set_between(const BetweenJobs& between) {
    between_ = between;
    decoder_->set_between(between);
  }

  // Language of the last recording; null before the first, and for English-only models.
  const Language* language() const { return language_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }

 private:
  Transcriber(std::shared_ptr<const Model> model, std::shared_ptr<const Vocabulary> vocabulary, ThreadTeam& team,
              LogMel log_mel, std::unique_ptr<WindowDecoder> decoder);
  float file_peak(std::span<const float> samples, size_t content_frames);
  void compute_mel(std::span<const float> samples, size_t first_frame, View<float, 2> mel);
  void encode(std::span<const float> samples, const LongForm::Window& window, float peak, size_t frames);
  DecodedWindow decode_short(std::span<const float> samples, const LongForm::Window& window, WindowPrompt& prompt,
                             const TranscriberSettings& settings);
  std::vector<int32_t> prompt_of(const TranscriberSettings& settings, std::string_view before) const;
  void find_language();  // of the window at hand, where it is not known
  std::vector<int32_t> text_of(std::span<const int32_t> ids) const;

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  LogMel log_mel_;
  Encoder encoder_;
  AudioState audio_;
  std::unique_ptr<WindowDecoder> decoder_;
  BetweenJobs between_;
  const Language* language_ = nullptr;
  size_t window_frames_;
  std::vector<float> mel_;      // [window_frames_, mels]
  std::vector<float> scratch_;  // of log_mel_
};

}  // namespace syrinx::whisper
