// The maker's results for the small checkpoints (tools/reference/qwen_tts_talker.py), and a generator that runs them.
// The environment's SYRINX_QWEN_TTS_DATA names another folder of theirs, of full size say.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/qwen_tts/checkpoint.h"
#include "models/qwen_tts/frame_generator.h"
#include "models/qwen_tts/prompt.h"
#include "models/qwen_tts/tokenizer.h"
#include "models/qwen_tts/weights.h"
#include "relative.h"
#include "safetensors_arrays.h"

namespace syrinx::qwen_tts::test {

inline std::string data_folder(const std::string& name) {
  const char* const other = std::getenv("SYRINX_QWEN_TTS_DATA");
  return (other == nullptr ? std::string(SYRINX_TEST_DATA) + "/qwen_tts" : std::string(other)) + "/" + name;
}

template <class T>
T good(Result<T> result) {
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
  return result ? *std::move(result) : T{};
}

inline std::vector<int32_t> ids_of(const Json* list) {
  std::vector<int32_t> ids;
  for (size_t i = 0; list != nullptr && list->array() != nullptr && i < list->array()->size(); ++i) {
    const Json& one = (*list->array())[i];
    if (one.whole() != nullptr) {
      ids.push_back(static_cast<int32_t>(*one.whole()));
      continue;
    }
    const std::vector<int32_t> more = ids_of(&one);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

struct Case {
  std::string name, kind, text, language, speaker, instruction, reference_text;
  bool text_first = true;
  std::vector<int32_t> ids, instruction_ids, reference_ids, reference_codes;
  std::vector<int32_t> codes;  // [frames, codebooks]
};

inline Json facts() {
  std::ifstream file(data_folder("talker.json"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto json = parse_json(text, "talker.json");
  EXPECT_TRUE(json.has_value());
  return json ? *std::move(json) : Json();
}

inline std::vector<Case> cases() {
  std::vector<Case> all;
  const Json file = facts();
  for (const Json& one : *file.find("cases")->array()) {
    const auto word = [&](const char* key) {
      const Json* const value = one.find(key);
      return value == nullptr ? std::string() : *value->string();
    };
    all.push_back({.name = word("name"),
                   .kind = word("kind"),
                   .text = word("text"),
                   .language = word("language"),
                   .speaker = word("speaker"),
                   .instruction = word("instruction"),
                   .reference_text = word("reference_text"),
                   .text_first = *one.find("text_first")->boolean(),
                   .ids = ids_of(one.find("ids")),
                   .instruction_ids = ids_of(one.find("instruction_ids")),
                   .reference_ids = ids_of(one.find("reference_ids")),
                   .reference_codes = ids_of(one.find("reference_codes")),
                   .codes = ids_of(one.find("codes"))});
  }
  return all;
}
inline Case case_of(const std::string& name) {
  for (Case& one : cases())
    if (one.name == name) return one;
  ADD_FAILURE() << name;
  return {};
}

inline const SafetensorsArrays& arrays() {
  static const SafetensorsArrays file(data_folder("talker.safetensors"));
  return file;
}

inline std::shared_ptr<const Weights> weights_of(const std::string& kind, Precision precision = Precision::kF32) {
  const auto checkpoint = Checkpoint::open(data_folder(kind));
  EXPECT_TRUE(checkpoint.has_value()) << (checkpoint ? "" : checkpoint.error().message);
  return checkpoint ? good(load_weights(*checkpoint, {.precision = precision})) : nullptr;
}

inline Prompt prompt_of(const Case& one, const Config& config) {
  const auto tokenizer = Tokenizer::load(data_folder(one.kind), config);
  EXPECT_TRUE(tokenizer.has_value()) << (tokenizer ? "" : tokenizer.error().message);
  if (!tokenizer) return {};
  const std::vector<int32_t> text = good(tokenizer->encode(one.text));
  const std::vector<int32_t> instruction = good(tokenizer->encode_instruction(one.instruction));
  const std::vector<int32_t> reference =
      one.reference_text.empty() ? std::vector<int32_t>() : good(tokenizer->encode(one.reference_text));
  const std::vector<float> voice = one.kind == "base" ? arrays().get(one.name + ".x_vector") : std::vector<float>();
  return good(make_prompt(config, {.role = tokenizer->role(),
                                   .text = text,
                                   .instruction = instruction,
                                   .language = one.language,
                                   .speaker = one.speaker,
                                   .voice = voice,
                                   .reference_text = reference,
                                   .reference_codes = one.reference_codes,
                                   .text_first = one.text_first}));
}

inline SpeechSettings greedy(size_t most_frames = 1000) {
  SpeechSettings settings;
  settings.draws.talker.samples = settings.draws.predictor.samples = false;
  settings.draws.max_frames = most_frames;
  return settings;
}

// A generator with a team of its own.
struct Running {
  explicit Running(std::shared_ptr<const Weights> weights, int threads = 2, size_t streams = 4)
      : team(threads), runner(team), generator(good(FrameGenerator::make(std::move(weights), runner, streams))) {}
  // A stream that has read its prompt.
  FrameStream begun(const Prompt& prompt, const SpeechSettings& settings, size_t positions = 512) {
    FrameStream stream = good(generator->make_stream(positions));
    const Status status = generator->begin(stream, prompt, settings);
    EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
    while (!generator->read_prompt(stream)) {
    }
    return stream;
  }
  // Frames of one stream until it ends, [frames, codebooks].
  std::vector<int32_t> frames(FrameStream& stream) {
    std::vector<int32_t> codes;
    for (FrameStream* const one = &stream; stream.end() == End::kNone;) {
      generator->step({&one, 1});
      if (stream.end() == End::kNone) codes.insert(codes.end(), stream.codes().begin(), stream.codes().end());
    }
    return codes;
  }

  ThreadTeam team;
  nn::Runner runner;
  std::unique_ptr<FrameGenerator> generator;
};

}  // namespace syrinx::qwen_tts::test
