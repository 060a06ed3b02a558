#include "engine/families/qwen_tts/qwen_speaker.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace syrinx {
namespace {

using qwen_tts::FramePool;

qwen_tts::PiecePlanner::CountTokens counter(const std::shared_ptr<const QwenModel>& model) {
  return [model](std::string_view text) -> Result<size_t> {
    SYRINX_TRY(const std::vector<int32_t> ids, model->tokenizer().encode(text));
    return ids.size();
  };
}

}  // namespace

QwenSpeaker::QwenSpeaker(FindVoice find_voice, std::shared_ptr<const QwenModel> model, FramePool::Lease stream,
                         std::shared_ptr<const QwenVoice> voice, QwenSettings settings,
                         std::vector<int32_t> instructions, const SpeakOptions& options)
    : SentenceSpeaker(options),
      find_voice_(std::move(find_voice)),
      model_(std::move(model)),
      stream_(std::move(stream)),
      voice_(std::move(voice)),
      settings_(std::move(settings)),
      instructions_(std::move(instructions)),
      planner_(counter(model_), settings_.piece_tokens) {}

double QwenSpeaker::frames_per_second() const {
  return static_cast<double>(rate_hz()) / static_cast<double>(stream_.frame_samples());
}

Status QwenSpeaker::use_voice(const std::string& name) {
  SYRINX_TRY(voice_, find_voice_(name));
  return {};
}

Status QwenSpeaker::read(const Sentence& sentence, SpeechStream& stream) {
  if (voice_ == nullptr) SYRINX_TRY_VOID(use_voice(""));
  const Stopwatch watch(stream.clock());
  SYRINX_TRY_VOID(planner_.add(sentence.text, sentence.offset));
  SpeechStatistics more;
  more.dropped_characters = planner_.left_out() - std::exchange(left_out_, planner_.left_out());
  more.compute_ms = watch.elapsed_ms();
  stream.account(more);
  return {};
}

Result<bool> QwenSpeaker::say(bool now, SpeechStream& stream) {
  SYRINX_TRY_VOID(stream.go_on());
  const std::optional<std::string> piece = planner_.next(now);
  if (!piece) return false;
  const uint32_t number = pieces_++;
  piece_frames_ = 0;
  SYRINX_TRY(FramePool::Made made, speak_piece(*piece, number, stream));
  if (made.spoken_little && may_try_again(made.reason)) {
    SpeechStatistics retried;
    retried.retried_pieces = 1;
    stream.account(retried);
    SYRINX_TRY(made, speak_piece(*piece, number | kSecondTry, stream));
  }
  SpeechStatistics more;
  more.pieces = 1;
  more.finished.add(made.reason);
  stream.account(more);
  return true;
}

// With draws that can be others, unless the user's limit was the reason.
bool QwenSpeaker::may_try_again(FinishReason reason) const {
  if (reason == FinishReason::kLength && settings_.max_seconds) return false;
  return settings_.draws.talker.samples || settings_.draws.predictor.samples;
}

// The last of what was made.
Result<FramePool::Made> QwenSpeaker::speak_piece(const std::string& piece, uint32_t number, SpeechStream& stream) {
  SYRINX_TRY_VOID(begin(piece, number, stream));
  for (;;) {
    SYRINX_TRY(const FramePool::Made made, make_frame(stream));
    if (made.faulty)
      return fail(Code::kDataLoss, "the model computed values that are not numbers; its weights are damaged");
    SYRINX_TRY_VOID(hand_over(made.held, stream));
    if (made.ended) return made;
  }
}

// All that may be heard; the next chunk begins with what may not be yet.
Status QwenSpeaker::hand_over(size_t held, SpeechStream& stream) {
  const size_t kept = held * stream_.frame_samples();
  const size_t most = (qwen_tts::SpeechGuard::kMostHeld + FramePool::kMaxChunk) * stream_.frame_samples();
  if (kept > 0) chunk_.samples.reserve(most);  // what is held grows in the pool's turns
  if (chunk_.samples.size() == kept) return {};
  said_something_ = true;
  piece_frames_ += chunk_.samples.size() / stream_.frame_samples() - held;
  last_frames_ = std::exchange(chunk_frames_, 0);
  SpeechChunk heard = std::exchange(chunk_, {});
  if (kept > 0) {
    chunk_ = stream.spare();
    chunk_.samples.reserve(most);
    chunk_.samples.assign(heard.samples.end() - static_cast<std::ptrdiff_t>(kept), heard.samples.end());
    heard.samples.resize(heard.samples.size() - kept);
  }
  return stream.hand_over(std::move(heard));
}

