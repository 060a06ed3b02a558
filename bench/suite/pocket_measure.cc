#include "bench/suite/pocket_measure.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/signals.h"
#include "bench/suite/peak_sample.h"
#include "models/mimi/encoder.h"
#include "models/pocket_tts/chunk_speaker.h"
#include "models/pocket_tts/noise.h"

namespace syrinx::bench {
namespace {

using pocket::ChunkSpeaker;
using pocket::FlowLm;
using pocket::FlowLmState;

constexpr size_t kStreamRounds = 40;
constexpr uint64_t kSeed = 1;
constexpr float kNoEnd = std::numeric_limits<float>::infinity();

// Shared by all measurements.
struct Bench {
  const pocket::Model& model;
  nn::Runner& runner;
  const PocketWork& work;
  std::vector<int32_t> ids;
  pocket::FlowSchedule schedule;
  pocket::Noise noise;
  std::shared_ptr<const FlowLmState> voice;

  bool cancelled() const { return cancel_requested(); }
};

tl::unexpected<Error> stopped() { return fail(Code::kCancelled, "stopped while measuring; no figure is complete"); }

std::vector<float> random_values(size_t count, float scale, uint64_t stream) {
  std::vector<float> values(count);
  Rng(kSeed, stream).fill_normal(values);
  for (float& value : values) value *= scale;
  return values;
}

Status measure_prompt(Bench& b, PocketFigures& figures) {
  const size_t width = b.model.flow_lm()->voice_width;
  const std::vector<float> latents = random_values(b.work.voice_frames * width, 1.0f, 1);
  FlowLm flow(b.model.flow_lm(), b.runner);
  for (size_t run = 0; run <= b.work.runs; ++run) {
    if (b.cancelled()) return stopped();
    b.voice = nullptr;  // a program has one
    const Stopwatch watch;
    SYRINX_TRY(FlowLmState voice, FlowLmState::make(*b.model.flow_lm(), b.work.voice_frames + 1));
    SYRINX_TRY_VOID(flow.prefill_voice({latents.data(), {b.work.voice_frames, width}}, voice));
    if (run > 0) figures.prompt.add(watch.elapsed_ms());
    b.voice = std::make_shared<const FlowLmState>(std::move(voice));
  }
  return {};
}

Status measure_first_sound(Bench& b, ThreadTeam& team, PocketFigures& figures) {
  ChunkSpeaker speaker(b.model.flow_lm(), b.model.decoder(), b.schedule, b.runner);
  std::vector<float> noise(speaker.latent()), samples(speaker.frame_samples());
  CoreWaits waits(team);
  for (size_t run = 0; run <= b.work.first_sounds; ++run) {
    if (b.cancelled()) return stopped();
    b.noise.fill(noise);
    waits.since_last();
    const Stopwatch watch;
    SYRINX_TRY_VOID(speaker.begin(0, b.voice, b.ids, kNoEnd, 0));
    speaker.next(0, noise, samples);
    const double ms = watch.elapsed_ms();
    if (run > 0) figures.first_sound.add(ms, waits);
  }
  return {};
}

Status measure_runs(Bench& b, PocketFigures& figures) {
  ChunkSpeaker speaker(b.model.flow_lm(), b.model.decoder(), b.schedule, b.runner);
  std::vector<float> noise(speaker.latent()), samples(speaker.frame_samples());
  for (size_t run = 0; run <= b.work.runs; ++run) {
    if (b.cancelled()) return stopped();
    const Stopwatch watch;
    SYRINX_TRY_VOID(speaker.begin(0, b.voice, b.ids, kNoEnd, 0));
    for (size_t frame = 0; frame < b.work.frames; ++frame) {
      const double before_ms = watch.elapsed_ms();
      b.noise.fill(noise);
      speaker.next(0, noise, samples);
      if (run > 0 && frame > 0) figures.frame.add(watch.elapsed_ms() - before_ms);
      note_peak(samples, figures.peak_sample);  // some microseconds of the run
    }
    if (run > 0) figures.run.add(watch.elapsed_ms());
  }
  return {};
}

// The same frames, one stage after another, which tells them apart.
Status measure_stages(Bench& b, PocketFigures& figures) {
  const auto& weights = *b.model.flow_lm();
  FlowLm flow(b.model.flow_lm(), b.runner);
  pocket::FlowHead head(b.model.flow_lm(), b.schedule, b.runner);
  mimi::Decoder decoder(b.model.decoder(), b.runner);
  mimi::DecoderState codec = decoder.make_state();
  std::vector<float> noise(weights.latent), latent(weights.latent), denormalised(weights.latent);
  std::vector<float> samples(decoder.config().frame_samples());
  SYRINX_TRY(FlowLmState state, FlowLmState::make(weights, pocket::needed_positions(0, b.ids.size())));
  for (size_t run = 0; run <= b.work.runs; ++run) {
    if (b.cancelled()) return stopped();
    const Stopwatch text_watch;
    SYRINX_TRY_VOID(state.start_after(b.voice));
    SYRINX_TRY_VOID(flow.prefill_text(b.ids, state));
    if (run > 0) figures.text.add(text_watch.elapsed_ms());
    mimi::Decoder::reset(codec);
    for (size_t frame = 0; frame < b.work.frames; ++frame) {
      b.noise.fill(noise);
      const Stopwatch watch;
      const FlowLm::Stream stream{frame == 0 ? nullptr : latent.data(), &state};
      const FlowLm::Steps steps = flow.step({&stream, 1});
      const double lm_ms = watch.elapsed_ms();
      const pocket::FlowHead::Stream drawn{{steps.hidden.data(), weights.config.condition}, noise, latent};
      head.sample({&drawn, 1});
      const double head_ms = watch.elapsed_ms();
      for (size_t i = 0; i < latent.size(); ++i)
        denormalised[i] = latent[i] * weights.latent_std[i] + weights.latent_mean[i];
      decoder.decode(codec, {denormalised.data(), {1, denormalised.size()}}, samples);
      const double frame_ms = watch.elapsed_ms();
      if (run == 0) continue;
      figures.flow_lm.add(lm_ms);
      figures.head.add(head_ms - lm_ms);
      figures.codec.add(frame_ms - head_ms);
      figures.stages.add(frame_ms);
    }
  }
  return {};
}

Status measure_cloning(Bench& b, PocketFigures& figures) {
  const Stopwatch load_watch;
  SYRINX_TRY(const auto weights, b.model.load_encoder());
  figures.encoder_load_ms = load_watch.elapsed_ms();
  mimi::Encoder encoder(weights, b.runner);
  FlowLm flow(b.model.flow_lm(), b.runner);
  const auto count = static_cast<size_t>(b.work.recording_seconds * static_cast<double>(weights->config.sample_rate));
  const std::vector<float> recording = random_values(count, 0.1f, 2);
  const size_t frames = encoder.frames(count), width = weights->config.inner_width;
  std::vector<float> latents(frames * width);
  for (size_t run = 0; run <= b.work.runs; ++run) {
    if (b.cancelled()) return stopped();
    const Stopwatch watch;
    mimi::EncoderState state = encoder.make_state();
    encoder.encode(state, recording, {latents.data(), {frames, width}});
    const double encode_ms = watch.elapsed_ms();
    SYRINX_TRY(FlowLmState voice, FlowLmState::make(*b.model.flow_lm(), frames + 1));
    SYRINX_TRY_VOID(flow.prefill_voice({latents.data(), {frames, width}}, voice));
    if (run == 0) continue;
    figures.encode.add(encode_ms);
    figures.encode_prompt.add(watch.elapsed_ms() - encode_ms);
  }
  return {};
}

// A frame of each stream in one call.
Status measure_streams(Bench& b, size_t streams, PocketFigures& figures) {
  ChunkSpeaker speaker(b.model.flow_lm(), b.model.decoder(), b.schedule, b.runner, streams);
  std::vector<float> noise(streams * speaker.latent()), samples(streams * speaker.frame_samples());
  std::vector<ChunkSpeaker::Frame> frames;
  for (size_t i = 0; i < streams; ++i) {
    SYRINX_TRY_VOID(speaker.begin(i, b.voice, b.ids, kNoEnd, 0));
    frames.push_back({.stream = i,
                      .noise = std::span(noise).subspan(i * speaker.latent(), speaker.latent()),
                      .samples = std::span(samples).subspan(i * speaker.frame_samples(), speaker.frame_samples())});
  }
  StreamsFigures result{.streams = streams, .round = {}};
  for (size_t round = 0; round < std::min(kStreamRounds, b.work.frames); ++round) {
    if (b.cancelled()) return stopped();
    for (size_t i = 0; i < streams; ++i) b.noise.fill(std::span(noise).subspan(i * speaker.latent(), speaker.latent()));
    const Stopwatch watch;
    speaker.next(frames);
    result.round.add(watch.elapsed_ms());
  }
  figures.streams.push_back(std::move(result));
  return {};
}

Result<Bench> prepare(const pocket::Model& model, nn::Runner& runner, const PocketWork& work) {
  const size_t most = pocket::max_steps(work.tokens);
  if (work.frames > most) {
    return fail(Code::kInvalidArgument,
                "a text of {} tokens has {} frames at most, not {}; give fewer frames or more tokens", work.tokens,
                most, work.frames);
  }
  for (const size_t streams : work.streams) {
    if (streams < 1 || streams > pocket::kMaxStreams)
      return fail(Code::kInvalidArgument, "{} streams cannot be measured; give 1 to {}", streams, pocket::kMaxStreams);
  }
  const pocket::Config& config = model.config();
  std::vector<int32_t> ids(work.tokens);
  Rng rng(kSeed);
  for (int32_t& id : ids) id = static_cast<int32_t>(rng.next_u32() % config.flow_lm.text_bins);
  const bool matching = config.flow_lm.head == pocket::HeadType::kFlowMatching;
  SYRINX_TRY(auto schedule,
             pocket::make_schedule(*model.flow_lm(), matching ? pocket::kMinFlowMatchingEvaluations : 1));
  SYRINX_TRY(auto noise, pocket::Noise::create(pocket::Noise::Generator::kPhilox, kSeed, model.flow_lm()->latent,
                                               {.temperature = config.temperature, .clamp = {}}));
  return Bench{model, runner, work, std::move(ids), std::move(schedule), std::move(noise), {}};
}

void sort_all(PocketFigures& f) {
  for (Times* times :
       {&f.prompt, &f.encode, &f.encode_prompt, &f.run, &f.text, &f.flow_lm, &f.head, &f.codec, &f.stages, &f.frame})
    times->sort();
  f.first_sound.sort();
  for (StreamsFigures& streams : f.streams) streams.round.sort();
}

double transformer_weights(const nn::TransformerConfig& t) {
  const size_t attention = t.width * (2 * t.attention_width + 2 * t.key_width());
  return static_cast<double>(t.layers * (attention + 2 * t.width * t.hidden));
}

// Multiply-adds of a frame's convolutions; `rows` positions at the slow end.
double seanet_macs(const mimi::SeanetConfig& s, size_t rows) {
  size_t width = s.filters << s.ratios.size();
  size_t macs = rows * s.width * width * s.kernel;
  for (const size_t ratio : s.ratios) {
    macs += rows * width * (width / 2) * 2 * ratio;
    width /= 2;
    rows *= ratio;
    const size_t inner = width / s.compress;
    macs += s.residual_layers * rows * width * inner * (s.residual_kernel + 1);
  }
  return static_cast<double>(macs + rows * width * s.last_kernel);
}

}  // namespace

Result<PocketFigures> measure_pocket(const pocket::Model& model, ThreadTeam& team, const PocketWork& work) {
  nn::Runner runner(team);
  SYRINX_TRY(Bench b, prepare(model, runner, work));
  PocketFigures figures;
  SYRINX_TRY_VOID(measure_prompt(b, figures));
  SYRINX_TRY_VOID(measure_first_sound(b, team, figures));
  SYRINX_TRY_VOID(measure_runs(b, figures));
  figures.peak_rss_bytes = peak_rss_bytes();
  figures.rss_bytes = current_rss_bytes();
  if (work.stages) SYRINX_TRY_VOID(measure_stages(b, figures));
  if (work.recording_seconds > 0) SYRINX_TRY_VOID(measure_cloning(b, figures));
  for (const size_t streams : work.streams) SYRINX_TRY_VOID(measure_streams(b, streams, figures));
  sort_all(figures);
  return figures;
}

FrameCost frame_cost(const pocket::Config& config, size_t evaluations) {
  const pocket::FlowLmConfig& lm = config.flow_lm;
  const mimi::Config& codec = config.mimi;
  const size_t w = lm.head_width;
  const size_t modulation = w * (3 * w * lm.head_depth + 2 * w);
  const size_t network = codec.latent * w + lm.head_depth * 2 * w * w + w * codec.latent;
  // Weights that are read again within a frame come from memory again: a head does not fit the second-level cache.
  FrameCost cost;
  cost.flow_lm_weights = transformer_weights(lm.transformer) +
                         static_cast<double>(codec.latent * lm.transformer.width + lm.condition * w) +
                         static_cast<double>(evaluations * (modulation + network));
  if (lm.project_condition) cost.flow_lm_weights += static_cast<double>(lm.condition * lm.transformer.width);

  const size_t rows = codec.resample_stride();
  const nn::TransformerConfig& t = codec.decoder_transformer;
  const size_t resample = codec.latent * codec.outer_width + 2 * rows * codec.outer_width;
  cost.codec_flop = 2 * (static_cast<double>(resample) + static_cast<double>(rows) * transformer_weights(t) +
                         seanet_macs(codec.decoder, rows));
  return cost;
}

FrameFloor frame_floor(const FrameCost& cost, double bytes_a_weight, const kernels::MachineLimits& limits) {
  const double read_ms = cost.flow_lm_weights * bytes_a_weight / (limits.read_gb_per_s.all_threads * 1e6);
  const double f32 = limits.f32_gop_per_s.all_threads, bf16 = limits.bf16_gop_per_s.all_threads;
  return {.codec_f32_ms = read_ms + cost.codec_flop / (f32 * 1e6),
          .codec_bf16_ms = bf16 > 0 ? read_ms + cost.codec_flop / (bf16 * 1e6) : 0};
}

}  // namespace syrinx::bench
