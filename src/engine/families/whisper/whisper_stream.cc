#include "engine/families/whisper/whisper_stream.h"

#include <algorithm>

#include "engine/families/whisper/whisper_recogniser.h"

namespace syrinx {
namespace {

double seconds(uint64_t samples) { return static_cast<double>(samples) / kRecognitionRateHz; }
uint64_t samples_of(double seconds) { return static_cast<uint64_t>(seconds * kRecognitionRateHz); }

tl::unexpected<Error> stopped() { return fail(Code::kCancelled, "the stream was left before its next decoding"); }

constexpr double kPeriodS = static_cast<double>(WhisperStream::kPeriodSamples) / kRecognitionRateHz;

// A soft end of a word is less probable than what begins speech; noise of a room is less probable still.
constexpr double kQuietBelow = 0.1;

}  // namespace

WhisperStream::WhisperStream(std::shared_ptr<WhisperRecogniser> recogniser,
                             const whisper::TranscriberSettings& settings, bool timed_tokens,
                             const std::optional<silero::SegmentOptions>& voice, const EndpointOptions& endpoints,
                             std::function<bool()> is_wanted)
    : recogniser_(std::move(recogniser)),
      open_(recogniser_->scheduler()),
      settings_(settings),
      timed_tokens_(timed_tokens),
      is_wanted_(std::move(is_wanted)),
      endpointer_(endpoints) {
  settings_.words = true;
  settings_.short_windows = true;
  if (settings_.language != nullptr) language_ = settings_.language->code;
  if (!voice) return;
  detector_.emplace(recogniser_->gate()->vad(), *voice);
  quiet_below_ = std::min(kQuietBelow, silero::usual_negative_threshold(voice->threshold));
}

double WhisperStream::buffer_begin_s() const { return seconds(buffer_begin_); }
double WhisperStream::now_s() const { return seconds(now()); }

// To the end of the period, or of the window that voice activity judges next.
size_t WhisperStream::samples_to_check() const {
  const size_t period = kPeriodSamples - since_step_;
  return detector_ ? std::min<size_t>(period, silero::kWindowSamples - detector_->samples() % silero::kWindowSamples)
                   : period;
}

// The end of a period; or at the end of a window the end of the utterance, or a pause that is not decoded yet.
bool WhisperStream::is_step() const {
  if (since_step_ >= kPeriodSamples) return true;
  if (!detector_ || detector_->judged() != detector_->samples() || !endpointer_.has_speech()) return false;
  if (endpointer_.check(now_s())) return true;
  return !is_settled() && now() - loud_end_ >= kPauseSamples && since_step_ >= kPeriodSamples / 2;
}

Status WhisperStream::push(std::span<const float> samples, std::vector<RecognitionEvent>& events) {
  arrival_ = Stopwatch();
  const int64_t came_ns = take_arrival();
  while (!samples.empty()) {
    const std::span<const float> some = samples.first(std::min(samples.size(), samples_to_check()));
    samples = samples.subspan(some.size());
    buffer_.insert(buffer_.end(), some.begin(), some.end());
    since_step_ += some.size();
    watch_voice(some);
    if (!is_step()) continue;
    due_ns_ = pace_.due_ns(came_ns, seconds(since_step_), kPeriodS);
    since_step_ = 0;
    if (detector_ && !endpointer_.has_speech()) {
      // Silence so far: only its end is kept, for the beginning of the first word, from which its utterance counts.
      drop_before(now() - std::min(buffer_.size(), kPrerollSamples));
      endpointer_.restart(buffer_begin_s());
      continue;
    }
    if (!hear()) return stopped();
    const std::optional<EndpointReason> over = endpointer_.check(now_s());
    if (!over)
      tell({}, events);
    else if (*over == EndpointReason::kLength)
      cut(events);
    else
      close(*over, std::min(kPrerollSamples, samples_of(endpointer_.trailing_silence_s(now_s()))), events);
  }
  return {};
}

void WhisperStream::watch_voice(std::span<const float> samples) {
  if (!detector_) return;
  const uint64_t before = detector_->judged();
  voice_events_.clear();
  detector_->push(samples, vad_scratch_, voice_events_);
  note_window(before);
}

void WhisperStream::note_window(uint64_t judged_before) {
  if (detector_->judged() != judged_before && detector_->probability() >= quiet_below_) loud_end_ = detector_->judged();
  if (detector_->last_speech() > 0) endpointer_.voice(seconds(detector_->last_speech()));
}

// A decoding; or, where it would hear but silence more, all words of the one before, whose sound is not needed any
// more.
bool WhisperStream::hear() {
  if (!is_settled()) return decode();
  for (TranscriptWord& word : agreement_.finish()) committed_.push_back(std::move(word));
  drop_before(now() - std::min(buffer_.size(), kPrerollSamples));
  for (TranscriptWord& word : agreement_.trim(buffer_begin_s())) committed_.push_back(std::move(word));
  return true;
}

// The buffer as one window; false: nobody waits for it any more.
bool WhisperStream::decode() {
  const double begin_s = buffer_begin_s();
  std::vector<TranscriptWord> words;
  std::vector<double> ends_s;
  const bool heard_it = recogniser_->with_transcriber(due_ns_, is_wanted_, [&](whisper::Transcriber& transcriber) {
    const whisper::HeardWindow heard = transcriber.hear(buffer_, settings_, agreement_.prompt());
    const whisper::Vocabulary& vocabulary = transcriber.vocabulary();
    TranscriptSegment result =
        transcript_segment(heard.segment, vocabulary.tokens, timed_tokens_ ? &vocabulary.bpe : nullptr);
    const auto later = [=](double time_s) { return time_s + begin_s; };
    map_times(result, later, later);
    words = std::move(result.words);
    for (const double end_s : heard.ends_s) ends_s.push_back(begin_s + end_s);
    if (transcriber.language() != nullptr) language_ = transcriber.language()->code;
  });
  if (!heard_it) return false;
  decoded_end_ = now();
  if (!words.empty() && !detector_) endpointer_.token(words.back().end_s);
  for (TranscriptWord& word : agreement_.push(words, ends_s)) committed_.push_back(std::move(word));
  trim();
  return true;
}

void WhisperStream::trim() {
  const std::optional<double> point = agreement_.trim_point(buffer_begin_s(), now_s());
  if (!point) return;
  drop_before(samples_of(*point));
  for (TranscriptWord& word : agreement_.trim(buffer_begin_s())) committed_.push_back(std::move(word));
}

void WhisperStream::drop_before(uint64_t begin) {
  const size_t gone = std::min<size_t>(buffer_.size(), begin - std::min(begin, buffer_begin_));
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(gone));
  buffer_begin_ += gone;
}