// One piece's draws are apart from another's by its number.
Status QwenSpeaker::begin(const std::string& piece, uint32_t number, SpeechStream& stream) {
  chunk_frames_ = 0;
  const Stopwatch watch(stream.clock());
  SYRINX_TRY(const std::vector<int32_t> ids, model_->tokenizer().encode(piece));
  SYRINX_TRY(qwen_tts::Prompt prompt, qwen_tts::make_prompt(model_->config(), {.role = model_->tokenizer().role(),
                                                                               .text = ids,
                                                                               .instruction = instructions_,
                                                                               .language = settings_.language,
                                                                               .speaker = voice_->speaker,
                                                                               .voice = voice_->vector,
                                                                               .reference_text = voice_->words,
                                                                               .reference_codes = voice_->codes,
                                                                               .text_first = settings_.text_first}));
  qwen_tts::SpeechSettings settings{.draws = settings_.draws, .seed = settings_.seed, .number = number};
  if (settings_.forced) settings.forced = settings_.forced(number);
  const size_t limit = qwen_tts::SpeechGuard::limit(ids.size(), settings_.max_seconds, frames_per_second());
  settings.draws.max_frames = std::min(
      settings.draws.max_frames, settings_.max_seconds ? std::max(limit, piece_frames_ + 1) - piece_frames_ : limit);
  SYRINX_TRY_VOID(stream_.begin({.prompt = std::move(prompt),
                                 .settings = settings,
                                 .expected_frames = qwen_tts::SpeechGuard::expected_frames(ids.size()),
                                 .codec = voice_->sound ? &*voice_->sound : nullptr}));
  stream_.ask_first([&stream] { return !stream.is_cancelled(); });
  SpeechStatistics more;
  more.compute_ms = watch.elapsed_ms();
  stream.account(more);
  return {};
}

Result<FramePool::Made> QwenSpeaker::make_frame(SpeechStream& stream) {
  SYRINX_TRY_VOID(stream.go_on());
  if (chunk_.samples.empty()) {
    if (chunk_.samples.capacity() == 0) chunk_ = stream.spare();
    chunk_.samples.clear();
  }
  if (stream_.pending() == 0) chunk_frames_ = chunk_frames(stream);
  const Stopwatch watch(stream.clock());
  const double waited_ms = stream_.waited_ms();
  Result<FramePool::Made> made = stream_.next(chunk_frames_, chunk_.samples, stream.due_ns());
  SpeechStatistics more;
  more.waiting_ms = stream_.waited_ms() - waited_ms;
  more.compute_ms = watch.elapsed_ms() - more.waiting_ms;
  stream.account(more);
  return made;
}

// Twice as many as before, as far as the listener has sound for meanwhile, and two at least: one frame alone reads the
// codec's weights for itself.
size_t QwenSpeaker::chunk_frames(const SpeechStream& stream) const {
  if (last_frames_ == 0) return 1;
  const size_t most = std::min(2 * last_frames_, FramePool::kMaxChunk);
  const int64_t due_ns = stream.due_ns();
  if (due_ns == kNeverDue) return most;
  const double ahead_s = static_cast<double>(due_ns - stream.clock().now_ns()) * 1e-9;
  const double heard_meanwhile = std::max(ahead_s, 0.0) * frames_per_second();
  return std::clamp<size_t>(static_cast<size_t>(heard_meanwhile), 2, std::max<size_t>(most, 2));
}

Status QwenSpeaker::end() {
  if (said_something_) return {};
  return fail(Code::kInvalidArgument, "there is nothing to say: the text holds no word");
}

}  // namespace syrinx
