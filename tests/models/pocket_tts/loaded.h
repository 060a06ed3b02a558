// A small checkpoint with everything that speaks with it.
#pragma once

#include "base/json.h"
#include "fixtures.h"
#include "models/pocket_tts/chunk_speaker.h"

namespace syrinx::pocket {

struct Loaded {
  explicit Loaded(const std::string& name, Precision precision = Precision::kF32)
      : model(test_model(name)), reference(name + "/reference.safetensors") {
    flow = load(model, precision);
    const Arrays file(name + "/model.safetensors");
    const auto config = parse_config(file_text(name + "/config.yaml"), name);
    auto codec_weights = mimi::DecoderWeights::load(file.tensors(), name, config->config.mimi, precision);
    EXPECT_TRUE(codec_weights.has_value()) << codec_weights.error().message;
    codec = std::make_shared<const mimi::DecoderWeights>(std::move(*codec_weights));
    auto json = parse_json(file_text(name + "/reference.json"), "reference.json");
    EXPECT_TRUE(json.has_value()) << json.error().message;
    facts = std::move(*json);
  }
  std::shared_ptr<const FlowLmState> voice(nn::Runner& runner) const {
    FlowLm lm(flow, runner);
    auto state = std::make_shared<FlowLmState>(*FlowLmState::make(*flow, 16));
    const std::vector<float> projected = reference.get("voice.projected");
    EXPECT_TRUE(lm.prefill_projected(matrix_view(projected, model.config.transformer.width), *state).has_value());
    return state;
  }
  ChunkSpeaker speaker(nn::Runner& runner, size_t streams = 1) const {
    return ChunkSpeaker(flow, codec, *make_schedule(*flow, model.evaluations), runner, streams);
  }

  TestModel model;
  Arrays reference;
  std::shared_ptr<const FlowLmWeights> flow;
  std::shared_ptr<const mimi::DecoderWeights> codec;
  Json facts;
};

// Those that keep histories, keys and values in different types.
inline constexpr Precision kBothHistories[] = {Precision::kF32, Precision::kInt8};

inline std::vector<int32_t> ids_of(const Json& chunk) {
  std::vector<int32_t> ids;
  for (const Json& id : *chunk.find("ids")->array()) ids.push_back(static_cast<int32_t>(*id.whole()));
  return ids;
}

// Frames of a fixed noise; the chunk's own end is put out of reach.
inline std::vector<float> frames_of(ChunkSpeaker& speaker, const std::shared_ptr<const FlowLmState>& voice,
                                    std::span<const int32_t> ids, size_t frames) {
  std::vector<float> sound(frames * speaker.frame_samples());
  const std::vector<float> noise(speaker.latent(), 0.25f);
  EXPECT_TRUE(speaker.begin(0, voice, ids, 1e30f, 3).has_value());
  for (size_t i = 0; i < frames; ++i)
    EXPECT_TRUE(speaker.next(0, noise, std::span(sound).subspan(i * speaker.frame_samples(), speaker.frame_samples())));
  return sound;
}

}  // namespace syrinx::pocket
