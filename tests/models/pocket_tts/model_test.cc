// Checkpoints from their folders, and voices from all that a voice can be made of, against the maker's exported voice.
#include "models/pocket_tts/model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "../../base/temp_folder.h"
#include "fixtures.h"
#include "models/mimi/decoder.h"
#include "models/mimi/encoder.h"
#include "models/pocket_tts/voice_recording.h"
#include "models/pocket_tts/voice_state.h"

namespace syrinx::pocket {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr double kBound = 1e-5;  // in parts of the maximum, of keys and values

std::shared_ptr<const Model> load_model(const std::string& path, const LoadOptions& options = {}) {
  auto model = Model::load(path, options);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  return *model;
}

Error load_error(const std::string& path, const LoadOptions& options = {}) {
  const auto model = Model::load(path, options);
  EXPECT_FALSE(model.has_value()) << path;
  return model ? Error() : model.error();
}

VoiceFile stored_voice(const Model& model, const std::string& name) {
  const std::string bytes = file_text(name);
  auto read = parse_voice_file(std::as_bytes(std::span(bytes)), name, model.config().flow_lm);
  if (!read) {
    ADD_FAILURE() << read.error().message;
    return {};
  }
  return *read;
}

std::vector<float> recording(const Model& model) {
  const auto file = MappedFile::open(data("voice.wav"));
  EXPECT_TRUE(file.has_value());
  auto ready = read_voice_recording(file->bytes(), static_cast<int>(model.config().mimi.sample_rate), /*truncate=*/true,
                                    "voice.wav");
  EXPECT_TRUE(ready.has_value()) << ready.error().message;
  return *ready;
}

double difference(const Voice& ours, const Voice& theirs) {
  EXPECT_EQ(ours.positions, theirs.positions);
  EXPECT_EQ(ours.layers.size(), theirs.layers.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(ours.layers.size(), theirs.layers.size()); ++i) {
    worst = std::max(worst, relative(ours.layers[i].keys, theirs.layers[i].keys));
    worst = std::max(worst, relative(ours.layers[i].values, theirs.layers[i].values));
  }
  return worst;
}

class PocketModel : public ::testing::TestWithParam<TestModel> {};
INSTANTIATE_TEST_SUITE_P(All, PocketModel, ::testing::ValuesIn(test_models()), name_of);

TEST_P(PocketModel, ClonesTheMakersVoice) {
  const auto model = load_model(data(GetParam().name));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->tokenizer().size(), model->config().flow_lm.text_bins);
  ThreadTeam team(2);
  nn::Runner runner(team);
  const auto cloned = clone_voice(*model, recording(*model), runner);
  ASSERT_TRUE(cloned.has_value()) << cloned.error().message;
  const Voice theirs = std::get<Voice>(stored_voice(*model, GetParam().name + "/voice.safetensors"));
  const double apart = difference(exported(**cloned), theirs);
  EXPECT_LE(apart, kBound);
  std::printf("%s: a cloned voice within %.2g of its maximum\n", GetParam().name.c_str(), apart);
}

TEST_P(PocketModel, AStoredVoiceIsTheStateItWasWrittenFrom) {
  const auto model = load_model(data(GetParam().name + "/config.yaml"));
  ASSERT_NE(model, nullptr);
  ThreadTeam team(1);
  nn::Runner runner(team);
  const VoiceFile stored = stored_voice(*model, GetParam().name + "/voice.safetensors");
  const auto voice = make_voice(*model, stored, runner);
  ASSERT_TRUE(voice.has_value()) << voice.error().message;
  EXPECT_EQ((*voice)->position, std::get<Voice>(stored).positions);
  EXPECT_EQ(difference(exported(**voice), std::get<Voice>(stored)), 0.0);
}