// The segment is over; the next may begin in the last `keep` samples.
void WhisperStream::close(EndpointReason over, size_t keep, std::vector<RecognitionEvent>& events) {
  for (TranscriptWord& word : agreement_.finish()) committed_.push_back(std::move(word));
  tell(over, events);
  endpointer_.restart(now_s());
  drop_before(now() - std::min(buffer_.size(), keep));
  since_step_ = 0;
  agreement_ = LocalAgreement();
  committed_.clear();
}

// The segment is over where somebody still speaks: what is not yet committed belongs to the next.
void WhisperStream::cut(std::vector<RecognitionEvent>& events) {
  if (committed_.empty()) return close(EndpointReason::kLength, 0, events);
  tell(EndpointReason::kLength, events);
  committed_.clear();
  drop_before(samples_of(agreement_.committed_end_s()));
  endpointer_.restart(buffer_begin_s());
  if (detector_) endpointer_.voice(seconds(detector_->last_speech()));
  for (TranscriptWord& word : agreement_.trim(buffer_begin_s())) committed_.push_back(std::move(word));
}

// Nothing is told of a segment without words, unless a partial result must be taken back; nor a partial result again.
void WhisperStream::tell(std::optional<EndpointReason> over, std::vector<RecognitionEvent>& events) {
  const bool is_final = over.has_value();
  RecognitionEvent event;
  event.segment = segment_;
  event.is_final = is_final;
  event.reason = over;
  TranscriptSegment& result = event.result;
  const auto add = [&](const TranscriptWord& word) {
    append_word(result.text, word);
    result.tokens.insert(result.tokens.end(), word.tokens.begin(), word.tokens.end());
    result.words.push_back(word);
    result.confidence += word.confidence;
  };
  for (const TranscriptWord& word : committed_) add(word);
  event.stable_bytes = result.text.size();
  if (!is_final)
    for (const TranscriptWord& word : agreement_.unstable()) add(word);
  if (result.words.empty() && !told_) return;
  if (!is_final && told_ && result.text == told_text_ && event.stable_bytes == told_stable_) return;
  if (!result.words.empty()) {
    result.start_s = result.words.front().start_s;
    result.end_s = std::max(result.start_s, result.words.back().end_s);
    result.confidence /= static_cast<float>(result.words.size());
  }
  event.latency_ms = arrival_.elapsed_ms();
  if (is_final) keep_language(result);
  told_ = !is_final;
  told_text_ = result.text;
  told_stable_ = event.stable_bytes;
  segment_ += is_final ? 1 : 0;
  events.push_back(std::move(event));
}

// A language detected once, in more than a word, holds for the rest of the stream.
void WhisperStream::keep_language(const TranscriptSegment& result) {
  if (settings_.language != nullptr || result.end_s - result.start_s < WhisperRecogniser::kLanguageSeconds) return;
  settings_.language = recogniser_->vocabulary().tokens.find_language(language_);
}

Status WhisperStream::close_all(EndpointReason over, std::vector<RecognitionEvent>& events) {
  arrival_ = Stopwatch();
  due_ns_ = take_arrival() + static_cast<int64_t>(kPeriodS * 1e9);
  if (!buffer_.empty() && !(detector_ && !endpointer_.has_speech()) && !hear()) return stopped();
  close(over, 0, events);
  return {};
}

// A window that is not whole yet may be speech.
Status WhisperStream::commit(std::vector<RecognitionEvent>& events) {
  if (detector_ && detector_->judged() != detector_->samples()) loud_end_ = now();
  return close_all(EndpointReason::kCommit, events);
}

Status WhisperStream::finish(std::vector<RecognitionEvent>& events) {
  if (detector_) {
    const uint64_t before = detector_->judged();
    voice_events_.clear();
    detector_->flush(vad_scratch_, voice_events_);
    note_window(before);
  }
  return close_all(EndpointReason::kEnd, events);
}

}  // namespace syrinx
