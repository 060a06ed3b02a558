#include "server/wyoming/utterance_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"

namespace syrinx::server::wyoming {

// How long the sound may be is seen to where it arrives.
UtteranceStream::UtteranceStream(const RecognitionModel& model, ArrivingSound& sound, const JobReports& reports)
    : model_(model),
      sound_(sound),
      waiting_(std::make_shared<WaitingSound>(model.id(), reports, system_clock())),
      first_word_(model.id(), reports, system_clock()),
      limits_{.max_seconds = std::numeric_limits<double>::infinity()},
      sink_{.begin = [this](int rate_hz, std::optional<uint64_t> /*frames*/) -> Status {
              SYRINX_TRY(resampler_, StreamResampler::create(rate_hz, kRecognitionRateHz));
              return {};
            },
            .add = [this](std::span<const float> samples) -> Status {
              resampler_->push(samples, some_);
              return {};
            }},
      decoder_(sound.format(), name_, limits_, sink_) {
  sound_.count_by(waiting_);
}

UtteranceStream::~UtteranceStream() {
  sound_.give_up();
  waiting_->clear();
}

// Voice activity would end utterances, and here there is but one.
Status UtteranceStream::start(const std::string& language) {
  TranscribeOptions options;
  options.language = language;
  options.voice_activity = false;
  options.endpoints.off = true;
  SYRINX_TRY(stream_, model_.recogniser().start(options));
  return decoder_.push({});  // its format, of a sound without a sample, too
}

Status UtteranceStream::hear(std::span<const std::byte> some, int64_t came_ns, SlotWatch& watch) {
  SYRINX_TRY_VOID(decoder_.push(some));
  SYRINX_TRY_VOID(push(came_ns, watch));
  const uint64_t before = sound_.samples_in(frames_);
  frames_ += some.size() / sound_.format().frame_bytes();
  waiting_->take_off(sound_.samples_in(frames_) - before);
  return {};
}

Status UtteranceStream::finish(SlotWatch& watch) {
  SYRINX_TRY_VOID(decoder_.flush());
  resampler_->finish(some_);
  const int64_t ended_ns = sound_.ended_ns();
  SYRINX_TRY_VOID(push(ended_ns, watch));
  return ask_engine(watch, [&] { return waiting_->finish(*stream_, ended_ns, events_); });
}

Status UtteranceStream::push(int64_t came_ns, SlotWatch& watch) {
  if (some_.empty()) return {};
  first_word_.hear(some_.size(), came_ns);
  samples_ += some_.size();
  SYRINX_TRY_VOID(ask_engine(watch, [&] { return waiting_->push(*stream_, some_, came_ns, events_); }));
  watch.note_audio(static_cast<double>(some_.size()) / kRecognitionRateHz);
  some_.clear();
  return {};
}

template <class Call>
Status UtteranceStream::ask_engine(SlotWatch& watch, const Call& call) {
  const Stopwatch took;
  events_.clear();
  Status done = [&] {
    const EngineWait wait(watch);
    return call();
  }();
  took_ms_ += took.elapsed_ms();
  note_words();
  return done;
}

// Only what will not change; segments are joined as Transcript::text() joins them.
void UtteranceStream::note_words() {
  for (const RecognitionEvent& event : events_) {
    const std::string& text = event.result.text;
    const size_t known = event.is_final ? text.size() : std::min(event.stable_bytes, text.size());
    if (known > told_bytes_) {
      if (told_bytes_ == 0 && !text_.empty()) text_ += ' ';
      text_.append(text, told_bytes_, known - told_bytes_);
      told_bytes_ = known;
      if (const auto waited_s = first_word_.tell(event.result.start_s)) first_word_s_ = waited_s;
    }
    if (event.is_final) told_bytes_ = 0;
  }
}

}  // namespace syrinx::server::wyoming
