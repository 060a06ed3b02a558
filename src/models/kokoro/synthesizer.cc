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
constexpr size_t kFramesPerSecond = kSampleRateHz / kSamplesPerFrame;

// While it lives, the runner's layers are cut; what a piece throws does not leave them so.
class Between {
 public:
  Between(nn::Runner& runner, const std::function<void()>& between, const std::function<bool()>& cuts)
      : runner_(runner) {
    runner_.set_between(between, cuts);
  }
  ~Between() { runner_.set_between({}); }
  Between(const Between&) = delete;
  Between& operator=(const Between&) = delete;

 private:
  nn::Runner& runner_;
};

}  // namespace

struct Synthesizer::Impl {
  Impl(std::shared_ptr<const Model> m, ThreadTeam& team)
      : model(std::move(m)),
        w(model->weights()),
        runner(team),
        text(w, runner),
        frames(w, runner),
        generator(w, runner) {}

  Status synthesize(const PieceInput& input, PieceOutput& output, const std::function<bool()>& is_wanted);
  Status check(const PieceInput& input) const;
  Status plan(const PieceInput& input, std::vector<int32_t>& durations);
  Status plan_durations(const PieceInput& input, std::vector<int32_t>& durations);
  bool make(const PieceInput& input, const std::function<bool()>& is_wanted, std::vector<float>& samples);
  bool is_long() const { return token_of_frame.size() >= kLongFrames; }
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
    if (total + static_cast<size_t>(d) > input.max_frames)
      return fail(Code::kLimitExceeded, "a piece of more than {} s; split the text or raise the speed",
                  input.max_frames / kFramesPerSecond);
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

// Durations, and the token that each frame belongs to.
Status Synthesizer::Impl::plan(const PieceInput& input, std::vector<int32_t>& durations) {
  const Config& c = w.config;
  tokens.assign(input.ids.size() + 2, 0);
  std::copy(input.ids.begin(), input.ids.end(), tokens.begin() + 1);
  const auto decoder_half = input.style.first(c.style), prosody_half = input.style.subspan(c.style);
  decoder_style.set(decoder_half);
  prosody_style.set(prosody_half);

  text.run(tokens, prosody_half, prosody_style);
  show("bert", text.bert(), c.bert);
  show("duration_encoder", text.encoded(), c.hidden + c.style);
  show("text", text.text(), c.hidden);
  if (probe) probe("duration_raw", tokens.size(), 1, text.raw_durations().data());
  return plan_durations(input, durations);
}

// False: it is not wanted any more.
bool Synthesizer::Impl::make(const PieceInput& input, const std::function<bool()>& is_wanted,
                             std::vector<float>& samples) {
  const Config& c = w.config;
  const auto goes_on = [&is_wanted] { return !is_wanted || is_wanted(); };
  if (!goes_on()) return false;
  frames.prosody(text.encoded(), token_of_frame, prosody_style);
  show("f0", frames.f0(), 1);
  show("n", frames.energy(), 1);
  if (!goes_on()) return false;
  frames.decode(text.text(), token_of_frame, decoder_style);
  show("asr", frames.asr(), c.hidden);
  show("decoder", frames.output(), c.generator);

  if (is_long()) {  // to give pages back takes milliseconds
    text.release();
    runner.between();
    frames.release();
    runner.between();
    w.release_all_but_generator();
    runner.between();
  }
  generator.source(frames.f0(), {.enabled = input.noise, .seed = input.seed});
  show("har", generator.spectrum_plane(), kSpectrum);
  if (!generator.run(frames.output(), decoder_style, goes_on)) return false;
  show("spectrum", generator.spectrum_plane(), kSpectrum);
  samples.resize(token_of_frame.size() * kSamplesPerFrame);
  generator.inverse(samples);
  return true;
}

Status Synthesizer::Impl::synthesize(const PieceInput& input, PieceOutput& output,
                                     const std::function<bool()>& is_wanted) {
  SYRINX_TRY_VOID(check(input));
  SYRINX_TRY_VOID(plan(input, output.durations));
  const bool is_made = make(input, is_wanted, output.samples);
  if (is_long()) generator.release();
  if (!is_made) return fail(Code::kCancelled, "the piece was cancelled while it was made");
  // Faults are gathered, not branched on: in f32 a value that is not finite anywhere reaches the sound, and the sum
  // shows it.  Bytes of int8 activations cannot hold one; against those, weights are tested when they are packed.
  float sum = 0.0f;
  for (const float v : output.samples) sum += v * 0.0f;
  if (sum != 0.0f || std::isnan(sum))
    return fail(Code::kDataLoss, "the model made values that are not finite; its file or the voice is damaged");
  return {};
}

Status Synthesizer::synthesize(const PieceInput& input, PieceOutput& output, const std::function<bool()>& is_wanted,
                               const std::function<void()>& between, const std::function<bool()>& cuts) {
  const Between cut(impl_->runner, between, cuts);
  return impl_->synthesize(input, output, is_wanted);
}

}  // namespace syrinx::kokoro
