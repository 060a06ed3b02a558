// FastConformer and Conformer models of NeMo behind the interface of all recognisers.
//
// A recording is heard in pieces: what voice activity leaves of it, or, without that, up to two minutes at once, cut
// where it is quiet.  A stream of a cache-aware model is decoded chunk by chunk as it comes, that of another one in
// windows (transducer_frames.h); either way its text only grows, so partial results never take anything back.  Chunks
// of several streams that have come at the same time share a step (chunk_pool.h).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "base/thread_team.h"
#include "engine/families/transducer/chunk_pool.h"
#include "engine/families/transducer/transducer_frames.h"
#include "engine/recognition/recogniser.h"
#include "engine/recognition/speech_gate.h"
#include "engine/schedule/compute.h"
#include "engine/schedule/heartbeat.h"
#include "engine/schedule/scheduler.h"
#include "models/transducer/beam.h"
#include "models/transducer/boost_tree.h"
#include "models/transducer/encoder.h"
#include "models/transducer/head_decoder.h"
#include "models/transducer/model.h"
#include "models/transducer/stream_encoder.h"
#include "nn/runner.h"

namespace syrinx {

class TransducerRecogniser final : public Recogniser, public std::enable_shared_from_this<TransducerRecogniser> {
 public:
  static constexpr Precision kDefaultPrecision = Precision::kInt8;
  static constexpr double kMaxPieceS = 120;

  // options.threads has been chosen.
  static Result<std::shared_ptr<Recogniser>> load(RecogniserOptions options);

  Result<Transcript> transcribe(std::span<const float> samples, const TranscribeOptions& options,
                                const Progress& progress) override;
  Result<std::unique_ptr<RecognitionStream>> start(const TranscribeOptions& options) override;
  Status check_stream(const TranscribeOptions& options) const override;
  Status check_recording(const TranscribeOptions& options) const override;
  // Each frame of a cache-aware one is the recording's, computed once, but for another look-ahead than a recording's,
  // which is the model's first; windows see less.
  bool hears_streams_as_recordings() const override {
    return pool_ != nullptr && pool_->context() == model_->config().encoder.contexts.front();
  }

  const std::string& name() const override { return files_.name; }
  Precision precision() const override { return model_->precision(); }
  int threads() const override { return team_.size(); }
  std::vector<std::string> languages() const override;
  std::shared_ptr<const silero::SileroVad> voice_activity() const override { return gate_ ? gate_->vad() : nullptr; }
  Frames frames_of(size_t samples) const override;
  double load_ms() const override { return load_ms_; }
  double warm_up_ms() const override { return warm_up_ms_; }
  StepFigures steps() const override { return queue_.steps(); }
  size_t waiting() const override {
    return recordings_.waiting() + queue_.waiting() + (pool_ != nullptr ? pool_->waiting_behind() : 0) +
           (windows_ != nullptr ? windows_->line.waiting() : 0);
  }
  // Since it was loaded; none where it was asked for none.  Any thread.
  uint64_t heartbeats() const { return heartbeat_ != nullptr ? heartbeat_->beats() : 0; }

 private:
  friend class TransducerStream;
  using Tree = std::shared_ptr<const transducer::BoostTree>;
  using Prompt = std::optional<size_t>;  // a row of the table of languages, where the model has one
  struct StreamRules {
    Tree boost = {};                                   // null: nothing is favoured
    bool words = false, tokens = false;                // their times are told; tokens': with words' alone
    std::optional<silero::SegmentOptions> voice = {};  // where the recogniser has a gate: what counts as speech
    EndpointOptions endpoints = {};
    Prompt prompt = {};  // of models that are told a language
  };
  // One of the streams that there may be at once, given back at its end; borrows the count.
  class StreamPlace {
   public:
    static std::optional<StreamPlace> take(std::atomic<size_t>& taken, size_t most) {
      size_t before = taken.load(std::memory_order_relaxed);
      do {
        if (before >= most) return std::nullopt;
      } while (!taken.compare_exchange_weak(before, before + 1, std::memory_order_relaxed));
      return StreamPlace(taken);
    }
    StreamPlace(StreamPlace&& other) noexcept : taken_(std::exchange(other.taken_, nullptr)) {}
    StreamPlace& operator=(StreamPlace&&) = delete;
    ~StreamPlace() { give_back(); }
    void give_back() {
      if (taken_ != nullptr) taken_->fetch_sub(1, std::memory_order_relaxed);
      taken_ = nullptr;
    }

