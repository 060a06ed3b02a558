// An engine that speaks as a test tells it to.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/speech/speech_engine.h"

namespace syrinx::server {

// Actions behind `chunks` chunks of 80 ms each.
struct Act {
  size_t chunks = 1, chunk_samples = 1920;
  std::function<Status()> end = [] { return Status(); };
  std::function<void()> step = [] {};  // what making each of them takes
  FinishCounts finished = {};          // what it then says that it has spoken
  size_t retried_pieces = 0;
  PieceSpread spread = {};
  std::function<float(size_t)> wave = [](size_t /*sample*/) { return 0.1f; };
};

class ActingSpeaker final : public Speaker {
 public:
  explicit ActingSpeaker(Act act) : act_(std::move(act)) {}
  size_t chunks_ahead() const override { return 2; }
  int rate_hz() const override { return 24000; }
  Status speak(SpeechStream& stream) override {
    std::string text;  // before there is any, nobody may have been able to cancel it
    SYRINX_TRY_VOID(stream.take_text(std::nullopt, text));
    for (size_t i = 0; i < act_.chunks; ++i) {
      act_.step();
      SpeechChunk chunk = stream.spare();
      chunk.samples.resize(act_.chunk_samples);
      for (size_t at = 0; at < act_.chunk_samples; ++at) chunk.samples[at] = act_.wave(i * act_.chunk_samples + at);
      SYRINX_TRY_VOID(stream.hand_over(std::move(chunk)));
    }
    SpeechStatistics more;
    more.finished = act_.finished;
    more.retried_pieces = act_.retried_pieces;
    more.spread = act_.spread;
    stream.account(more);
    return act_.end();
  }

 private:
  const Act act_;
};

class ActingEngine : public SpeechEngine {
 public:
  Result<std::unique_ptr<SpeechSession>> start(const SpeakOptions& options) override {
    asked_for.push_back(options.voice);
    if (before) before();
    if (refusal) return tl::unexpected(*refusal);
    return std::make_unique<SpeechSession>(std::make_unique<ActingSpeaker>(act));
  }
  Status add_voice(const std::string& /*name*/, std::span<const std::byte> /*content*/) override { return {}; }
  bool clones() const override { return true; }
  void remove_voice(const std::string& /*name*/) override {}
  Result<std::string> export_voice(const std::string& /*voice*/) override { return std::string(); }
  const std::string& name() const override { return none_; }
  int rate_hz() const override { return 24000; }
  Precision precision() const override { return Precision::kF32; }
  int threads() const override { return 1; }
  double load_ms() const override { return 0; }
  const std::string& default_voice() const override { return none_; }
  StepFigures steps() const override { return figures; }
  size_t waiting() const override { return waits; }

  Act act;
  std::function<void()> before;
  std::optional<Error> refusal;  // whatever it is asked for
  std::vector<std::string> asked_for;
  StepFigures figures;
  size_t waits = 0;

 private:
  const std::string none_;
};

}  // namespace syrinx::server
