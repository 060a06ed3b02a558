#include "stages.h"

#include "models/pocket_tts/speech_end.h"

namespace syrinx::pocket {
namespace {

View<const float, 2> rows_of(const std::vector<float>& values, size_t width) {
  return {values.data(), {values.size() / width, width}};
}

double number(const Json& object, const char* key, double otherwise) {
  const Json* const value = object.find(key);
  if (value == nullptr) return otherwise;
  if (value->whole() != nullptr) return static_cast<double>(*value->whole());
  return value->real() != nullptr ? *value->real() : otherwise;
}

Result<size_t> count(const Json& object, const char* key) {
  const double value = number(object, key, -1);
  if (value < 0) return fail(Code::kDataLoss, "the reference's chunk has no '{}'", key);
  return static_cast<size_t>(value);
}

Result<Generation::Chunk> read_chunk(const Json& json) {
  Generation::Chunk chunk;
  SYRINX_TRY(chunk.max_steps, count(json, "max_steps"));
  SYRINX_TRY(chunk.frames_after_end, count(json, "frames_after_eos"));
  SYRINX_TRY(chunk.steps, count(json, "steps"));
  SYRINX_TRY(chunk.frames, count(json, "frames"));
  if (const auto end = count(json, "eos_step")) chunk.end_step = *end;  // -1: the limit came first
  const Json* const ids = json.find("ids");
  if (ids == nullptr || ids->array() == nullptr) return fail(Code::kDataLoss, "the reference's chunk has no 'ids'");
  for (const Json& id : *ids->array()) chunk.ids.push_back(id.whole() == nullptr ? -1 : static_cast<int>(*id.whole()));
  return chunk;
}

Status same_end(const Generation& generation, const Generation::Chunk& chunk, const SpeechEnd& end) {
  if (end.steps() == chunk.steps && end.frames() == chunk.frames && end.end_step() == chunk.end_step) return {};
  return fail(Code::kInternal, "{}: {} steps, {} frames, end at {}; the maker's {}, {}, {}", generation.name,
              end.steps(), end.frames(), end.end_step() ? static_cast<int>(*end.end_step()) : -1, chunk.steps,
              chunk.frames, chunk.end_step ? static_cast<int>(*chunk.end_step) : -1);
}

// The noise of a generation, a block a step.
class NoiseRows {
 public:
  static Result<NoiseRows> of(const Generation& generation, const Safetensors& reference, size_t width) {
    SYRINX_TRY(std::vector<float> values, f32_array(reference, generation.name + ".noise"));
    size_t steps = 0;
    for (const Generation::Chunk& chunk : generation.chunks) steps += chunk.steps;
    if (values.size() != steps * width)
      return fail(Code::kDataLoss, "{}.noise has {} numbers, not {} steps of {}", generation.name, values.size(), steps,
                  width);
    return NoiseRows(std::move(values), width);
  }
  // A chunk at its limit asks for one more than it uses: the last one then.
  std::span<const float> row(size_t step) const {
    return std::span(values_).subspan(std::min(step * width_, values_.size() - width_), width_);
  }

