#include "engine/speech_session.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <span>
#include <utility>

#include "audio/fade.h"
#include "engine/pauses.h"
#include "models/kokoro/vocabulary.h"
#include "text/escape.h"

namespace syrinx {
namespace {

// Text counts as quiet, so that a sentence that could still be joined with the next one is spoken, after this long.
// Long enough for a pipe from a file to deliver, short enough not to be heard.
constexpr auto kQuiet = std::chrono::milliseconds(50);
// And as pausing, so that what looks like the end of a sentence counts as one.  Longer than the steps in which a
// language model or a slow disk delivers, shorter than somebody who listens would wait.
constexpr auto kPause = std::chrono::milliseconds(300);

// Each piece draws from a stream of its own: the finaliser of SplitMix64 over seed and number.
uint64_t piece_seed(uint64_t seed, size_t piece) {
  uint64_t z = seed + 0x9e3779b97f4a7c15u * (static_cast<uint64_t>(piece) + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

bool is_mark(char32_t c) { return c == U' ' || (kokoro::symbol_id(c) > 0 && kokoro::symbol_id(c) <= 16); }

// Phonemes as the front end would have given them: words between spaces, marks apart.
g2p::Phonemized from_phonemes(std::string_view line, size_t offset) {
  g2p::Phonemized spoken;
  spoken.phonemes = std::string(line);
  std::replace(spoken.phonemes.begin(), spoken.phonemes.end(), '\n', ' ');
  for (size_t at = 0; at < line.size();) {
    const size_t begin = at;
    const bool mark = is_mark(text::decode(line, at));
    while (at < line.size()) {
      size_t next = at;
      const char32_t c = text::decode(line, next);
      if (c == U' ' || c == U'\n' || is_mark(c) != mark) break;
      at = next;
    }
    if (line[begin] == ' ' || line[begin] == '\n') continue;
    spoken.words.push_back({.source = {offset + begin, offset + at},
                            .phonemes = {begin, at},
                            .kind = mark ? g2p::WordKind::kPunctuation : g2p::WordKind::kEscape});
  }
  return spoken;
}

bool closes_sentence(char32_t c) { return c == U'.' || c == U'!' || c == U'?' || c == U'…'; }

// Behind the first mark that closes a sentence and is followed by a space, or behind the first line's end.
std::optional<size_t> phoneme_sentence_end(std::string_view phonemes) {
  bool closing = false;
  for (size_t at = 0; at < phonemes.size();) {
    const char32_t c = text::decode(phonemes, at);
    if (c == U'\n' || (closing && c == U' ')) return at;
    closing = closes_sentence(c);
  }
  return std::nullopt;
}

bool ends_with_closing_mark(std::string_view phonemes) {
  bool closing = false;
  for (size_t at = 0; at < phonemes.size();) closing = closes_sentence(text::decode(phonemes, at));
  return closing;
}

// Without what an escape, [word](/phonemes/), says of it.
std::string written_word(std::string_view source) {
  const std::optional<text::Escape> escape = text::parse_escape(source);
  return std::string(escape && escape->length == source.size() ? escape->word : source);
}

double ms_between(int64_t begin_ns, int64_t end_ns) { return static_cast<double>(end_ns - begin_ns) * 1e-6; }

}  // namespace

SpeechSession::SpeechSession(std::unique_ptr<SpeechMaker> maker, const SpeakOptions& options, const Clock& clock)
    : maker_(std::move(maker)), options_(options), clock_(clock), thread_([this] { run(); }) {}

SpeechSession::~SpeechSession() {
  cancel();
  thread_.join();
}

Status SpeechSession::write(std::string_view text) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_text_.size() < kMaxWaitingText || done_ || cancelled_; });
  if (error_) return tl::unexpected(*error_);
  if (cancelled_) return fail(Code::kCancelled, "the speech was cancelled");
  if (finished_) return fail(Code::kInvalidArgument, "text after the end of the text");
  if (first_text_ns_ == 0) first_text_ns_ = clock_.now_ns();
  waiting_text_.append(text);
  changed_.notify_all();
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
  first_text_ns_ = clock_.now_ns();
  waiting_text_.assign(text);
  finished_ = true;
  changed_.notify_all();
  return {};
}

Result<std::optional<SpeechChunk>> SpeechSession::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !chunks_.empty() || done_ || cancelled_; });
  if (cancelled_) return fail(Code::kCancelled, "the speech was cancelled");
  if (chunks_.empty() && error_) return tl::unexpected(*error_);
  if (chunks_.empty()) return std::optional<SpeechChunk>();
  std::optional<SpeechChunk> chunk = std::move(chunks_.front());
  chunks_.pop_front();
  changed_.notify_all();
  return chunk;
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
    status = produce();
  } catch (const std::bad_alloc&) {
    status = fail(Code::kLimitExceeded, "out of memory while speaking; give shorter sentences or free memory");
  } catch (const std::exception& error) {
    status = fail(Code::kInternal, "unexpected failure while speaking: {}", error.what());
  }
  const std::lock_guard lock(mutex_);
  if (!status) error_ = std::move(status).error();
  done_ = true;
  changed_.notify_all();
}

