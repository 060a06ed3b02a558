#include "engine/speech/speech_session.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace syrinx {
namespace {

// So much text is handed to the front end at a time, that it has room for it beside a sentence that has not ended.
constexpr size_t kMaxArrival = size_t{64} << 10;

double ms_between(int64_t begin_ns, int64_t end_ns) { return static_cast<double>(end_ns - begin_ns) * 1e-6; }

tl::unexpected<Error> cancelled() { return fail(Code::kCancelled, "the speech was cancelled"); }

}  // namespace

SpeechSession::SpeechSession(std::unique_ptr<Speaker> speaker, const Clock& clock)
    : speaker_(std::move(speaker)),
      rate_hz_(speaker_->rate_hz()),
      clock_(clock),
      chunks_(speaker_->chunks_ahead()),
      thread_([this] { run(); }) {}

int64_t SpeechSession::ns_of(size_t samples) const { return static_cast<int64_t>(samples) * 1'000'000'000 / rate_hz_; }

SpeechSession::~SpeechSession() {
  cancel();
  thread_.join();
}

Status SpeechSession::write(std::string_view text) {
  std::unique_lock lock(mutex_);
  do {
    changed_.wait(lock, [this] { return waiting_text_.size() < kMaxWaitingText || done_ || cancelled_; });
    if (error_) return tl::unexpected(*error_);
    if (cancelled_) return cancelled();
    if (finished_) return fail(Code::kInvalidArgument, "text after the end of the text");
    if (first_text_ns_ == 0) first_text_ns_ = clock_.now_ns();
    const std::string_view part = text.substr(0, kMaxWaitingText - std::min(kMaxWaitingText, waiting_text_.size()));
    if (waiting_text_.empty()) waiting_text_ns_ = clock_.now_ns();
    waiting_text_.append(part);
    text.remove_prefix(part.size());
    changed_.notify_all();
  } while (!text.empty());
  return {};
}

void SpeechSession::finish() {
  const std::lock_guard lock(mutex_);
  if (first_text_ns_ == 0) first_text_ns_ = clock_.now_ns();
  finished_ = true;
  changed_.notify_all();
}

Status SpeechSession::speak(std::string_view text) {
  if (text.size() > kMaxWaitingText)
    return fail(Code::kLimitExceeded, "the text has {} bytes, at most {} are taken at once; give it in parts",
                text.size(), kMaxWaitingText);
  const std::lock_guard lock(mutex_);
  if (finished_ || !waiting_text_.empty())
    return fail(Code::kInvalidArgument, "this speech has been given text before");
  first_text_ns_ = waiting_text_ns_ = clock_.now_ns();
  waiting_text_.assign(text);
  finished_ = true;
  changed_.notify_all();
  return {};
}

Result<bool> SpeechSession::next(SpeechChunk& chunk) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_ > 0 || done_ || cancelled_; });
  if (cancelled_) return cancelled();
  if (waiting_ == 0 && error_) return tl::unexpected(*error_);
  if (waiting_ == 0) return false;
  std::swap(chunk, chunks_[first_]);
  waiting_samples_ -= chunk.samples.size();
  first_ = (first_ + 1) % chunks_.size();
  --waiting_;
  changed_.notify_all();
  return true;
}

Result<std::optional<SpeechChunk>> SpeechSession::next() {
  std::optional<SpeechChunk> chunk(std::in_place);
  SYRINX_TRY(const bool there, next(*chunk));
  if (!there) chunk.reset();
  return chunk;
}

bool SpeechSession::is_ready() const {
  const std::lock_guard lock(mutex_);
  return waiting_ > 0 || done_ || cancelled_;
}

void SpeechSession::on_ready(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void SpeechSession::make_batch() {
  const std::lock_guard lock(mutex_);
  is_batch_ = true;
}

void SpeechSession::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

SpeechStatistics SpeechSession::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

// The thread's entry: exceptions of libraries end here.
void SpeechSession::run() {
  Status status;
  try {
    status = speaker_->speak(*this);
  } catch (const std::bad_alloc&) {
    status = fail(Code::kUnavailable, "out of memory while speaking; give shorter sentences or free memory");
  } catch (const std::exception& error) {
    status = fail(Code::kInternal, "unexpected failure while speaking: {}", error.what());
  }
  const std::lock_guard lock(mutex_);
  if (!status) error_ = std::move(status).error();
  done_ = true;
  changed_.notify_all();
  if (wake_) wake_();
}

Result<SpeechStream::Arrival> SpeechSession::take_text(std::optional<std::chrono::milliseconds> limit,
                                                       std::string& text) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return !waiting_text_.empty() || finished_ || cancelled_; };
  if (!limit) {
    changed_.wait(lock, ready);
  } else if (!changed_.wait_for(lock, *limit, ready)) {
    return Arrival::kQuiet;
  }
  if (cancelled_) return cancelled();
  const size_t bytes = std::min(waiting_text_.size(), kMaxArrival);
  text.append(waiting_text_, 0, bytes);
  waiting_text_.erase(0, bytes);
  if (bytes > 0) due_ns_ = std::max(due_ns_, waiting_text_ns_);
  changed_.notify_all();
  return finished_ && waiting_text_.empty() ? Arrival::kEnd : Arrival::kText;
}

SpeechChunk SpeechSession::spare() {
  SpeechChunk chunk = std::exchange(spare_, {});
  chunk.samples.clear();
  chunk.words.clear();
  chunk.phonemes.clear();
  return chunk;
}

// A listener who stops taking sound does not run out of it: all that still waits is before him.
Status SpeechSession::hand_over(SpeechChunk chunk) {
  std::unique_lock lock(mutex_);
  const int64_t now_ns = clock_.now_ns();
  const double since_text_ms = ms_between(first_text_ns_, now_ns);
  if (statistics_.first_audio_ms == 0) statistics_.first_audio_ms = since_text_ms;
  statistics_.total_ms = since_text_ms;
  chunk.start_s = static_cast<double>(samples_made_) / rate_hz_;
  samples_made_ += chunk.samples.size();
  waiting_samples_ += chunk.samples.size();
  due_ns_ = std::max(due_ns_, now_ns) + ns_of(chunk.samples.size());
  statistics_.audio_seconds = static_cast<double>(samples_made_) / rate_hz_;
  changed_.wait(lock, [this] { return waiting_ < chunks_.size() || cancelled_; });
  if (cancelled_) return cancelled();
  due_ns_ = std::max(due_ns_, clock_.now_ns() + ns_of(waiting_samples_));
  spare_ = std::exchange(chunks_[(first_ + waiting_) % chunks_.size()], std::move(chunk));
  ++waiting_;
  changed_.notify_all();
  if (wake_) wake_();
  return {};
}

// Asked before each frame, and while one waits for its turn.
Status SpeechSession::go_on() { return cancelled_ ? Status(cancelled()) : Status(); }

void SpeechSession::account(const SpeechStatistics& more) {
  const std::lock_guard lock(mutex_);
  statistics_.compute_ms += more.compute_ms;
  statistics_.waiting_ms += more.waiting_ms;
  statistics_.pieces += more.pieces;
  statistics_.dropped_characters += more.dropped_characters;
  statistics_.unknown_phonemes += more.unknown_phonemes;
  statistics_.retried_pieces += more.retried_pieces;
  statistics_.finished.add(more.finished);
  statistics_.spread.add(more.spread);
}

}  // namespace syrinx