TEST(PocketModelVoice, IsMadeInTurnsOfOthersLength) {
  const auto model = load_model(data("english"));
  ASSERT_NE(model, nullptr);
  ThreadTeam team(1);
  nn::Runner runner(team);
  std::vector<float> sound;  // 30 s
  const std::vector<float> second = recording(*model);
  while (sound.size() < 30 * size_t{kSampleRateHz}) sound.insert(sound.end(), second.begin(), second.end());
  size_t turns = 0;
  const auto voice = clone_voice(*model, sound, runner, [&](const std::function<void()>& work) {
    ++turns;
    work();
  });
  ASSERT_TRUE(voice.has_value()) << voice.error().message;
  EXPECT_GE(turns, (*voice)->position / 12 + (*voice)->position / 126);
  // The same as all at once: a turn changes no bit.
  mimi::Encoder encoder(*model->load_encoder(), runner);
  const size_t frames = encoder.frames(sound.size()), width = encoder.config().inner_width;
  std::vector<float> latents(frames * width);
  mimi::EncoderState encoding = encoder.make_state();
  encoder.encode(encoding, sound, {latents.data(), {frames, width}});
  FlowLmState state = *FlowLmState::make(*model->flow_lm(), frames + 1);
  FlowLm lm(model->flow_lm(), runner);
  ASSERT_TRUE(lm.prefill_voice({latents.data(), {frames, width}}, state).has_value());
  EXPECT_EQ((*voice)->position, frames + 1);
  EXPECT_EQ(difference(exported(**voice), exported(state)), 0.0);
}

// Narrow precisions keep bf16: the maker's f32 voice is rounded once, and what was rounded goes out and in unchanged.
TEST_P(PocketModel, AVoiceGoesThroughItsFileRoundedOnce) {
  ThreadTeam team(1);
  nn::Runner runner(team);
  for (const Precision precision : {Precision::kBf16, Precision::kInt8, Precision::kInt4}) {
    const auto model = load_model(data(GetParam().name), {.precision = precision});
    ASSERT_NE(model, nullptr);
    const Voice theirs = std::get<Voice>(stored_voice(*model, GetParam().name + "/voice.safetensors"));
    const auto first = make_voice(*model, theirs, runner);
    ASSERT_TRUE(first.has_value()) << first.error().message;
    const Voice ours = exported(**first);
    ASSERT_EQ(ours.layers.size(), theirs.layers.size());
    for (size_t i = 0; i < ours.layers.size(); ++i) {
      for (const auto& [got, from] : {std::pair(ours.layers[i].keys, theirs.layers[i].keys),
                                      std::pair(ours.layers[i].values, theirs.layers[i].values)}) {
        ASSERT_EQ(got.size(), from.size());
        for (size_t k = 0; k < got.size(); ++k) ASSERT_EQ(got[k], bf16_to_f32(f32_to_bf16(from[k])));
      }
    }
    const std::string file = write_voice_file(ours, model->config().flow_lm);
    const auto read = parse_voice_file(std::as_bytes(std::span(file)), "ours", model->config().flow_lm);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    const auto second = make_voice(*model, *read, runner);
    ASSERT_TRUE(second.has_value()) << second.error().message;
    EXPECT_EQ(difference(exported(**second), ours), 0.0);
  }
}

TEST(PocketModelVoice, APromptOfOlderCheckpointsIsRunThroughTheModel) {
  const auto model = load_model(data("english_2026-01"));
  ASSERT_NE(model, nullptr);
  ThreadTeam team(1);
  nn::Runner runner(team);
  const Arrays reference("english_2026-01/reference.safetensors");
  const size_t width = model->config().flow_lm.transformer.width;
  VoicePrompt prompt;
  prompt.rows = reference.get("voice.projected");
  prompt.positions = prompt.rows.size() / width;
  const auto voice = make_voice(*model, prompt, runner);
  ASSERT_TRUE(voice.has_value()) << voice.error().message;
  const Voice theirs = std::get<Voice>(stored_voice(*model, "english_2026-01/voice.safetensors"));
  EXPECT_LE(difference(exported(**voice), theirs), kBound);
}

// A folder with the english checkpoint under other names or with another configuration.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(const std::string& yaml, const std::string& config = "config.yaml") {
    fs::copy(data("english/model.safetensors"), folder_.path() + "/model.safetensors");
    fs::copy(data("tokenizer.json"), folder_.path() + "/tokenizer.json");
    write(config, yaml);
  }
  void write(const std::string& name, const std::string& text) { write_text(folder_.path() + "/" + name, text); }
  std::string path(const std::string& name = "") const { return folder_.path() + (name.empty() ? "" : "/" + name); }

 private:
  TempFolder folder_;
};

