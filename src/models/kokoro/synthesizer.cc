#include <algorithm>
#include <cmath>

#include "models/kokoro/frame_side.h"
#include "models/kokoro/generator.h"
#include "models/kokoro/model.h"
#include "models/kokoro/text_side.h"
#include "models/kokoro/weights.h"

namespace syrinx::kokoro {
namespace {
// From here (10 s) on a piece gives back what its generator does not need: the generator's planes then are the larger
// part of memory, and taking pages again costs less than a hundredth of the piece's time.
constexpr size_t kLongFrames = 400;
constexpr size_t kMaxFrames = 6000;  // 150 s: what 510 ids give at the slowest speed, with room
}  // namespace

struct Synthesizer::Impl {
  Impl(std::shared_ptr<const Model> m, ThreadTeam& team)
      : model(std::move(m)),
        w(model->weights()),
        runner(team),
        text(w, runner),
        frames(w, runner),
        generator(w, runner) {}

  Status check(const PieceInput& input) const;
  Status plan_durations(const PieceInput& input, std::vector<int32_t>& durations);
  void show(const char* stage, const nn::Plane& plane, size_t columns) const;

  std::shared_ptr<const Model> model;
  const Weights& w;
  nn::Runner runner;
  TextSide text;
  FrameSide frames;
  Generator generator;
  StyleNorm prosody_style, decoder_style;
  std::vector<int32_t> tokens, token_of_frame;
  Probe probe;
};

Synthesizer::Synthesizer(std::shared_ptr<const Model> model, ThreadTeam& team)
    : impl_(std::make_unique<Impl>(std::move(model), team)) {}
Synthesizer::~Synthesizer() = default;
void Synthesizer::set_probe(Probe probe) { impl_->probe = std::move(probe); }

Status Synthesizer::Impl::check(const PieceInput& input) const {
  const size_t limit = std::min<size_t>(kMaxIds, w.config.positions - 2);
  if (input.ids.empty() || input.ids.size() > limit)
    return fail(Code::kLimitExceeded, "a piece of {} phonemes; it takes 1 to {}: split the text", input.ids.size(),
                limit);
  if (input.style.size() != 2 * size_t{w.config.style})
    return fail(Code::kInvalidArgument, "a voice row of {} values; the model takes {}", input.style.size(),
                2 * w.config.style);
  if (!(input.speed >= 0.25f && input.speed <= 4.0f))
    return fail(Code::kInvalidArgument, "speed {}; it goes from 0.25 to 4", input.speed);
  for (const int32_t id : input.ids) {
    if (id < 0 || id >= static_cast<int32_t>(w.config.tokens))
      return fail(Code::kInvalidArgument, "phoneme id {}; the model knows 0 to {}", id, w.config.tokens - 1);
  }
  if (!input.durations.empty() && input.durations.size() != input.ids.size() + 2)
    return fail(Code::kInvalidArgument, "{} durations for {} phonemes and two ends", input.durations.size(),
                input.ids.size());
  for (const float v : input.style)
    if (!std::isfinite(v)) return fail(Code::kInvalidArgument, "the voice row holds a value that is not finite");
  return {};
}

// Rounds half to even, at least one frame; then the token that each frame belongs to.
Status Synthesizer::Impl::plan_durations(const PieceInput& input, std::vector<int32_t>& durations) {
  durations.assign(input.durations.begin(), input.durations.end());
  if (durations.empty()) {
    for (const float raw : text.raw_durations()) {
      const float frames_exact = raw / input.speed;
      if (!std::isfinite(frames_exact))
        return fail(Code::kDataLoss, "the model's durations are not finite; its file is damaged");
      durations.push_back(std::max(1, static_cast<int32_t>(std::nearbyint(frames_exact))));
    }
  }
  size_t total = 0;
  for (const int32_t d : durations) {
    if (d < 1) return fail(Code::kInvalidArgument, "a duration of {} frames; each is at least 1", d);
    if (total + static_cast<size_t>(d) > kMaxFrames)
      return fail(Code::kLimitExceeded, "a piece of more than {} s; split the text or raise the speed",
                  kMaxFrames / 40);
    total += static_cast<size_t>(d);
  }
  token_of_frame.clear();
  for (size_t i = 0; i < durations.size(); ++i)
    token_of_frame.insert(token_of_frame.end(), static_cast<size_t>(durations[i]), static_cast<int32_t>(i));
  return {};
}

void Synthesizer::Impl::show(const char* stage, const nn::Plane& plane, size_t columns) const {
  if (!probe) return;
  std::vector<float> values;
  for (size_t t = 0; t < plane.rows(); ++t) values.insert(values.end(), plane.f32(t), plane.f32(t) + columns);
  probe(stage, plane.rows(), columns, values.data());
  // The probe may replace what a stage made; planes are only const to their readers.
  nn::Plane& writable = const_cast<nn::Plane&>(plane);
  for (size_t t = 0; t < plane.rows(); ++t) std::copy_n(values.data() + t * columns, columns, writable.f32(t));
}

Status Synthesizer::synthesize(const PieceInput& input, PieceOutput& output) {
  Impl& s = *impl_;
  const Config& c = s.w.config;
  SYRINX_TRY_VOID(s.check(input));
  s.tokens.assign(input.ids.size() + 2, 0);
  std::copy(input.ids.begin(), input.ids.end(), s.tokens.begin() + 1);
  const auto decoder_half = input.style.first(c.style), prosody_half = input.style.subspan(c.style);
  s.decoder_style.set(decoder_half);
  s.prosody_style.set(prosody_half);

  s.text.run(s.tokens, prosody_half, s.prosody_style);
  s.show("bert", s.text.bert(), c.bert);
  s.show("duration_encoder", s.text.encoded(), c.hidden + c.style);
  s.show("text", s.text.text(), c.hidden);
  if (s.probe) s.probe("duration_raw", s.tokens.size(), 1, s.text.raw_durations().data());
  SYRINX_TRY_VOID(s.plan_durations(input, output.durations));

  s.frames.prosody(s.text.encoded(), s.token_of_frame, s.prosody_style);
  s.show("f0", s.frames.f0(), 1);
  s.show("n", s.frames.energy(), 1);
  s.frames.decode(s.text.text(), s.token_of_frame, s.decoder_style);
  s.show("asr", s.frames.asr(), c.hidden);
  s.show("decoder", s.frames.output(), c.generator);

  const bool is_long = s.token_of_frame.size() >= kLongFrames;
  if (is_long) {
    s.text.release();
    s.frames.release();
    s.w.release_all_but_generator();
  }
  s.generator.source(s.frames.f0(), {.enabled = input.noise, .seed = input.seed});
  s.show("har", s.generator.spectrum_plane(), kSpectrum);
  s.generator.run(s.frames.output(), s.decoder_style, [](int, const nn::Plane&) {});
  s.show("spectrum", s.generator.spectrum_plane(), kSpectrum);
  output.samples.resize(s.token_of_frame.size() * kSamplesPerFrame);
  s.generator.inverse(output.samples);
  if (is_long) s.generator.release();
  // Faults are gathered, not branched on: in f32 a value that is not finite anywhere reaches the sound, and the sum
  // shows it.  Bytes of int8 activations cannot hold one; against those, weights are tested when they are packed.
  float sum = 0.0f;
  for (const float v : output.samples) sum += v * 0.0f;
  if (sum != 0.0f || std::isnan(sum))
    return fail(Code::kDataLoss, "the model made values that are not finite; its file or the voice is damaged");
  return {};
}

}  // namespace syrinx::kokoro
