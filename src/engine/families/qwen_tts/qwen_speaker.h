// Speaks with Qwen3-TTS: sentences become pieces of text, pieces frames of 80 ms, which are handed over in chunks: the
// first frame at once, then 2, 4 and up to 8 of them as the listener has more ahead.  Several speakers share the
// engine's team: frames that are asked for at the same time are computed together.
//
// Text that runs beside the sound is given to the model while it arrives (running_text.h): a piece begins with its
// first kBegunTokens, if these came as fast as their frames are heard, and where its frames have caught up with the
// text, the stream waits for as many more.  Of a sentence that has begun behind a whole one the stream has nothing
// before that: if text rests or a listener waits, the piece still ends before it.  Slow text, for which a listener
// would wait within words, is spoken by whole sentences.  Samples do not depend on when text came, unless it is slow or
// rests.
//
// With QwenSettings::carry_seconds, a piece that the model ended, and that is no longer, stands with its text and codes
// behind the voice's reference in front of the next one, whose sound goes on behind it.
//
// Frames that SpeechGuard holds back are handed over with those behind them, or never.  A piece that was cut before
// much of it was said is spoken once more with other draws, unless all of them are the likeliest.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/families/qwen_tts/frame_pool.h"
#include "engine/families/qwen_tts/piece_planner.h"
#include "engine/families/qwen_tts/qwen_model.h"
#include "engine/families/qwen_tts/qwen_settings.h"
#include "engine/families/qwen_tts/qwen_voice.h"
#include "engine/families/qwen_tts/running_text.h"
#include "engine/speech/piece_meter.h"
#include "engine/speech/sentence_speaker.h"

namespace syrinx {

class QwenSpeaker final : public SentenceSpeaker {
 public:
  static constexpr size_t kChunksAhead = 4;  // up to 2.5 s
  static constexpr size_t kBegunTokens = 8;
  static constexpr uint32_t kSecondTry = uint32_t{1} << 31;  // with a piece's number: its draws

  // The voice of that name; nothing: the session's first.
  using FindVoice = std::function<Result<std::shared_ptr<const QwenVoice>>(const std::string& name)>;

  // `instructions`: their tokens.  `find_voice` keeps alive what the lease uses.  Without a voice the first one is
  // looked for when a sentence comes before a mark that names another.
  QwenSpeaker(FindVoice find_voice, std::shared_ptr<const QwenModel> model, qwen_tts::FramePool::Lease stream,
              std::shared_ptr<const QwenVoice> voice, QwenSettings settings, std::vector<int32_t> instructions,
              const SpeakOptions& options);
  size_t chunks_ahead() const override { return kChunksAhead; }
  int rate_hz() const override { return QwenModel::kSampleRateHz; }

 private:
  Status read(const Sentence& sentence, SpeechStream& stream) override;
  Result<bool> hear_begun(std::string_view text, size_t offset, SpeechStream& stream) override;
  Result<bool> say(bool now, SpeechStream& stream) override;
  Status end() override;
  Status use_voice(const std::string& name) override;
  void be_silent(size_t /*samples*/) override {}

  bool may_try_again(FinishReason reason) const;
  Status hear(std::string_view text, size_t offset, bool ended, SpeechStream& stream);
  Result<bool> next_piece(bool now, int64_t now_ns);
  bool has_begun() const;
  bool outruns_text(int64_t took_ns) const;
  std::span<const int32_t> tokens() const { return settings_.text_first ? whole_ : running_.piece().tokens; }
  Result<qwen_tts::FramePool::Made> speak_piece(uint32_t number, SpeechStream& stream);
  Status begin(uint32_t number, SpeechStream& stream);
  size_t most_frames(size_t tokens) const;
  size_t carried_frames() const;
  void carry(FinishReason reason);
  Status take_arrived(SpeechStream& stream);
  Status follow_text(SpeechStream& stream);
  Status await_text(size_t count, SpeechStream& stream);
  Status take_text(std::optional<std::chrono::milliseconds> limit, SpeechStream& stream);
  void give_text();
  size_t least_tokens() const;
  enum class Ask : uint8_t { kFrame, kWaiting };  // of the pool: another frame, or the sound of those that wait
  Result<qwen_tts::FramePool::Made> make(Ask ask, SpeechStream& stream);
  Status hand_over(size_t held, SpeechStream& stream);
  size_t chunk_frames(const SpeechStream& stream) const;
  double frames_per_second() const;

  const FindVoice find_voice_;
  const std::shared_ptr<const QwenModel> model_;
  qwen_tts::FramePool::Lease stream_;
  std::shared_ptr<const QwenVoice> voice_;  // null: not looked for yet
  const QwenSettings settings_;
  const std::vector<int32_t> instructions_;
  qwen_tts::PiecePlanner planner_;
  std::vector<int32_t> whole_;  // the piece, of a text that stands before the sound
  qwen_tts::RunningText running_;
  int64_t text_began_ns_ = 0, text_came_ns_ = 0;  // the first and the last of the piece's text
  size_t times_heard_ = 0;                        // text
  bool text_is_slow_ = false;                     // until a piece is there as a whole
  // The reference of the next piece: the voice's, and behind it the piece before.  Without codes there is none.
  struct Reference {
    std::vector<int32_t> words, codes;
    std::optional<qwen_tts::CodecDecoderState> sound;
  };
  std::optional<Reference> carried_;
  std::span<const int32_t> reference_words() const { return carried_ ? carried_->words : voice_->words; }
  std::span<const int32_t> reference_codes() const { return carried_ ? carried_->codes : voice_->codes; }
  size_t given_ = 0;         // tokens of the piece that the stream has
  bool text_ended_ = false;  // it has all of them
  SpeechChunk chunk_;        // that is being filled
  size_t chunk_frames_ = 0;  // when it is complete; 0: not decided
  size_t last_frames_ = 0;   // of the chunk before, 0: none
  uint32_t pieces_ = 0;
  size_t piece_frames_ = 0;  // of the piece that were handed over, in both tries
  size_t first_frames_ = 0;  // of them, in the first one
  size_t left_out_ = 0;      // that have been told
  bool said_something_ = false;
  PieceMeter meter_{QwenModel::kSampleRateHz};
};

}  // namespace syrinx