Status SpeechSession::produce() {
  for (bool ended = false; !ended;) {
    std::optional<g2p::Phonemized> piece = planner_.next(false);
    if (!piece) {
      SYRINX_TRY(const bool more, absorb(Moment::kFlow));
      if (more) continue;
      SYRINX_TRY(const Arrival arrival, wait_for_text(piece));
      ended = arrival == Arrival::kEnd;
    }
    if (piece) SYRINX_TRY_VOID(make(*piece));
  }
  for (;;) {
    SYRINX_TRY(const bool more, absorb(Moment::kEnd));
    std::optional<g2p::Phonemized> piece = planner_.next(!more);
    if (piece) SYRINX_TRY_VOID(make(*piece));
    if (!piece && !more) break;
  }
  if (!said_something_)
    return fail(Code::kInvalidArgument, "there is nothing to say: the text holds no English words, letters or digits");
  return {};
}

// Until text has come, or a piece can be made of what is here because none comes.
Result<SpeechSession::Arrival> SpeechSession::wait_for_text(std::optional<g2p::Phonemized>& piece) {
  SYRINX_TRY(Arrival arrival, take_text(kQuiet));
  if (arrival != Arrival::kQuiet) return arrival;
  piece = planner_.next(true);
  if (piece) return arrival;
  SYRINX_TRY(arrival, take_text(kPause - kQuiet));
  if (arrival != Arrival::kQuiet) return arrival;
  SYRINX_TRY(const bool more, absorb(Moment::kPause));
  if (more) piece = planner_.next(true);
  if (piece) return arrival;
  return take_text(std::nullopt);
}

// Takes one more sentence to the planner, if one is complete.
Result<bool> SpeechSession::absorb(Moment moment) {
  if (options_.phonemes) return absorb_phonemes(moment);
  const std::optional<std::string> sentence = moment == Moment::kPause ? sentences_.next_at_pause() : sentences_.next();
  if (!sentence) return false;
  SYRINX_TRY_VOID(read_sentence(*sentence, sentences_.sentence_offset()));
  return true;
}

// The rules for written sentences (capitals, abbreviations) say nothing about phonemes.
Result<bool> SpeechSession::absorb_phonemes(Moment moment) {
  const std::optional<size_t> end = phoneme_sentence_end(phoneme_text_);
  const bool all = moment == Moment::kEnd || (moment == Moment::kPause && ends_with_closing_mark(phoneme_text_));
  if (!end && (!all || phoneme_text_.empty())) return false;
  const std::string sentence = phoneme_text_.substr(0, end.value_or(phoneme_text_.size()));
  phoneme_text_.erase(0, sentence.size());
  if (const std::optional<size_t> invalid = text::find_invalid(sentence))
    return fail(Code::kInvalidArgument, "byte {} of the phonemes is not UTF-8; convert them or leave the byte out",
                phoneme_offset_ + *invalid);
  SYRINX_TRY_VOID(read_sentence(sentence, phoneme_offset_));
  phoneme_offset_ += sentence.size();
  return true;
}

Result<SpeechSession::Arrival> SpeechSession::take_text(std::optional<std::chrono::milliseconds> limit) {
  std::string text;
  bool ended = false;
  {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return !waiting_text_.empty() || finished_ || cancelled_; };
    if (!limit) {
      changed_.wait(lock, ready);
    } else if (!changed_.wait_for(lock, *limit, ready)) {
      return Arrival::kQuiet;
    }
    if (cancelled_) return fail(Code::kCancelled, "the speech was cancelled");
    text.swap(waiting_text_);
    ended = finished_;
    changed_.notify_all();
  }
  if (options_.phonemes) {
    phoneme_text_ += text;
    if (phoneme_text_.size() > text::SentenceStream::kMaxPendingBytes && !phoneme_sentence_end(phoneme_text_))
      return fail(Code::kLimitExceeded, "a sentence of phonemes is longer than 1 MB; end sentences with . ! or ?");
    return ended ? Arrival::kEnd : Arrival::kText;
  }
  if (!text.empty()) SYRINX_TRY_VOID(sentences_.feed(text));
  if (!ended) return Arrival::kText;
  SYRINX_TRY_VOID(sentences_.finish());
  return Arrival::kEnd;
}

