#include "bench/suite/whisper_measure.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/signals.h"
#include "models/whisper/decoder.h"
#include "models/whisper/encoder.h"
#include "models/whisper/features.h"

namespace syrinx::bench {
namespace {

using whisper::AudioState, whisper::Decoder, whisper::DecoderInput, whisper::DecoderState, whisper::Encoder,
    whisper::LogMel;

constexpr size_t kPrompt = 4;

size_t window_positions(const whisper::Config& config, size_t asked) {
  return asked == 0 ? config.audio_positions : std::min(asked, config.audio_positions);
}

tl::unexpected<Error> stopped() {
  return fail(Code::kCancelled, "stopped while measuring; the figures are not complete");
}

// Steps of `batch` hypotheses on one window, from the prompt on.
Result<StepFigures> measure_steps(Decoder& decoder, DecoderState& state, const AudioState& audio, size_t batch,
                                  const WhisperWork& work) {
  StepFigures figures{.batch = batch, .token = {}};
  const auto vocabulary = static_cast<int64_t>(decoder.model().config().vocabulary);
  std::vector<DecoderInput> inputs(batch);
  for (size_t run = 0; run <= work.runs; ++run) {
    if (cancel_requested()) return stopped();
    for (size_t h = 0; h < batch; ++h) state.reset(h);
    for (size_t t = 0; t < work.tokens; ++t) {
      for (size_t h = 0; h < batch; ++h)
        inputs[h] = {h, static_cast<int32_t>((static_cast<int64_t>(t * batch + h) * 7919) % vocabulary), &audio};
      const Stopwatch watch;
      decoder.step(inputs, state);
      if (run > 0) figures.token.add(watch.elapsed_ms());
    }
  }
  figures.token.sort();
  return figures;
}

// The likeliest token that may stand there.
int32_t likeliest(std::span<const float> logits, const whisper::Config& config, bool first) {
  std::vector<float> allowed(logits.begin(), logits.end());
  const auto forbid = [&](const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) allowed[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
  };
  forbid(config.suppress_ids);
  if (first) forbid(config.suppress_ids_begin);
  return static_cast<int32_t>(std::max_element(allowed.begin(), allowed.end()) - allowed.begin());
}

}  // namespace

Result<WhisperFigures> measure_whisper(const std::shared_ptr<const whisper::Model>& model, ThreadTeam& team,
                                       const WhisperWork& work) {
  const whisper::Config& config = model->config();
  const size_t positions = window_positions(config, work.positions);
  const size_t total = positions * whisper::kFramesPerPosition * whisper::kHopSamples;
  const size_t most = *std::max_element(work.batches.begin(), work.batches.end());
  SYRINX_TRY(const LogMel log_mel, LogMel::create(config.mels));
  SYRINX_TRY(DecoderState state, DecoderState::make(*model, most));
  AudioState audio = AudioState::make(*model);
  Encoder encoder(model, team);
  Decoder decoder(model, team, most);
  WhisperFigures figures;
  Rng rng(1, 0);
  std::vector<float> sound(total);
  for (float& sample : sound) sample = 0.1f * (rng.uniform() - 0.5f);
  const int32_t prompt[kPrompt] = {1, 2, 3, 4};
  for (size_t run = 0; run <= work.runs; ++run) {
    if (cancel_requested()) return stopped();
    const Stopwatch mel_watch;
    std::vector<float> mel = log_mel_of(log_mel, sound, total, team);
    const View<float, 2> frames(mel.data(), {mel.size() / config.mels, config.mels});
    whisper::normalise(frames, whisper::peak(frames), frames);
    const double mel_ms = mel_watch.elapsed_ms();
    const Stopwatch encode_watch;
    encoder.encode(frames, audio);
    const double encode_ms = encode_watch.elapsed_ms();
    state.reset(0);
    const Stopwatch prompt_watch;
    decoder.prefill(0, prompt, audio, state);
    if (run == 0) continue;
    figures.prefill.add(prompt_watch.elapsed_ms());
    figures.mel.add(mel_ms);
    figures.encode.add(encode_ms);
  }
  for (Times* times : {&figures.mel, &figures.encode, &figures.prefill}) times->sort();
  for (const size_t batch : work.batches) {
    SYRINX_TRY(StepFigures steps, measure_steps(decoder, state, audio, batch, work));
    figures.steps.push_back(std::move(steps));
  }
  figures.peak_rss_bytes = peak_rss_bytes();
  return figures;
}

WhisperCost whisper_cost(const whisper::Config& c, size_t asked) {
  const auto d = static_cast<double>(c.width);
  const auto p = static_cast<double>(window_positions(c, asked));
  const auto encoder = static_cast<double>(c.encoder_layers), decoder = static_cast<double>(c.decoder_layers);
  const double encoder_ffn = 2 * d * static_cast<double>(c.encoder_hidden);
  const double decoder_ffn = 2 * d * static_cast<double>(c.decoder_hidden);
  WhisperCost cost;
  cost.linear_flop = 2 * p * (encoder * (4 * d * d + encoder_ffn) + decoder * 2 * d * d);
  cost.attention_flop = 2 * encoder * 2 * p * p * d;
  cost.conv_flop = 2 * 3 * d * (2 * p * static_cast<double>(c.mels) + p * d);
  cost.token_weights = decoder * (6 * d * d + decoder_ffn) + static_cast<double>(c.vocabulary) * d;
  cost.cross_values = decoder * 2 * p * d;
  return cost;
}

WhisperFloor whisper_floor(const WhisperCost& cost, Precision precision, const kernels::MachineLimits& limits) {
  const double f32 = limits.f32_gop_per_s.all_threads, bf16 = std::max(f32, limits.bf16_gop_per_s.all_threads);
  const double rest = precision == Precision::kF32 ? f32 : bf16;
  const double linear = precision == Precision::kInt8 ? limits.int8_best().all_threads : rest;
  const double weight_bytes = precision == Precision::kF32 ? 4 : precision == Precision::kBf16 ? 2 : 1;
  const double cache_bytes = precision == Precision::kF32 ? 4 : 2;
  return {.encode_ms = 1e-6 * (cost.linear_flop / linear + (cost.attention_flop + cost.conv_flop) / rest),
          .token_ms = 1e-6 * (cost.token_weights * weight_bytes + cost.cross_values * cache_bytes) /
                      limits.read_gb_per_s.all_threads};
}

Heard hear(const std::shared_ptr<const whisper::Model>& model, const whisper::Tokens& tokens,
           std::span<const float> samples, ThreadTeam& team) {
  const whisper::Config& config = model->config();
  const LogMel log_mel = *LogMel::create(config.mels);
  AudioState audio = AudioState::make(*model);
  Encoder encoder(model, team);
  Decoder decoder(model, team, 1);
  DecoderState state = *DecoderState::make(*model, 1);
  const std::vector<int32_t> prompt = tokens.prompt(tokens.find_language("en"), false, false);
  const size_t window = config.audio_positions * whisper::kFramesPerPosition * whisper::kHopSamples;
  Heard heard;
  const Stopwatch watch;
  for (size_t first = 0; first < samples.size(); first += window) {
    const Stopwatch mel_watch;
    std::vector<float> mel =
        log_mel_of(log_mel, samples.subspan(first, std::min(window, samples.size() - first)), window, team);
    const View<float, 2> frames(mel.data(), {mel.size() / config.mels, config.mels});
    whisper::normalise(frames, whisper::peak(frames), frames);
    heard.mel_ms += mel_watch.elapsed_ms();
    const Stopwatch encode_watch;
    encoder.encode(frames, audio);
    heard.encode_ms += encode_watch.elapsed_ms();
    const Stopwatch decode_watch;
    state.reset(0);
    int32_t token = likeliest(decoder.prefill(0, prompt, audio, state), config, true);
    for (size_t t = 0; t < config.text_positions / 2 && token != tokens.end_of_text; ++t) {
      heard.tokens.push_back(token);
      const DecoderInput input{0, token, &audio};
      const auto logits = decoder.step({&input, 1}, state);
      token = likeliest({logits.row(0), config.vocabulary}, config, false);
    }
    heard.decode_ms += decode_watch.elapsed_ms();
  }
  heard.total_ms = watch.elapsed_ms();
  return heard;
}

}  // namespace syrinx::bench
