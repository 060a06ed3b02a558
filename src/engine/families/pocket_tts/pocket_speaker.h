// Speaks with Pocket TTS: sentences become chunks of text, chunks frames of 80 ms, each handed over as soon as it is
// computed.  Several speakers share the engine's team: frames that are asked for at the same time are computed
// together.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/families/pocket_tts/synthesizer.h"
#include "engine/speech/sentence_speaker.h"
#include "models/pocket_tts/chunk_planner.h"

namespace syrinx {

class PocketSpeaker final : public SentenceSpeaker {
 public:
  static constexpr size_t kFramesAhead = 25;  // 2 s

  // The voice of that name; nothing: the session's first.
  using FindVoice = std::function<Result<pocket::VoiceState>(const std::string& name)>;

  // `find_voice` keeps alive what the synthesizer uses.  A synthesizer without a voice is given the first one when a
  // sentence comes before a mark that names another.
  PocketSpeaker(FindVoice find_voice, std::unique_ptr<pocket::Synthesizer> synthesizer, pocket::ChunkPlanner planner,
                bool has_voice, const SpeakOptions& options);
  size_t chunks_ahead() const override { return kFramesAhead; }
  int rate_hz() const override { return pocket::kSampleRateHz; }

 private:
  Status read(const Sentence& sentence, SpeechStream& stream) override;
  Result<bool> say(bool now, SpeechStream& stream) override;
  Status end() override;
  Status use_voice(const std::string& name) override;
  void be_silent(size_t /*samples*/) override {}

  Result<std::optional<pocket::Chunk>> next_chunk(bool now, SpeechStream& stream);
  Status begin(const pocket::Chunk& chunk, SpeechStream& stream);
  Result<bool> say_frame(SpeechStream& stream);
  void account_since(const Stopwatch& watch, double waited_ms, SpeechStream& stream) const;

  const FindVoice find_voice_;
  const std::unique_ptr<pocket::Synthesizer> synthesizer_;
  pocket::ChunkPlanner planner_;
  bool has_voice_;     // the synthesizer
  SpeechChunk frame_;  // that is being filled
  bool said_something_ = false;
};

}  // namespace syrinx