Status SpeechSession::read_sentence(std::string_view sentence, size_t offset) {
  const int64_t begin_ns = clock_.now_ns();
  g2p::Phonemized spoken;
  if (options_.phonemes) {
    spoken = from_phonemes(sentence, offset);
  } else {
    SYRINX_TRY(spoken, maker_->phonemize(sentence, offset));
  }
  {
    const std::lock_guard lock(mutex_);
    statistics_.dropped_characters += spoken.dropped;
    statistics_.compute_ms += ms_between(begin_ns, clock_.now_ns());
  }
  if (!spoken.words.empty()) spoken_.push_back({offset, std::string(sentence)});
  planner_.add(spoken);
  return {};
}

Status SpeechSession::make(const g2p::Phonemized& piece) {
  const int64_t begin_ns = clock_.now_ns();
  const kokoro::Tokens tokens = kokoro::tokenize(piece.phonemes);
  size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return fail(Code::kCancelled, "the speech was cancelled");
    statistics_.unknown_phonemes += tokens.unknown;
    number = statistics_.pieces;
  }
  if (tokens.ids.empty()) return {};
  SYRINX_TRY_VOID(maker_->synthesize(tokens.ids, tokens.symbols, piece_seed(options_.seed, number), output_));
  std::span<float> kept = trim_silence(output_.samples, kokoro::kSampleRateHz, pause_rule(piece.phonemes));
  if (kept.empty()) kept = output_.samples;  // a piece that is silent altogether
  const auto cut = static_cast<size_t>(kept.data() - output_.samples.data());
  SpeechChunk chunk;
  chunk.samples.assign(kept.begin(), kept.end());
  chunk.start_s = static_cast<double>(samples_made_) / kokoro::kSampleRateHz;
  chunk.words = word_times(piece, tokens.offsets, cut, chunk.samples.size());
  chunk.phonemes = piece.phonemes;
  samples_made_ += chunk.samples.size();
  said_something_ = true;
  // Sentences that end before the last word of this piece are not asked for again.
  while (!spoken_.empty() && !piece.words.empty() &&
         spoken_.front().offset + spoken_.front().text.size() <= piece.words.back().source.begin)
    spoken_.pop_front();
  {
    const std::lock_guard lock(mutex_);
    statistics_.compute_ms += ms_between(begin_ns, clock_.now_ns());
    statistics_.audio_seconds = static_cast<double>(samples_made_) / kokoro::kSampleRateHz;
    ++statistics_.pieces;
  }
  return hand_over(std::move(chunk));
}

Status SpeechSession::hand_over(SpeechChunk chunk) {
  std::unique_lock lock(mutex_);
  const double since_text_ms = ms_between(first_text_ns_, clock_.now_ns());
  if (statistics_.first_audio_ms == 0) statistics_.first_audio_ms = since_text_ms;
  statistics_.total_ms = since_text_ms;
  changed_.wait(lock, [this] { return chunks_.size() < kMaxWaitingChunks || cancelled_; });
  if (cancelled_) return fail(Code::kCancelled, "the speech was cancelled");
  chunks_.push_back(std::move(chunk));
  changed_.notify_all();
  return {};
}

// Each id lasts its duration in frames; the first frame count belongs to the silence before the first id.
std::vector<WordTime> SpeechSession::word_times(const g2p::Phonemized& piece, const std::vector<uint32_t>& offsets,
                                                size_t first_sample, size_t kept) const {
  std::vector<WordTime> times;
  if (output_.durations.size() != offsets.size() + 2) return times;
  std::vector<double> starts(offsets.size() + 1);  // seconds of the whole speech
  size_t frames = 0;
  for (size_t i = 0; i <= offsets.size(); ++i) {
    frames += static_cast<size_t>(std::max(output_.durations[i], 0));
    const size_t sample = frames * kokoro::kSamplesPerFrame;
    const size_t inside = std::clamp(sample, first_sample, first_sample + kept) - first_sample;
    starts[i] = static_cast<double>(samples_made_ + inside) / kokoro::kSampleRateHz;
  }
  for (const g2p::PhonemizedWord& word : piece.words) {
    if (word.kind == g2p::WordKind::kPunctuation) continue;
    const auto first = std::lower_bound(offsets.begin(), offsets.end(), word.phonemes.begin);
    const auto last = std::lower_bound(first, offsets.end(), word.phonemes.end);
    if (first == last) continue;
    const double start = starts[static_cast<size_t>(first - offsets.begin())];
    const double end = starts[static_cast<size_t>(last - offsets.begin())];
    if (!times.empty() && times.back().source_begin == word.source.begin &&
        times.back().source_end == word.source.end) {
      times.back().end_s = end;
      continue;
    }
    times.push_back({source_text(word.source), word.source.begin, word.source.end, start, end});
  }
  return times;
}

std::string SpeechSession::source_text(text::Range range) const {
  for (const Sentence& sentence : spoken_) {
    if (range.begin >= sentence.offset && range.end <= sentence.offset + sentence.text.size())
      return written_word(std::string_view(sentence.text).substr(range.begin - sentence.offset, range.size()));
  }
  return {};
}

}  // namespace syrinx
