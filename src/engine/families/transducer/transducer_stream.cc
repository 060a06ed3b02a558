#include "engine/families/transducer/transducer_stream.h"

#include <algorithm>
#include <array>

#include "audio/loudest_sample.h"
#include "base/check.h"
#include "engine/families/transducer/transducer_faults.h"
#include "engine/families/transducer/transducer_transcript.h"

namespace syrinx {
namespace {

// Room for the labels of a segment, which is over where they fill it: speech has about four pieces a second, and up to
// twenty letters and blanks.
constexpr size_t kLeastRoom = 4096, kLabelsPerSecond = 25;
// Those of segments that end within one push of a second have room for all that their frames can have, up to so many.
constexpr size_t kMostEndedLabels = 131072;
static_assert(kMostEndedLabels > static_cast<size_t>(EndpointChanges::kLongestS) * kLabelsPerSecond);

// Where nobody speaks; the client's word and a full room come amid speech.
bool is_pause(EndpointReason reason) { return reason != EndpointReason::kLength && reason != EndpointReason::kCommit; }

}  // namespace

TransducerStream::TransducerStream(std::shared_ptr<TransducerRecogniser> recogniser,
                                   TransducerRecogniser::StreamPlace place, Rules rules)
    : recogniser_(std::move(recogniser)),
      open_(recogniser_->queue_.scheduler()),
      place_(std::move(place)),
      rules_(std::move(rules)),
      track_(*recogniser_->model_->decoder()),
      frames_(recogniser_->frame_source(track_, rules_.prompt)),
      most_labels_(std::max(kLeastRoom, static_cast<size_t>(rules_.endpoints.max_utterance_s) * kLabelsPerSecond)),
      endpointer_(rules_.endpoints),
      end_of_utterance_(recogniser_->model_->vocabulary().find("<EOU>")),
      end_of_backchannel_(recogniser_->model_->vocabulary().find("<EOB>")) {
  const size_t symbols = recogniser_->model_->config().decoder.max_symbols, frames = frames_->most_frames();
  track_.found.reserve(most_labels_ + FrameSource::kFramesAtOnce * symbols);
  ended_.reserve(std::min(track_.found.capacity() + frames * symbols, kMostEndedLabels));
  ends_.reserve(frames + 1);
  if (rules_.boost != nullptr) track_.state.transducer->head().boost = rules_.boost.get();
  if (rules_.voice) voice_.emplace(recogniser_->gate_->vad(), *rules_.voice);
}

Status TransducerStream::push(std::span<const float> samples, std::vector<RecognitionEvent>& events) {
  SYRINX_CHECK(!finished_, "pushed behind the end");
  if (frames_ == nullptr) return status();  // it has failed before
  arrival_ = Stopwatch();
  frames_->sound_came(take_arrival());
  constexpr size_t kAtOnce = kRecognitionRateHz;  // copied, to be bounded
  std::array<float, kAtOnce> bounded;
  while (!samples.empty()) {
    const size_t count = std::min(kAtOnce, samples.size());
    for (size_t i = 0; i < count; ++i) bounded[i] = bounded_sample(samples[i]);
    samples = samples.subspan(count);
    if (voice_) voice_->push({bounded.data(), count});
    frames_->push({bounded.data(), count}, [this](View<const float, 2>) { heard(); });
    if (track_.state.faults() != 0) return failed();
    tell_ended(events);
  }
  if (changed_) report(track_.found, {}, events);
  recogniser_->note_work();
  return {};
}

Status TransducerStream::finish(std::vector<RecognitionEvent>& events) {
  SYRINX_CHECK(!finished_, "finished twice");
  finished_ = true;
  arrival_ = Stopwatch();
  if (frames_ == nullptr) return status();
  frames_->sound_came(take_arrival());
  frames_->finish([this](View<const float, 2>) { heard(); });
  end_segment(EndpointReason::kEnd);
  if (track_.state.faults() != 0) return failed();
  tell_ended(events);
  leave();
  return {};
}

// Labels found with the fault mean nothing and are not reported.
Status TransducerStream::failed() {
  leave();
  return status();
}

// Nothing more can come of it, however long somebody keeps the object: its memory and its place are for others.
void TransducerStream::leave() {
  frames_.reset();
  place_.give_back();
}

Status TransducerStream::commit(std::vector<RecognitionEvent>& events) {
  SYRINX_CHECK(!finished_, "committed behind the end");
  arrival_ = Stopwatch();
  if (frames_ == nullptr) return status();
  frames_->sound_came(take_arrival());
  frames_->flush([this](View<const float, 2>) { heard(); });
  end_segment(EndpointReason::kCommit);
  if (track_.state.faults() != 0) return failed();
  tell_ended(events);
  return {};
}

// Behind some frames whose labels are in the track, and inside the step that all streams wait for: results can wait for
// its end, the decoder's new beginning behind an utterance cannot.
void TransducerStream::heard() {
  note(std::span(track_.found).subspan(noted_));
  noted_ = track_.found.size();
  // A CTC label lasts as long as it is the likeliest, frames later too.
  if (noted_ > 0 && is_text(track_.found.back())) endpointer_.token(end_s(track_.found.back()));
  // The last frame is computed when its beginning is there, so only what lies a frame before is sure to be judged.
  if (voice_) endpointer_.voice(voice_->last_voice_s(decoded_s() - frame_s()));
  if (const auto over = endpointer_.check(decoded_s())) {
    end_segment(*over);
  } else if (track_.found.size() >= most_labels_) {
    end_segment(EndpointReason::kLength);
  }
}

// Allocates nothing.  Of segments without labels nothing is told, but those before them have a pause behind them.
void TransducerStream::end_segment(EndpointReason over) {
  if (ended_.capacity() - ended_.size() < track_.found.size()) {
    track_.state.raise(transducer::kTooManyLabels);
  } else if (!track_.found.empty()) {
    ended_.insert(ended_.end(), track_.found.begin(), track_.found.end());
    ends_.push_back({.end = ended_.size(), .over = over, .paused = is_pause(over)});
  } else if (is_pause(over)) {
    (ends_.empty() ? behind_pause_ : ends_.back().paused) = true;
  }
  endpointer_.restart(decoded_s());
  track_.state.forget_labels();
  track_.found.clear();
  noted_ = 0;
  changed_ = false;
}

void TransducerStream::tell_ended(std::vector<RecognitionEvent>& events) {
  size_t first = 0;
  for (const Ended& segment : ends_) {
    report(std::span(ended_).subspan(first, segment.end - first), segment.over, events);
    if (segment.paused) behind_pause_ = true;
    first = segment.end;
  }
  ends_.clear();
  ended_.clear();
}

bool TransducerStream::is_text(const transducer::Emission& emission) const {
  return !recogniser_->model_->vocabulary().is_special(emission.label);
}
double TransducerStream::end_s(const transducer::Emission& emission) const {
  return static_cast<double>(emission.frame + emission.duration) * frame_s();
}
double TransducerStream::frame_s() const { return recogniser_->model_->config().frame_s(); }
double TransducerStream::decoded_s() const { return static_cast<double>(track_.state.decoded()) * frame_s(); }

void TransducerStream::note(std::span<const transducer::Emission> fresh) {
  for (const transducer::Emission& emission : fresh) {
    if (emission.label == end_of_utterance_ || emission.label == end_of_backchannel_) {
      endpointer_.end_of_utterance(end_s(emission), emission.label == end_of_backchannel_);
    } else if (is_text(emission)) {
      endpointer_.token(end_s(emission));
      changed_ = true;
    }
  }
}

// Text only grows, so a segment of which something has been told also has a final result.  A mark that closes a
// sentence may come when the pause behind it has ended the utterance: no other one begins with it.  Where no pause was,
// as behind a commit, an utterance goes on in the middle of what is said, and may begin with anything.
void TransducerStream::report(std::span<const transducer::Emission> labels, std::optional<EndpointReason> over,
                              std::vector<RecognitionEvent>& events) {
  if (std::ranges::none_of(labels, [this](const transducer::Emission& emission) { return is_text(emission); })) return;
  const transducer::Model& model = *recogniser_->model_;
  const auto all = transducer::token_times(model.vocabulary(), model.config().decoder.kind, labels);
  const auto tokens = behind_pause_ && segment_ > 0 ? behind_marks(model.vocabulary(), all) : std::span(all);
  const bool is_final = over.has_value();
  const auto words = transducer::word_times(model.vocabulary(), tokens);
  RecognitionEvent event;
  event.segment = segment_;
  event.is_final = is_final;
  event.reason = over;
  event.result = transcript_segment(
      tokens, words,
      {.frame_s = frame_s(), .words = rules_.words, .tokens = rules_.tokens ? &model.vocabulary() : nullptr});
  event.stable_bytes = event.result.text.size();
  event.latency_ms = arrival_.elapsed_ms();
  if (is_final) {
    reported_.clear();
    if (event.result.text.empty()) return;
    ++segment_;
    behind_pause_ = false;
  } else {
    changed_ = false;
    if (event.result.text == reported_) return;
    reported_ = event.result.text;
  }
  events.push_back(std::move(event));
}

Status TransducerStream::status() const { return fault_status(track_.state.faults(), recogniser_->name()); }

}  // namespace syrinx