 private:
  NoiseRows(std::vector<float> values, size_t width) : values_(std::move(values)), width_(width) {}
  std::vector<float> values_;
  size_t width_;
};

}  // namespace

Differences flow_lm_stages(FlowLm& flow, const Safetensors& reference) {
  const FlowLmWeights& w = flow.weights();
  SYRINX_TRY(const std::vector<float> latents, f32_array(reference, "voice.latents"));
  SYRINX_TRY(const std::vector<int32_t> ids, i32_array(reference, "text.ids"));
  SYRINX_TRY(const std::vector<float> fed, f32_array(reference, "step.latent"));
  const size_t voice = latents.size() / w.voice_width, steps = fed.size() / w.latent;
  if (latents.size() != voice * w.voice_width || fed.size() != steps * w.latent)
    return fail(Code::kDataLoss, "voice.latents or step.latent of the reference are another model's");
  SYRINX_TRY(FlowLmState state, FlowLmState::make(w, 1 + voice + ids.size() + steps));

  SeenStages seen;
  std::string stage = "voice";
  bool before_voice = !w.bos_before_voice.empty();  // the first row is that vector then, and no projection
  flow.set_probe([&](std::string_view what, size_t layer, View<const float, 2> rows) {
    if (what == "layer") return seen.add(fmt::format("{}.layer.{}", stage, layer), rows);
    for (size_t n = 0; n < rows.extent(0); ++n) {
      if (stage == "text") seen.add("text.embedding", {rows.row(n), rows.extent(1)});
      if (stage == "voice" && !before_voice) seen.add("voice.projected", {rows.row(n), rows.extent(1)});
      before_voice = false;
    }
  });
  SYRINX_TRY_VOID(flow.prefill_voice(rows_of(latents, w.voice_width), state));
  stage = "text";
  const size_t first = state.position;
  SYRINX_TRY_VOID(flow.prefill_text(ids, state));
  const std::vector<float> keys = state.layer_keys(state.layers - 1), values = state.layer_values(state.layers - 1);
  const std::array<size_t, 2> shape = {state.position - first, state.key_width()};
  seen.add("text.keys", View<const float, 2>(keys.data() + first * state.key_width(), shape));
  seen.add("text.values", View<const float, 2>(values.data() + first * state.key_width(), shape));
  stage = "step";
  for (size_t i = 0; i < steps; ++i) {
    const FlowLm::Stream stream{i == 0 ? nullptr : &fed[(i - 1) * w.latent], &state};
    const FlowLm::Steps step = flow.step({&stream, 1});
    const float logit = step.logit(0);
    seen.add("step.hidden", step.hidden);
    seen.add("step.logit", {&logit, 1});
  }
  flow.set_probe(nullptr);
  return seen.differences(reference);
}

Differences flow_head_stages(FlowHead& head, const FlowLmWeights& weights, const Safetensors& reference) {
  SYRINX_TRY(const std::vector<float> hidden, f32_array(reference, "step.hidden"));
  SYRINX_TRY(const std::vector<float> noise, f32_array(reference, "step.noise"));
  const size_t latent = weights.latent, frames = noise.size() / latent, width = weights.config.condition;
  if (noise.size() != frames * latent || hidden.size() != frames * width)
    return fail(Code::kDataLoss, "step.noise and step.hidden of the reference are another model's");
  SeenStages seen;
  size_t frame = 0;
  head.set_probe([&](std::string_view stage, size_t index, std::span<const float> values) {
    // Only the first frame's inner stages of the head are stored.
    if (frame > 0 && (stage == "block" || stage == "input")) return;
    // The maker computes the condition again at every evaluation.
    const size_t times = stage == "condition" ? head.evaluations() : 1;
    for (size_t i = 0; i < times; ++i)
      seen.add(stage == "block" ? fmt::format("step.block.{}", index) : fmt::format("step.{}", stage), values);
  });
  for (; frame < frames; ++frame) {
    std::vector<float> x(latent);
    const FlowHead::Stream stream{{&hidden[frame * width], width}, {&noise[frame * latent], latent}, x};
    head.sample({&stream, 1});
    seen.add("step.latent", x);
  }
  head.set_probe(nullptr);
  for (size_t k = 0; k < weights.head.times.size(); ++k)
    for (size_t i = 0; i < head.evaluations(); ++i)
      seen.add(
          fmt::format("step.time.{}", k),
          time_embedding(weights.head.times[k], static_cast<float>(i + k) / static_cast<float>(head.evaluations())));
  return seen.differences(reference);
}

Result<std::vector<Generation>> read_generations(const Json& facts, float eos_threshold) {
  const Json* const list = facts.find("generate");
  if (list == nullptr || list->array() == nullptr) return fail(Code::kDataLoss, "the reference has no list 'generate'");
  std::vector<Generation> generations;
  for (const Json& json : *list->array()) {
    Generation generation;
    generation.name = fmt::format("generate.{}", generations.size());
    generation.eos_threshold = static_cast<float>(number(json, "eos_threshold", eos_threshold));
    if (const Json* const voice = json.find("voice"); voice != nullptr && voice->string() != nullptr)
      generation.voice = *voice->string();
    const Json* const chunks = json.find("chunks");
    if (chunks == nullptr || chunks->array() == nullptr)
      return fail(Code::kDataLoss, "{} of the reference has no chunks", generation.name);
    for (const Json& chunk : *chunks->array()) {
      SYRINX_TRY(Generation::Chunk read, read_chunk(chunk));
      generation.chunks.push_back(std::move(read));
    }
    generations.push_back(std::move(generation));
  }
  return generations;
}

Differences generated_latents(const Generation& generation, const std::shared_ptr<const FlowLmState>& voice,
                              FlowLm& flow, FlowHead& head, const Safetensors& reference) {
  const FlowLmWeights& w = flow.weights();
  SYRINX_TRY(const NoiseRows noise, NoiseRows::of(generation, reference, w.latent));
  SeenStages seen;
  size_t before = 0;  // steps of the chunks before
  for (const Generation::Chunk& chunk : generation.chunks) {
    if (max_steps(chunk.ids.size()) != chunk.max_steps)
      return fail(Code::kInternal, "{}: at most {} steps, the maker's {}", generation.name, max_steps(chunk.ids.size()),
                  chunk.max_steps);
    SYRINX_TRY(FlowLmState state, FlowLmState::make(w, needed_positions(0, chunk.ids.size())));
    SYRINX_TRY_VOID(state.start_after(voice));
    SYRINX_TRY_VOID(flow.prefill_text(chunk.ids, state));
    SpeechEnd end(generation.eos_threshold, chunk.frames_after_end, chunk.max_steps);
    std::vector<float> latent(w.latent), denormalised(w.latent);
    while (end.goes_on()) {
      const FlowLm::Stream stream{end.steps() == 0 ? nullptr : latent.data(), &state};
      const FlowLm::Steps step = flow.step({&stream, 1});
      const float logit = step.logit(0);
      const FlowHead::Stream sampled{
          {step.hidden.row(0), step.hidden.extent(1)}, noise.row(before + end.steps()), latent};
      head.sample({&sampled, 1});
      seen.add(generation.name + ".logit", {&logit, 1});
      if (!end.speaks(logit)) break;
      for (size_t k = 0; k < w.latent; ++k) denormalised[k] = latent[k] * w.latent_std[k] + w.latent_mean[k];
      seen.add(generation.name + ".denormalised", denormalised);
    }
    if (state.full) return fail(Code::kInternal, "{}: the stream was full before its end", generation.name);
    SYRINX_TRY_VOID(same_end(generation, chunk, end));
    before += end.steps();
  }
  return seen.differences(reference);
}

Differences generated_sound(const Generation& generation, const std::shared_ptr<const FlowLmState>& voice,
                            ChunkSpeaker& speaker, const Safetensors& reference) {
  SYRINX_TRY(const NoiseRows noise, NoiseRows::of(generation, reference, speaker.latent()));
  SeenStages seen;
  std::vector<float> frame(speaker.frame_samples());
  size_t before = 0;
  for (const Generation::Chunk& chunk : generation.chunks) {
    SYRINX_TRY_VOID(speaker.begin(0, voice, chunk.ids, generation.eos_threshold, chunk.frames_after_end));
    while (speaker.next(0, noise.row(before + speaker.end(0).steps()), frame))
      for (const float& sample : frame) seen.add(generation.name + ".samples", {&sample, 1});
    SYRINX_TRY_VOID(same_end(generation, chunk, speaker.end(0)));
    before += speaker.end(0).steps();
  }
  return seen.differences(reference);
}

}  // namespace syrinx::pocket
