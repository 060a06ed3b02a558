#include "models/pocket_tts/chunk_speaker.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace syrinx::pocket {

void fade_in_chunk(std::span<float> samples, size_t& risen) {
  for (float& sample : samples) {
    if (risen == kFadeInSamples) return;
    sample *= static_cast<float>(risen++) / (kFadeInSamples - 1);
  }
}

namespace {

// Streams whose frames a codec decodes together: enough that its weights come from the cache, few enough that what it
// makes of the frames stays there too.
constexpr size_t kFramesTogether = 8;

}  // namespace

// A runner and decoder for one member, which runs a stage by itself beside the others.
struct ChunkSpeaker::Solo {
  Solo(std::shared_ptr<const mimi::DecoderWeights> codec, size_t streams)
      : decoder(std::move(codec), alone.runner, streams) {}
  nn::SoloRunner alone;
  mimi::Decoder decoder;
};

ChunkSpeaker::ChunkSpeaker(const std::shared_ptr<const FlowLmWeights>& flow,
                           const std::shared_ptr<const mimi::DecoderWeights>& codec, const FlowSchedule& schedule,
                           nn::Runner& runner, size_t streams)
    : weights_(flow),
      runner_(runner),
      flow_(flow, runner, streams),
      decoder_(codec, runner, runner.team().size() > 1 ? 1 : std::min(kFramesTogether, streams)) {
  SYRINX_CHECK(decoder_.config().latent == weights_->latent, "codec {} model {}", decoder_.config().latent,
               weights_->latent);
  const auto members = static_cast<size_t>(runner.team().size());
  const size_t share = std::min(kFramesTogether, (streams + members - 1) / members);
  for (size_t member = 0; members > 1 && member < members; ++member)
    solos_.push_back(std::make_unique<Solo>(codec, share));
  streams_.resize(streams);
  first_head_ = &head_of(schedule);
  for (Stream& stream : streams_) {
    stream.head = first_head_;
    stream.hidden.resize(weights_->config.condition);
    stream.latent.resize(weights_->latent);
    stream.denormalised.resize(weights_->latent);
  }
  waiting_.reserve(streams);
  steps_.reserve(streams);
  samples_.reserve(streams);
  spoken_.reserve(streams);
  frames_.reserve(streams);
}

ChunkSpeaker::~ChunkSpeaker() = default;

FlowHead& ChunkSpeaker::head_of(const FlowSchedule& schedule) {
  for (const auto& head : heads_)
    if (head->evaluations() == schedule.evaluations) return *head;
  heads_.push_back(std::make_unique<FlowHead>(weights_, schedule, runner_,
                                              std::max<size_t>(1, streams_.size() / schedule.evaluations)));
  return *heads_.back();
}

void ChunkSpeaker::set_schedule(size_t stream, const FlowSchedule& schedule) {
  streams_[stream].head = &head_of(schedule);
}

void ChunkSpeaker::release(size_t index) {
  Stream& stream = streams_[index];
  stream.head = first_head_;
  stream.end = SpeechEnd(0.0f, 0, 0);
  stream.state = FlowLmState();
  stream.codec = mimi::DecoderState();
}

Status ChunkSpeaker::begin(size_t index, std::shared_ptr<const FlowLmState> voice, std::span<const int32_t> ids,
                           float eos_threshold, size_t frames_after, const nn::BetweenJobs& between) {
  Stream& stream = streams_[index];
  stream.end = SpeechEnd(eos_threshold, 0, 0);
  stream.stepped = stream.faulty = false;
  const size_t needed = needed_positions(0, ids.size());
  // Also when what a longer chunk left would not fit behind this voice.
  if (stream.state.capacity < needed || voice->position + stream.state.capacity > kMaxPositions) {
    SYRINX_TRY(stream.state, FlowLmState::make(*weights_, needed));
  }
  SYRINX_TRY_VOID(stream.state.start_after(std::move(voice)));
  SYRINX_TRY_VOID(flow_.prefill_text(ids, stream.state, between));
  if (stream.codec.quantised.size() == 0) {
    stream.codec = decoder_.make_state();
  } else {
    mimi::Decoder::reset(stream.codec);
  }
  stream.risen = 0;
  stream.end = SpeechEnd(eos_threshold, frames_after, max_steps(ids.size()));
  return {};
}

bool ChunkSpeaker::next(size_t stream, std::span<const float> noise, std::span<float> samples) {
  Frame frame{.stream = stream, .noise = noise, .samples = samples};
  next({&frame, 1});
  return frame.spoken;
}

