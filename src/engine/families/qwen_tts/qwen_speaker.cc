#include "engine/families/qwen_tts/qwen_speaker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"

namespace syrinx {
namespace {

using qwen_tts::FramePool;

// Whole sentences are not withheld for one that has begun, if text rests so long, or has come slowly for so long.
constexpr int64_t kRestNs = 250'000'000, kLongNs = 1'000'000'000;
constexpr int64_t kWaitNs = 20'000'000;  // for text, not for the processor

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
      planner_(counter(model_), settings_.piece_tokens),
      running_([model = model_](std::string_view stretch) { return model->tokenizer().encode_stretch(stretch); },
               settings_.piece_tokens) {}

double QwenSpeaker::frames_per_second() const {
  return static_cast<double>(rate_hz()) / static_cast<double>(stream_.frame_samples());
}

Status QwenSpeaker::use_voice(const std::string& name) {
  SYRINX_TRY(voice_, find_voice_(name));
  carried_.reset();
  meter_.forget();
  return {};
}

Status QwenSpeaker::read(const Sentence& sentence, SpeechStream& stream) {
  return hear(sentence.text, sentence.offset, true, stream);
}

Result<bool> QwenSpeaker::hear_begun(std::string_view text, size_t offset, SpeechStream& stream) {
  if (settings_.text_first) return false;
  SYRINX_TRY_VOID(hear(text, offset, false, stream));
  return true;
}

Status QwenSpeaker::hear(std::string_view text, size_t offset, bool ended, SpeechStream& stream) {
  if (voice_ == nullptr) SYRINX_TRY_VOID(use_voice(""));
  const Stopwatch watch(stream.clock());
  text_came_ns_ = stream.clock().now_ns();
  ++times_heard_;
  if (running_.piece().tokens.empty()) text_began_ns_ = text_came_ns_;
  SYRINX_TRY_VOID(settings_.text_first ? planner_.add(text, offset) : running_.hear(text, offset, ended));
  const size_t left_out = planner_.left_out() + running_.left_out();
  SpeechStatistics more;
  more.dropped_characters = left_out - std::exchange(left_out_, left_out);
  more.compute_ms = watch.elapsed_ms();
  stream.account(more);
  return {};
}

Result<bool> QwenSpeaker::say(bool now, SpeechStream& stream) {
  SYRINX_TRY_VOID(stream.go_on());
  SYRINX_TRY(const bool there, next_piece(now, stream.clock().now_ns()));
  if (!there) return false;
  const uint32_t number = pieces_++;
  piece_frames_ = 0;
  SYRINX_TRY(FramePool::Made made, speak_piece(number, stream));
  if (stream_.spoken_little() && may_try_again(made.reason)) {
    SpeechStatistics retried;
    retried.retried_pieces = 1;
    stream.account(retried);
    SYRINX_TRY(made, speak_piece(number | kSecondTry, stream));
  }
  SpeechStatistics more;
  more.pieces = 1;
  more.finished.add(made.reason);
  const bool is_whole = made.reason == FinishReason::kSpoken;
  if (const auto figures = meter_.end(tokens().size(), is_whole)) {
    if (log_enabled(LogLevel::kDebug)) log_debug("piece {}: {}", number + 1, describe(*figures));
    if (is_whole) more.spread.add(*figures);
  }
  stream.account(more);
  carry(made.reason);
  if (settings_.text_first) return true;
  text_began_ns_ = text_came_ns_ = stream.clock().now_ns();
  SYRINX_TRY_VOID(running_.go_on());
  return true;
}

// False: none is there, or it is not certain enough.
Result<bool> QwenSpeaker::next_piece(bool now, int64_t now_ns) {
  if (!settings_.text_first) {
    if (running_.piece().ended) text_is_slow_ = false;
    if (now) running_.rest();
    if (running_.piece().ended || has_begun()) return true;
    if (running_.piece().tokens.empty()) return false;
    if (!now && !running_.goes_on()) return false;  // more may have come
    const int64_t took_ns = now_ns - text_began_ns_;
    text_is_slow_ = text_is_slow_ || (took_ns >= kLongNs && outruns_text(took_ns));
    const bool is_late = text_is_slow_ || now_ns - text_came_ns_ >= kRestNs;
    return is_late && running_.end_behind_sentence(0);
  }
  const std::optional<std::string> piece = planner_.next(now);
  if (!piece) return false;
  SYRINX_TRY(whole_, model_->tokenizer().encode(*piece));
  return true;
}

// Whether a piece of which more is to come can be begun, and its text comes fast enough not to be awaited in its midst.
bool QwenSpeaker::has_begun() const {
  const size_t count = running_.piece().tokens.size();
  if (voice_ == nullptr || text_is_slow_ || count < least_tokens()) return false;
  return !outruns_text(text_came_ns_ - text_began_ns_);
}

// A piece of which more is to come begins with so many, which may stand beside a reference.
size_t QwenSpeaker::least_tokens() const {
  const size_t frames = reference_codes().size() / model_->config().codebooks;
  return std::max(kBegunTokens, qwen_tts::least_text(frames, reference_words().size()));
}

// Whether the frames of the piece's text are heard in less time than it took to come.
bool QwenSpeaker::outruns_text(int64_t took_ns) const {
  return static_cast<double>(took_ns) * 1e-9 * frames_per_second() >
         static_cast<double>(running_.piece().tokens.size());
}

size_t QwenSpeaker::carried_frames() const {
  return static_cast<size_t>(settings_.carry_seconds * frames_per_second() + 1e-9);
}

// The piece that has ended, in front of the next one, if all of its text was spoken: nobody speaks a token a frame.
void QwenSpeaker::carry(FinishReason reason) {
  carried_.reset();
  const std::span<const int32_t> codes = stream_.spoken_codes();
  const bool is_whole = codes.size() / model_->config().codebooks >= tokens().size();
  if (reason != FinishReason::kSpoken || codes.empty() || !is_whole) return;
  Reference& next = carried_.emplace();
  next.words = voice_->words;
  next.words.insert(next.words.end(), tokens().begin(), tokens().end());
  next.codes = voice_->codes;
  next.codes.insert(next.codes.end(), codes.begin(), codes.end());
  next.sound = stream_.sound();
}

// With draws that can be others, unless the user's limit was the reason.
bool QwenSpeaker::may_try_again(FinishReason reason) const {
  if (reason == FinishReason::kLength && settings_.max_seconds) return false;
  return settings_.draws.talker.samples || settings_.draws.predictor.samples;
}

// The last of what was made.
Result<FramePool::Made> QwenSpeaker::speak_piece(uint32_t number, SpeechStream& stream) {
  given_ = 0;
  SYRINX_TRY_VOID(take_arrived(stream));
  SYRINX_TRY_VOID(begin(number, stream));
  meter_.begin();
  FramePool::Made made;
  while (!made.ended) {
    SYRINX_TRY_VOID(follow_text(stream));
    SYRINX_TRY(made, make(Ask::kFrame, stream));
  }
  // The model may end before the text has come: the next piece begins behind it.
  while (!text_ended_) SYRINX_TRY_VOID(await_text(given_ + 1, stream));
  return made;
}

// All of the piece that is there: most texts are there as a whole.
Status QwenSpeaker::take_arrived(SpeechStream& stream) {
  if (settings_.text_first) return {};
  while (!running_.piece().ended) {
    const size_t times = times_heard_;
    SYRINX_TRY_VOID(take_text(std::chrono::milliseconds(0), stream));
    if (times_heard_ == times) break;
  }
  return {};
}

// Gives the stream more of the piece's text, and waits where its frames have caught up with it.
Status QwenSpeaker::follow_text(SpeechStream& stream) {
  if (text_ended_) return {};
  if (!running_.piece().ended) SYRINX_TRY_VOID(take_text(std::chrono::milliseconds(0), stream));
  if (running_.piece().ended || running_.whole() > given_) give_text();
  while (stream_.needs_text()) {
    const bool goes_on = given_ > running_.whole() && given_ < running_.piece().tokens.size();
    SYRINX_TRY_VOID(await_text(given_ + (goes_on ? 1 : kBegunTokens), stream));
  }
  return {};
}

// Until the piece has so many tokens, one more whole sentence, or its end.  Frames whose sound is not made yet are made
// audible before the listener runs out of it.
Status QwenSpeaker::await_text(size_t count, SpeechStream& stream) {
  constexpr int64_t kBeforeNs = 100'000'000;
  while (!running_.piece().ended && running_.piece().tokens.size() < count && running_.whole() <= given_) {
    stream_.rest();
    std::optional<std::chrono::milliseconds> limit;
    if (const int64_t due_ns = stream.due_ns(); stream_.pending() > 0 && due_ns != kNeverDue) {
      const int64_t left_ns = due_ns - stream.clock().now_ns() - kBeforeNs;
      if (left_ns <= 0) {
        SYRINX_TRY(const FramePool::Made made, make(Ask::kWaiting, stream));
        if (made.ended) return {};
        continue;
      }
      limit = std::chrono::milliseconds(left_ns / 1'000'000 + 1);
    }
    const int64_t asked_ns = stream.clock().now_ns();
    SYRINX_TRY_VOID(take_text(limit, stream));
    const int64_t now_ns = stream.clock().now_ns();
    text_is_slow_ = text_is_slow_ || (now_ns - asked_ns >= kWaitNs && now_ns > stream.due_ns());
    if (text_is_slow_ && given_ == running_.whole() && stream_.needs_text()) running_.end_behind_sentence(given_);
  }
  give_text();
  return {};
}

Status QwenSpeaker::take_text(std::optional<std::chrono::milliseconds> limit, SpeechStream& stream) {
  SYRINX_TRY_VOID(stream.go_on());
  SYRINX_TRY(const Moment moment, take_more(limit, stream));
  if (moment != Moment::kFlow) running_.rest();
  if (moment == Moment::kPause) running_.end_behind_sentence(given_);
  return {};
}

// All of the piece that has ended, else its whole sentences, or what has come of the one that goes on.
void QwenSpeaker::give_text() {
  const qwen_tts::RunningText::Piece& piece = running_.piece();
  const bool has_sentence = !piece.ended && running_.whole() > given_;
  const size_t count = has_sentence ? running_.whole() : piece.tokens.size();
  stream_.add_text(std::span(piece.tokens).subspan(given_, count - given_));
  given_ = count;
  text_ended_ = piece.ended;
  if (text_ended_) stream_.end_text(most_frames(given_), qwen_tts::SpeechGuard::expected_frames(given_));
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
  meter_.hear(heard.samples);
  return stream.hand_over(std::move(heard));
}

// The limit of this try, for a text of so many tokens.
size_t QwenSpeaker::most_frames(size_t tokens) const {
  const size_t limit = qwen_tts::SpeechGuard::limit(tokens, settings_.max_seconds, frames_per_second());
  return std::min(settings_.draws.max_frames,
                  settings_.max_seconds ? std::max(limit, first_frames_ + 1) - first_frames_ : limit);
}

// One piece's draws are apart from another's by its number.
Status QwenSpeaker::begin(uint32_t number, SpeechStream& stream) {
  chunk_frames_ = 0;
  first_frames_ = piece_frames_;
  text_ended_ = settings_.text_first || running_.piece().ended;
  given_ = text_ended_ ? tokens().size() : std::max(running_.whole(), least_tokens());
  const Stopwatch watch(stream.clock());
  SYRINX_TRY(qwen_tts::Prompt prompt, qwen_tts::make_prompt(model_->config(), {.role = model_->tokenizer().role(),
                                                                               .text = tokens().first(given_),
                                                                               .instruction = instructions_,
                                                                               .language = settings_.language,
                                                                               .speaker = voice_->speaker,
                                                                               .voice = voice_->vector,
                                                                               .reference_text = reference_words(),
                                                                               .reference_codes = reference_codes(),
                                                                               .text_first = settings_.text_first,
                                                                               .text_ends = text_ended_}));
  if (carried_) prompt.shared = 0;  // no other piece begins so
  // A text that goes on counts as the longest.
  const size_t count = text_ended_ ? given_ : settings_.piece_tokens + qwen_tts::RunningText::kMostMarks;
  qwen_tts::SpeechSettings settings{.draws = settings_.draws, .seed = settings_.seed, .number = number};
  if (settings_.forced) settings.forced = settings_.forced(number);
  settings.draws.max_frames = most_frames(count);
  const auto& sound = carried_ ? carried_->sound : voice_->sound;
  SYRINX_TRY_VOID(stream_.begin({.prompt = std::move(prompt),
                                 .settings = settings,
                                 .expected_frames = qwen_tts::SpeechGuard::expected_frames(count),
                                 .codec = sound ? &*sound : nullptr,
                                 .kept_frames = carried_frames()}));
  stream_.ask_first([&stream] { return !stream.is_cancelled(); });
  SpeechStatistics more;
  more.compute_ms = watch.elapsed_ms();
  stream.account(more);
  return {};
}

// A frame or the sound of those that wait; hands over all that may be heard.
Result<FramePool::Made> QwenSpeaker::make(Ask ask, SpeechStream& stream) {
  SYRINX_TRY_VOID(stream.go_on());
  if (chunk_.samples.empty()) {
    if (chunk_.samples.capacity() == 0) chunk_ = stream.spare();
    chunk_.samples.clear();
  }
  if (stream_.pending() == 0) chunk_frames_ = chunk_frames(stream);
  const Stopwatch watch(stream.clock());
  const double waited_ms = stream_.waited_ms();
  SYRINX_TRY(const FramePool::Made made, ask == Ask::kFrame
                                             ? stream_.next(chunk_frames_, chunk_.samples, stream.due_ns())
                                             : stream_.decode(chunk_.samples, stream.due_ns()));
  SpeechStatistics more;
  more.waiting_ms = stream_.waited_ms() - waited_ms;
  more.compute_ms = watch.elapsed_ms() - more.waiting_ms;
  stream.account(more);
  if (made.faulty)
    return fail(Code::kDataLoss, "the model computed values that are not numbers; its weights are damaged");
  SYRINX_TRY_VOID(hand_over(made.held, stream));
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