// The english configuration with `from` replaced.
std::string yaml(const std::string& from = "", const std::string& to = "") {
  std::string text = file_text("english/config.yaml");
  const std::string up = "../tokenizer.json";
  text.replace(text.find(up), up.size(), "tokenizer.json");
  if (from.empty()) return text;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(PocketCheckpoint, IsFoundByFolderConfigurationOrWeights) {
  CheckpointFolder folder(yaml(), "english.yml");
  for (const char* name : {"", "english.yml", "model.safetensors"})
    EXPECT_EQ(find_checkpoint(folder.path(name))->config, folder.path("english.yml")) << name;
  EXPECT_NE(load_model(folder.path()), nullptr);
  folder.write("model.yaml", yaml());
  EXPECT_EQ(find_checkpoint(folder.path("model.safetensors"))->config, folder.path("model.yaml"));
  const Error several = load_error(folder.path());
  EXPECT_EQ(several.code, Code::kInvalidArgument);
  EXPECT_THAT(several.message, HasSubstr("2 configurations"));
  folder.write("config.yaml", yaml());
  EXPECT_EQ(find_checkpoint(folder.path())->config, folder.path("config.yaml"));
  EXPECT_EQ(load_error(folder.path("tokenizer.json")).code, Code::kInvalidArgument);
  EXPECT_EQ(load_error(folder.path("nothing")).code, Code::kNotFound);
}

TEST(PocketCheckpoint, FilesOfAHubAreLookedForBesideTheConfiguration) {
  const std::string place = "hf://kyutai/pocket-tts/languages/english/model.safetensors@db04f0e6";
  CheckpointFolder folder(yaml("weights_path: model.safetensors", "weights_path: " + place));
  EXPECT_NE(load_model(folder.path()), nullptr);

  std::vector<std::string> asked;
  LoadOptions options;
  options.locate = [&](const std::string& wanted) -> Result<std::string> {
    asked.push_back(wanted);
    return folder.path("elsewhere.safetensors");
  };
  EXPECT_NE(load_model(folder.path(), options), nullptr);
  EXPECT_THAT(asked, testing::IsEmpty()) << "it lies beside the configuration";
  fs::rename(folder.path("model.safetensors"), folder.path("elsewhere.safetensors"));
  const Error missing = load_error(folder.path());
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_THAT(missing.message, HasSubstr(place));
  EXPECT_NE(load_model(folder.path(), options), nullptr);
  EXPECT_THAT(asked, testing::ElementsAre(place));
}

TEST(PocketCheckpoint, WithoutTheGatedWeightsItSpeaksButDoesNotClone) {
  CheckpointFolder folder(yaml("weights_path: model.safetensors",
                               "weights_path: hf://kyutai/pocket-tts/gated.safetensors\n"
                               "weights_path_without_voice_cloning: hf://kyutai/open/model.safetensors"));
  const auto model = load_model(folder.path());
  ASSERT_NE(model, nullptr);
  const auto encoder = model->load_encoder();
  ASSERT_FALSE(encoder.has_value());
  EXPECT_EQ(encoder.error().code, Code::kUnsupported);
  EXPECT_THAT(encoder.error().message, HasSubstr("without voice cloning"));
}

TEST(PocketCheckpoint, TheCodecMayHaveWeightsOfItsOwn) {
  CheckpointFolder folder(yaml("mimi:\n", "mimi:\n  weights_path: codec.safetensors\n"));
  fs::copy(data("english/model.safetensors"), folder.path("codec.safetensors"));
  const auto model = load_model(folder.path());
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE(model->load_encoder().has_value());
  fs::copy_file(data("english/voice.safetensors"), folder.path("codec.safetensors"),
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(load_error(folder.path()).code, Code::kUnsupported);
}

TEST(PocketCheckpoint, FaultsNameTheirPart) {
  struct Case {
    const char *from, *to;
    Code code;
    const char* sentence;
  };
  const Case cases[] = {
      {"weights_path: model.safetensors", "weights_path: gone.safetensors", Code::kNotFound, "gone.safetensors"},
      {"weights_path: model.safetensors\n", "", Code::kDataLoss, "weights_path"},
      {"tokenizer_path: tokenizer.json", "tokenizer_path: model.safetensors", Code::kDataLoss, "model.safetensors"},
      {"n_bins: 400", "n_bins: 401", Code::kDataLoss, "400 pieces"},
      {"sample_rate: 24000", "sample_rate: 48000", Code::kUnsupported, "48000"},
      {"num_layers: 2", "num_layers: 3", Code::kDataLoss, "flow_lm.transformer.layers.2"},
      {"flow:\n    depth: 2", "flow:\n    type: drifting\n    depth: 2", Code::kDataLoss, "time_embed"},
      {"flow_lm:", "model_type: whisper\nother:", Code::kDataLoss, "flow_lm"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.to);
    CheckpointFolder folder(yaml(c.from, c.to));
    const Error error = load_error(folder.path());
    EXPECT_EQ(error.code, c.code) << error.message;
    EXPECT_THAT(error.message, HasSubstr(c.sentence));
  }
}

// The samples of three latents.
std::vector<float> decoded(const Model& model, nn::Runner& runner) {
  constexpr size_t kFrames = 3;
  mimi::Decoder decoder(model.decoder(), runner);
  mimi::DecoderState state = decoder.make_state();
  const size_t width = model.config().mimi.latent;
  std::vector<float> latents(kFrames * width), samples(kFrames * model.config().mimi.frame_samples());
  for (size_t i = 0; i < latents.size(); ++i) latents[i] = std::sin(static_cast<float>(i));
  decoder.decode(state, matrix_view(latents, width), samples);
  return samples;
}

void expect_the_same_model(Precision precision) {
  SCOPED_TRACE(precision_name(precision));
  const TempFolder home;
  const std::string folder = home.file("cache/packed");
  const auto plain = load_model(data("english"), {.precision = precision});
  const auto packing = load_model(data("english"), {.cache_dir = folder, .precision = precision});
  const auto cached = load_model(data("english"), {.cache_dir = folder, .precision = precision});
  ASSERT_TRUE(plain && packing && cached);
  EXPECT_EQ(plain->flow_lm()->packed, nullptr);
  EXPECT_NE(packing->flow_lm()->packed, nullptr) << "once packed, weights come from the cache";
  EXPECT_NE(cached->decoder()->packed, nullptr);
  ThreadTeam team(2);
  nn::Runner runner(team);
  const auto voice = clone_voice(*plain, recording(*plain), runner);
  ASSERT_TRUE(voice.has_value()) << voice.error().message;
  const std::vector<float> sound = decoded(*plain, runner);
  EXPECT_NE(sound, std::vector<float>(sound.size()));
  for (const auto& model : {packing, cached}) {
    const auto again = clone_voice(*model, recording(*model), runner);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(difference(exported(**again), exported(**voice)), 0.0);
    EXPECT_EQ(decoded(*model, runner), sound);
  }
}

// The output must not depend on where the weights come from.
TEST(PocketModelCache, AStartFromPackedWeightsIsTheSameModel) {
  for (const Precision precision : kAllPrecisions) expect_the_same_model(precision);
}

// One byte in the middle of the arrays: the load that finds it makes the file anew and takes the weights from there.
TEST(PocketModelCache, ADamagedFileIsMadeAgainAtOnce) {
  const TempFolder folder;
  const LoadOptions options{.cache_dir = folder.path(), .precision = Precision::kInt4};
  ASSERT_NE(load_model(data("english"), options), nullptr);
  std::string path;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().extension() == ".packed") path = entry.path().string();
  ASSERT_FALSE(path.empty());
  const std::string whole = read_text(path);
  for (const size_t part : {3, 5, 7}) {
    std::string damaged = whole;
    char& byte = damaged[damaged.find_first_not_of('\0', damaged.size() * part / 8)];
    byte = static_cast<char>(byte ^ 1);
    write_text(path, damaged);
    const auto model = load_model(data("english"), options);
    ASSERT_NE(model, nullptr);
    EXPECT_NE(model->flow_lm()->packed, nullptr);
    EXPECT_EQ(read_text(path), whole) << part << " eighths in";
  }
}

TEST(PocketModelCache, AnotherConfigurationOfTheSameWeightsIsStillAnError) {
  const TempFolder folder;
  ASSERT_NE(load_model(data("english"), {.cache_dir = folder.path()}), nullptr);
  std::string config = file_text("english/config.yaml");
  const size_t at = config.find("num_layers: 2");
  ASSERT_NE(at, std::string::npos);
  config[at + 12] = '1';
  const TempFolder changed;
  fs::create_directory(changed.file("english"));
  write_text(changed.file("english/config.yaml"), config);
  fs::copy_file(data("english/model.safetensors"), changed.file("english/model.safetensors"));
  fs::copy_file(data("tokenizer.json"), changed.file("tokenizer.json"));
  const Error error = load_error(changed.file("english"), {.cache_dir = folder.path()});
  EXPECT_EQ(error.code, Code::kDataLoss) << error.message;
}

}  // namespace
}  // namespace syrinx::pocket