   private:
    explicit StreamPlace(std::atomic<size_t>& taken) : taken_(&taken) {}

    std::atomic<size_t>* taken_;
  };

  // What a recording's encoder is told, and how its labels are looked for; nothing of it: greedily.
  struct Search {
    Prompt prompt;
    Tree boost;
    std::unique_ptr<transducer::BeamDecoder> beam;
  };

  // What streams in windows have beside the recordings' own, which may give way to them at any block or frame.
  struct Windows {
    Windows(const transducer::Model& model, nn::Runner& runner);
    Scheduler waiting;
    StepQueue line{waiting};
    transducer::Encoder encoder;
    transducer::HeadDecoder decoder;
    SoundRoom room;
  };

  // `context`: of streams, where the model is cache-aware.
  TransducerRecogniser(std::shared_ptr<const transducer::Model> model, std::optional<SpeechGate> gate,
                       std::optional<transducer::AttentionContext> context, std::optional<StreamWindow> window,
                       RecogniserOptions options);
  Status check(const TranscribeOptions& options) const;
  Result<Prompt> prompt_of(const TranscribeOptions& options) const;
  Result<Tree> boost_tree(const TranscribeOptions& options) const;
  Result<Search> search_of(const TranscribeOptions& options);
  Result<StreamRules> stream_rules(const TranscribeOptions& options) const;
  Result<std::vector<SpeechPiece>> pieces(std::span<const float> sound,
                                          const std::optional<silero::SegmentOptions>& voice,
                                          const std::function<bool()>& is_wanted);
  Status hear(const SpeechPiece& piece, std::span<const float> sound, const Search& search,
              const TranscribeOptions& options, const transducer::BetweenJobs& between, Transcript& transcript);
  Result<std::vector<transducer::Emission>> decode(View<const float, 2> frames, const Search& search,
                                                   const transducer::BetweenJobs& between);
  std::unique_ptr<FrameSource> frame_source(LabelTrack& track, Prompt prompt);
  WindowTools window_tools();
  Status warm_up();
  double beat();
  void note_work() {
    if (heartbeat_ != nullptr) heartbeat_->note();
  }

  const RecognitionFiles files_;
  const std::shared_ptr<const transducer::Model> model_;
  const std::optional<SpeechGate> gate_;
  const size_t max_streams_;
  const StreamWindow window_;
  double load_ms_ = 0, warm_up_ms_ = 0;
  std::atomic<size_t> streams_{0};

  // A piece of a recording keeps what is its own while its turn is another's: recordings take turns at that, too.
  Scheduler recording_line_;
  StepQueue recordings_{recording_line_};  // for encoder_, decoder_ and room_; a turn is taken before the team's
  const std::shared_ptr<Compute> compute_;
  StepQueue queue_;  // for the team, the runner and windows_
  ThreadTeam team_;
  nn::Runner runner_;
  transducer::Encoder encoder_;
  transducer::HeadDecoder decoder_;
  SoundRoom room_;
  std::unique_ptr<ChunkPool> pool_;       // takes its own turns; null for models that are not cache-aware,
  std::unique_ptr<Windows> windows_;      // which have these
  std::unique_ptr<Heartbeat> heartbeat_;  // last, as it uses all of these; null where none was asked for
};

// Where a recording without voice activity is cut: pieces of at most `most` samples, each ending in the quietest tenth
// of a second of its last quarter.
std::vector<SpeechPiece> quiet_pieces(std::span<const float> sound, size_t most);

}  // namespace syrinx
