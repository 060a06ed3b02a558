// Whisper behind the recogniser's interface: recordings in the pieces that voice activity finds, streams by decoding
// the sound so far again and again (whisper_stream.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "base/thread_team.h"
#include "engine/recognition/recogniser.h"
#include "engine/recognition/speech_gate.h"
#include "engine/schedule/compute.h"
#include "models/whisper/transcriber.h"

namespace syrinx {

class WhisperRecogniser final : public Recogniser, public std::enable_shared_from_this<WhisperRecogniser> {
 public:
  static constexpr Precision kDefaultPrecision = Precision::kInt8;
  // Hypotheses of the search where nobody says; 0: greedy.
  static constexpr size_t kRecordingBeam = whisper::kUsualBeam, kStreamBeam = 0;
  static constexpr size_t kMaxPromptBytes = size_t{16} << 10;
  static constexpr double kLanguageSeconds = 3;  // a "hm" is taken for many a language, and is not kept

  // options.threads has been chosen.  Where no voice activity model is installed, all sound is heard.
  static Result<std::shared_ptr<Recogniser>> load(const RecogniserOptions& options);

  Result<Transcript> transcribe(std::span<const float> samples, const TranscribeOptions& options,
                                const Progress& progress) override;
  Result<std::unique_ptr<RecognitionStream>> start(const TranscribeOptions& options) override;
  Status check_stream(const TranscribeOptions& options) const override;
  Status check_recording(const TranscribeOptions& options) const override;
  bool hears_streams_as_recordings() const override { return false; }

  const std::string& name() const override { return files_.name; }
  Precision precision() const override { return model_->precision(); }
  int threads() const override { return team_.size(); }
  std::vector<std::string> languages() const override;
  std::shared_ptr<const silero::SileroVad> voice_activity() const override { return gate_ ? gate_->vad() : nullptr; }
  Frames frames_of(size_t samples) const override;
  double load_ms() const override { return load_ms_; }
  double warm_up_ms() const override { return warm_up_ms_; }
  StepFigures steps() const override { return queue_.steps(); }
  size_t waiting() const override { return windows_.waiting() + queue_.waiting(); }
  Scheduler& scheduler() { return compute_->scheduler(); }

  // Null where no voice activity model is installed.
  const SpeechGate* gate() const { return gate_ ? &*gate_ : nullptr; }
  // Of the model's tokens; any thread.
  const whisper::Vocabulary& vocabulary() const { return *vocabulary_; }
  // The caller that has the transcriber, and those that wait for it.  Any thread.
  uint64_t asking() const { return windows_.asking(); }
  // One caller at a time, whose work is due first: `use` is called with the transcriber while others wait.
  template <class Use>
  void with_transcriber(int64_t due_ns, Use&& use) {
    with_transcriber(due_ns, {}, use);
  }
  // The same for a caller that may leave meanwhile (TranscribeOptions::is_wanted): false when it has, and `use` was not
  // called.  `use` may take the turn of the team besides.
  template <class Use>
  bool with_transcriber(int64_t due_ns, const std::function<bool()>& is_wanted, Use&& use) {
    const StepQueue::Turn window(windows_, due_ns, is_wanted);
    if (!window.is_mine()) return false;
    StepQueue::Turn turn(queue_, due_ns, is_wanted, &window_line_);
    if (!turn.is_mine()) return false;
    const Between between(*transcriber_, [&] { turn.give_way(window_line_.sooner(due_ns)); });
    if constexpr (std::is_invocable_v<Use, whisper::Transcriber&, StepQueue::Turn&>)
      use(*transcriber_, turn);
    else
      use(*transcriber_);
    return true;
  }

 private:
  // While it lives, others may have the team between two jobs of the transcriber, which goes on as early as the first
  // caller that waits for it.
  class Between {
   public:
    Between(whisper::Transcriber& transcriber, const whisper::BetweenJobs& between) : transcriber_(transcriber) {
      transcriber_.set_between(between);
    }
    ~Between() { transcriber_.set_between({}); }
    Between(const Between&) = delete;
    Between& operator=(const Between&) = delete;

   private:
    whisper::Transcriber& transcriber_;
  };

  WhisperRecogniser(std::shared_ptr<const whisper::Model> model, const RecogniserOptions& options);
  struct StreamRules {
    whisper::TranscriberSettings settings;
    std::optional<silero::SegmentOptions> voice;
    EndpointOptions endpoints;
  };
  static size_t usual_beam(const TranscribeOptions& options) { return options.is_live ? kStreamBeam : kRecordingBeam; }
  Result<whisper::TranscriberSettings> settings_of(const TranscribeOptions& options, size_t usual_beam) const;
  Status set_search(const Knobs& knobs, size_t usual_beam, whisper::DecodeSettings& decode) const;
  Result<StreamRules> stream_rules(const TranscribeOptions& options) const;
  Status hear_piece(const SpeechPiece& piece, std::span<const float> samples, whisper::TranscriberSettings& settings,
                    const TranscribeOptions& options, const Progress& progress, Transcript& transcript);

  const RecognitionFiles files_;
  const std::shared_ptr<const whisper::Model> model_;
  std::shared_ptr<const whisper::Vocabulary> vocabulary_;
  std::optional<SpeechGate> gate_;
  double load_ms_ = 0, warm_up_ms_ = 0;

  Scheduler window_line_;
  StepQueue windows_{window_line_};  // for the transcriber; a turn is taken before the team's
  const std::shared_ptr<Compute> compute_;
  StepQueue queue_;
  ThreadTeam team_;
  std::unique_ptr<whisper::Transcriber> transcriber_;
};

// A segment as the interface gives it: text and words without blanks around them, tokens of text alone; where `bpe` is
// given, with times of tokens in its words.
TranscriptSegment transcript_segment(const whisper::Segment& segment, const whisper::Tokens& tokens,
                                     const text::ByteBpe* bpe = nullptr);

}  // namespace syrinx
