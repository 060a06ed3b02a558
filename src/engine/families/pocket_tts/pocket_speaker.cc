#include "engine/families/pocket_tts/pocket_speaker.h"

#include <utility>

namespace syrinx {

PocketSpeaker::PocketSpeaker(FindVoice find_voice, std::unique_ptr<pocket::Synthesizer> synthesizer,
                             pocket::ChunkPlanner planner, bool has_voice, const SpeakOptions& options)
    : SentenceSpeaker(options),
      find_voice_(std::move(find_voice)),
      synthesizer_(std::move(synthesizer)),
      planner_(std::move(planner)),
      has_voice_(has_voice) {}

// A longer voice leaves less room for a chunk.
Status PocketSpeaker::use_voice(const std::string& name) {
  SYRINX_TRY(pocket::VoiceState voice, find_voice_(name));
  SYRINX_TRY_VOID(synthesizer_->use_voice(std::move(voice)));
  planner_.set_max_chunk_tokens(synthesizer_->max_chunk_tokens());
  has_voice_ = true;
  return {};
}

Status PocketSpeaker::read(const Sentence& sentence, SpeechStream& /*stream*/) {
  if (!has_voice_) SYRINX_TRY_VOID(use_voice(""));
  planner_.add(sentence.text, sentence.offset);
  return {};
}

Result<bool> PocketSpeaker::say(bool now, SpeechStream& stream) {
  SYRINX_TRY(const std::optional<pocket::Chunk> chunk, next_chunk(now, stream));
  if (!chunk) return false;
  SYRINX_TRY_VOID(begin(*chunk, stream));
  for (;;) {
    SYRINX_TRY(const bool spoken, say_frame(stream));
    if (!spoken) break;
  }
  SpeechStatistics more;
  more.pieces = 1;
  more.finished.add(synthesizer_->end().limited() ? FinishReason::kLength : FinishReason::kSpoken);
  stream.account(more);
  return true;
}

Result<std::optional<pocket::Chunk>> PocketSpeaker::next_chunk(bool now, SpeechStream& stream) {
  SYRINX_TRY_VOID(stream.go_on());
  const Stopwatch watch(stream.clock());
  const size_t left_out = planner_.left_out();
  SYRINX_TRY(std::optional<pocket::Chunk> chunk, planner_.next(now));
  SpeechStatistics more;
  more.dropped_characters = planner_.left_out() - left_out;
  more.compute_ms = watch.elapsed_ms();
  stream.account(more);
  return chunk;
}

// Adds the synthesizer's work since it had waited `waited_ms` for others.
void PocketSpeaker::account_since(const Stopwatch& watch, double waited_ms, SpeechStream& stream) const {
  SpeechStatistics more;
  more.waiting_ms = synthesizer_->waited_ms() - waited_ms;
  more.compute_ms = watch.elapsed_ms() - more.waiting_ms;
  stream.account(more);
}

Status PocketSpeaker::begin(const pocket::Chunk& chunk, SpeechStream& stream) {
  SYRINX_TRY_VOID(stream.go_on());
  const Stopwatch watch(stream.clock());
  const double waited_ms = synthesizer_->waited_ms();
  synthesizer_->ask_first([&stream] { return !stream.is_cancelled(); });
  SYRINX_TRY_VOID(synthesizer_->begin(chunk, stream.due_ns()));
  account_since(watch, waited_ms, stream);
  return {};
}

// False at the end of the chunk.
Result<bool> PocketSpeaker::say_frame(SpeechStream& stream) {
  // A frame that was not filled at the end of the last chunk is still here.
  if (frame_.samples.empty()) frame_ = stream.spare();
  frame_.samples.resize(synthesizer_->frame_samples());
  SYRINX_TRY_VOID(stream.go_on());
  const Stopwatch watch(stream.clock());
  const double waited_ms = synthesizer_->waited_ms();
  const bool spoken = synthesizer_->next(frame_.samples, stream.due_ns());
  account_since(watch, waited_ms, stream);
  if (!spoken) {
    SYRINX_TRY_VOID(stream.go_on());
    return false;
  }
  if (synthesizer_->faulty())
    return fail(Code::kDataLoss,
                "the model computed values that are not numbers; its weights or the voice are damaged");
  said_something_ = true;
  SYRINX_TRY_VOID(stream.hand_over(std::exchange(frame_, {})));
  return true;
}

Status PocketSpeaker::end() {
  if (said_something_) return {};
  return fail(Code::kInvalidArgument,
              "there is nothing to say: the text holds no word that the model's vocabulary spells");
}

}  // namespace syrinx
