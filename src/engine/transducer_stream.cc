#include "engine/transducer_stream.h"

#include <algorithm>
#include <array>

#include "audio/loudest_sample.h"
#include "base/check.h"
#include "engine/transducer_transcript.h"

namespace syrinx {
namespace {

constexpr size_t kReservedLabels = 4096;  // of a segment: a push then allocates nothing for them

}  // namespace

TransducerStream::TransducerStream(std::shared_ptr<TransducerRecogniser> recogniser,
                                   TransducerRecogniser::StreamPlace place, Rules rules)
    : recogniser_(std::move(recogniser)),
      place_(std::move(place)),
      rules_(std::move(rules)),
      track_(*recogniser_->model_->decoder()),
      frames_(recogniser_->frame_source(track_, rules_.prompt)),
      endpointer_(rules_.endpoints),
      end_of_utterance_(recogniser_->model_->vocabulary().find("<EOU>")),
      end_of_backchannel_(recogniser_->model_->vocabulary().find("<EOB>")) {
  track_.found.reserve(kReservedLabels);
  if (rules_.boost != nullptr) track_.state.transducer->head().boost = rules_.boost.get();
  if (rules_.voice) voice_.emplace(recogniser_->gate_->vad(), *rules_.voice);
}

Status TransducerStream::push(std::span<const float> samples, std::vector<RecognitionEvent>& events) {
  SYRINX_CHECK(!finished_, "pushed behind the end");
  if (frames_ == nullptr) return status();  // it has failed before
  arrival_ = Stopwatch();
  constexpr size_t kAtOnce = kRecognitionRateHz;  // copied, to be bounded
  std::array<float, kAtOnce> bounded;
  while (!samples.empty()) {
    const size_t count = std::min(kAtOnce, samples.size());
    for (size_t i = 0; i < count; ++i) bounded[i] = bounded_sample(samples[i]);
    samples = samples.subspan(count);
    if (voice_) voice_->push({bounded.data(), count});
    frames_->push({bounded.data(), count}, [&](View<const float, 2>) { heard(events); });
  }
  if (changed_) report(false, events);
  recogniser_->note_work();
  if (track_.state.faults() != 0) leave();
  return status();
}

Status TransducerStream::finish(std::vector<RecognitionEvent>& events) {
  SYRINX_CHECK(!finished_, "finished twice");
  finished_ = true;
  arrival_ = Stopwatch();
  if (frames_ != nullptr) frames_->finish([&](View<const float, 2>) { heard(events); });
  report(true, events);
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
  if (frames_ != nullptr) frames_->flush([&](View<const float, 2>) { heard(events); });
  report(true, events);
  if (track_.state.faults() != 0) leave();
  return status();
}

// Behind some frames whose labels are in the track: a partial result can wait for the end of a push, the end of an
// utterance cannot.
void TransducerStream::heard(std::vector<RecognitionEvent>& events) {
  changed_ |= track_.found.size() > noted_;
  note(std::span(track_.found).subspan(noted_));
  noted_ = track_.found.size();
  // The last frame is computed when its beginning is there, so only what lies a frame before is sure to be judged.
  if (voice_) endpointer_.voice(voice_->last_voice_s(decoded_s() - frame_s()));
  if (endpointer_.check(decoded_s())) report(true, events);
}

double TransducerStream::frame_s() const { return recogniser_->model_->config().frame_s(); }
double TransducerStream::decoded_s() const { return static_cast<double>(track_.state.decoded()) * frame_s(); }

void TransducerStream::note(std::span<const transducer::Emission> fresh) {
  for (const transducer::Emission& emission : fresh) {
    const double end_s = static_cast<double>(emission.frame + emission.duration) * frame_s();
    if (emission.label == end_of_utterance_ || emission.label == end_of_backchannel_) {
      endpointer_.end_of_utterance(end_s, emission.label == end_of_backchannel_);
    } else if (!recogniser_->model_->vocabulary().is_special(emission.label)) {
      endpointer_.token(end_s);
    }
  }
}

// Text only grows, so a segment of which something has been told also has a final result.
void TransducerStream::report(bool is_final, std::vector<RecognitionEvent>& events) {
  const transducer::Model& model = *recogniser_->model_;
  const auto tokens = transducer::token_times(model.vocabulary(), model.config().decoder.kind, track_.found);
  const auto words = transducer::word_times(model.vocabulary(), tokens);
  RecognitionEvent event;
  event.segment = segment_;
  event.is_final = is_final;
  event.result = transcript_segment(tokens, words, {.frame_s = frame_s(), .words = rules_.words});
  event.stable_bytes = event.result.text.size();
  event.latency_ms = arrival_.elapsed_ms();
  const bool changed = event.result.text != reported_;
  changed_ = false;
  if (is_final) {
    endpointer_.restart(decoded_s());
    track_.state.forget_labels();
    track_.found.clear();
    noted_ = 0;
    reported_.clear();
    if (event.result.text.empty()) return;
    ++segment_;
    events.push_back(std::move(event));
  } else if (changed) {
    reported_ = event.result.text;
    events.push_back(std::move(event));
  }
}

Status TransducerStream::status() const {
  if (track_.state.faults() == 0) return {};
  return fail(Code::kDataLoss, "'{}' computed values that are not finite; its weights may be damaged",
              recogniser_->name());
}

}  // namespace syrinx