void ChunkSpeaker::next(std::span<Frame> frames) {
  SYRINX_CHECK(frames.size() <= streams_.size(), "{} frames of {} streams", frames.size(), streams_.size());
  waiting_.clear();
  for (Frame& frame : frames) {
    SYRINX_CHECK(
        frame.stream < streams_.size() && frame.noise.size() == latent() && frame.samples.size() == frame_samples(),
        "stream {}, {} {}", frame.stream, frame.noise.size(), frame.samples.size());
    Stream& stream = streams_[frame.stream];
    if (stream.end.goes_on() && !stream.stepped) waiting_.push_back(&stream);
  }
  if (!waiting_.empty()) {
    name_steps(waiting_);
    keep_steps(waiting_, flow_.step(steps_));
  }
  spoken_.clear();
  for (Frame& frame : frames) {
    Stream& stream = streams_[frame.stream];
    // The frame after the last is not spoken, so it need not be drawn.
    frame.spoken = stream.end.goes_on() && stream.end.speaks(stream.logit);
    stream.stepped = false;
    if (frame.spoken) spoken_.push_back(&frame);
  }
  if (spoken_.empty()) return;
  sample_streams();
  decode();
  for (const Frame* frame : spoken_) fade_in_chunk(frame->samples, streams_[frame->stream].risen);
}

void ChunkSpeaker::name_steps(std::span<Stream* const> streams) {
  steps_.clear();
  for (Stream* stream : streams)
    steps_.push_back({stream->end.steps() == 0 ? nullptr : stream->latent.data(), &stream->state});
}

void ChunkSpeaker::keep_steps(std::span<Stream* const> streams, const FlowLm::Steps& steps) {
  for (size_t n = 0; n < streams.size(); ++n) {
    std::copy_n(steps.hidden.row(n), streams[n]->hidden.size(), streams[n]->hidden.data());
    streams[n]->logit = steps.logit(n);
    // A sum is no number if one of its terms is none; an infinite one is no better.
    const float sum = std::accumulate(streams[n]->hidden.begin(), streams[n]->hidden.end(), steps.logit(n));
    streams[n]->faulty |= !std::isfinite(sum);
    streams[n]->stepped = true;
  }
}

// From noise to the latents of the frames that are spoken.
void ChunkSpeaker::sample_streams() {
  for (const auto& head : heads_) {
    samples_.clear();
    for (const Frame* frame : spoken_) {
      Stream& stream = streams_[frame->stream];
      if (stream.head != head.get()) continue;
      samples_.push_back({.hidden = stream.hidden, .noise = frame->noise, .latent = stream.latent});
      if (samples_.size() < head->streams()) continue;
      head->sample(samples_);
      samples_.clear();
    }
    if (!samples_.empty()) head->sample(samples_);
  }
  for (const Frame* frame : spoken_) {
    Stream& stream = streams_[frame->stream];
    for (size_t i = 0; i < stream.latent.size(); ++i)
      stream.denormalised[i] = stream.latent[i] * weights_->latent_std[i] + weights_->latent_mean[i];
  }
}

// From latents to samples: several streams are shared among the members, a stream that is alone has the whole team for
// its first frame and the language model's next step beside it from then on.
void ChunkSpeaker::decode() {
  frames_.clear();
  for (const Frame* frame : spoken_) {
    Stream& stream = streams_[frame->stream];
    frames_.push_back({.state = &stream.codec, .latent = stream.denormalised, .samples = frame->samples});
  }
  // Frames `all`, as evenly as the decoder's room allows.
  const auto decode_some = [&](mimi::Decoder& decoder, Range all) {
    const size_t count = all.end - all.begin, calls = (count + kFramesTogether - 1) / kFramesTogether;
    for (size_t i = 0; i < calls; ++i) {
      const Range own = split_range(count, static_cast<int>(i), static_cast<int>(calls));
      decoder.decode(std::span(frames_).subspan(all.begin + own.begin, own.end - own.begin));
    }
  };
  if (frames_.size() > 1 && !solos_.empty()) {
    runner_.team().run([&](int member) {
      decode_some(solos_[static_cast<size_t>(member)]->decoder,
                  split_range(frames_.size(), member, runner_.team().size()));
    });
    return;
  }
  Stream& stream = streams_[spoken_.front()->stream];
  if (spoken_.size() == 1 && solos_.size() == 2 && stream.end.frames() > 1 && stream.end.goes_on()) {
    waiting_.assign(1, &stream);
    name_steps(waiting_);
    flow_.begin_step(steps_);
    decoder_.begin_frames(frames_);
    nn::Crew &codec = decoder_.crew(), &model = flow_.crew();
    codec.reset();
    model.reset();
    const auto work_at_codec = [&](nn::Crew::Seat seat) {
      decoder_.work_at_frames(seat);
      return seat;
    };
    const auto work_at_model = [&](nn::Crew::Seat seat) {
      flow_.work_at_step(seat);
      return seat;
    };
    runner_.team().run([&](int member) {
      if (member == 0) {
        codec.leave(work_at_codec(codec.first(member)));
        work_at_model(model.join(member));
      } else {
        model.leave(work_at_model(model.first(member)));
        work_at_codec(codec.join(member));
      }
    });
    decoder_.end_frames();
    keep_steps(waiting_, flow_.end_step());
    return;
  }
  decode_some(decoder_, {0, frames_.size()});
}

}  // namespace syrinx::pocket
