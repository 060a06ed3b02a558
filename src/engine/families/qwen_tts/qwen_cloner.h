// Makes voices for Base of recordings: the speaker encoder's vector, and where the words of a recording are known its
// codes, behind which speech goes on (spec qwen3-tts.md, sections 2.4 and 5.3).  The codec then goes on behind the last
// kSoundFrames of them, as the maker's decoding in chunks does.
//
// Any thread; one voice at a time, in turns of the pool's queue that give way to frames of those who speak.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/thread_team.h"
#include "engine/families/qwen_tts/frame_pool.h"
#include "engine/families/qwen_tts/qwen_model.h"
#include "engine/families/qwen_tts/qwen_voice.h"
#include "models/qwen_tts/voice_cloner.h"
#include "nn/runner.h"

namespace syrinx {

class QwenCloner {
 public:
  static constexpr size_t kSoundFrames = 25;

  // The model is of the kind base.  Pool and team are borrowed.  Errors of the encoders' weights.
  static Result<std::unique_ptr<QwenCloner>> make(std::shared_ptr<const QwenModel> model, qwen_tts::FramePool& pool,
                                                  ThreadTeam& team, ThreadTeam& packers);

  // `content`: a recording, or a voice that write_qwen_voice() wrote.  `words`: what is said in a recording; empty: not
  // known, and then it is the voice alone that is taken.  `name` stands in messages.  Errors of parse_qwen_voice(),
  // read_reference(), of the encoders and the tokenizer.
  Result<std::shared_ptr<const QwenVoice>> make_voice(std::span<const std::byte> content, const std::string& words,
                                                      const std::string& name, int64_t due_ns);

 private:
  QwenCloner(std::shared_ptr<const QwenModel> model, qwen_tts::FramePool& pool, ThreadTeam& team)
      : model_(std::move(model)), pool_(pool), runner_(team) {}
  Status load(ThreadTeam& packers);
  Result<QwenVoice> clone(std::span<const std::byte> recording, const std::string& words, const std::string& name,
                          int64_t due_ns);
  void sound_out(QwenVoice& voice, int64_t due_ns);

  const std::shared_ptr<const QwenModel> model_;
  qwen_tts::FramePool& pool_;
  std::mutex mutex_;
  nn::Runner runner_;
  std::optional<qwen_tts::VoiceCloner> cloner_;
};

}  // namespace syrinx
