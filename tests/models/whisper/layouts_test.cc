// Whisper's other layouts beside transformers and openai-whisper (tools/reference/whisper_layouts.py): models that know
// English alone, large-v3's mels and languages, and turbo's few layers in the decoder.
#include "layouts.h"

#include <algorithm>
#include <map>

#include "fixtures.h"
#include "transcripts.h"

namespace syrinx::whisper {
namespace {

using namespace test;

constexpr const char* kLayouts[] = {"english", "large-v3", "turbo"};

// English as CTranslate2 packages it, the others as transformers does; or the other way round.
std::string write(const std::string& name, bool swapped, const TempFolder& folder) {
  const Json& told = layout(name);
  const bool ct2 = (name == "english") != swapped;
  write_layout_weights(told, ct2, folder.path());
  if (ct2)
    write_layout_lines(told, folder.path());
  else
    write_layout_json(told, folder.path());
  return folder.path();
}

struct Layout {
  explicit Layout(const std::string& of, bool swapped = false) : name(of), told(layout(of)) {
    auto loaded = Model::load(write(name, swapped, folder));
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
    model = *loaded;
    auto found = Vocabulary::load(*model);
    EXPECT_TRUE(found.has_value()) << found.error().message;
    vocabulary = *found;
  }
  bool multilingual() const { return truth(told, "multilingual"); }
  std::vector<float> mel() const {
    return multilingual() ? arrays.get("large-v3.mel") : Arrays().get("mel");  // 80 are the small checkpoint's
  }
  std::vector<float> of(const std::string& array) const { return arrays.get(name + "." + array); }
  std::vector<int32_t> ids(const std::string& array) const { return arrays.get<int32_t>(name + "." + array); }

  std::string name;
  const Json& told;
  TempFolder folder;
  SafetensorsArrays arrays{data("layouts.safetensors")};
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Vocabulary> vocabulary;
};

TEST(WhisperLayouts, HaveTheMakersTokens) {
  for (const char* const name : kLayouts) {
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", name, swapped));
      const Layout layout(name, swapped);
      const Json& told = layout.told;
      const Tokens& tokens = layout.vocabulary->tokens;
      EXPECT_EQ(layout.model->config().mels, whole(told, "mels"));
      EXPECT_EQ(layout.model->config().vocabulary, whole(told, "vocabulary"));
      EXPECT_EQ(layout.model->config().encoder_layers, whole(told, "encoder_layers"));
      EXPECT_EQ(layout.model->config().decoder_layers, whole(told, "decoder_layers"));
      EXPECT_EQ(layout.model->config().multilingual(), layout.multilingual());
      EXPECT_EQ(tokens.multilingual, layout.multilingual());
      const std::map<std::string, int32_t> ours = {
          {"end_of_text", tokens.end_of_text}, {"start_of_transcript", tokens.start_of_transcript},
          {"translate", tokens.translate},     {"transcribe", tokens.transcribe},
          {"start_of_lm", tokens.start_of_lm}, {"start_of_previous", tokens.start_of_previous},
          {"no_speech", tokens.no_speech},     {"no_timestamps", tokens.no_timestamps},
          {"first_time", tokens.first_time}};
      for (const auto& [special, id] : ours) EXPECT_EQ(id, *told.find(special)->whole()) << special;
      const Json::Array& languages = list(told, "languages");
      ASSERT_EQ(tokens.languages.size(), languages.size());
      for (size_t i = 0; i < languages.size(); ++i) EXPECT_EQ(tokens.languages[i].code, *languages[i].string());
      EXPECT_EQ(suppressed_tokens(layout.vocabulary->bpe, tokens), ids_of(told, "suppressed"));
      for (const Json& prompt : list(told, "prompts")) {
        const Language* const language = tokens.find_language(string_of(prompt, "language"));
        ASSERT_NE(language, nullptr);
        EXPECT_EQ(tokens.prompt(language, truth(prompt, "translate"), true), ids_of(prompt, "timed"));
        EXPECT_EQ(tokens.prompt(language, truth(prompt, "translate"), false), ids_of(prompt, "untimed"));
      }
    }
  }
}

// Files of two models side by side: all specials would be another's.
TEST(WhisperLayouts, TokensOfAnotherModelAreRefused) {
  const auto error_of = [](const char* weights, const Json& tokens) {
    const TempFolder folder;
    write_layout_weights(layout(weights), true, folder.path());
    write_layout_lines(tokens, folder.path());
    const auto model = Model::load(folder.path());
    EXPECT_TRUE(model.has_value());
    const auto vocabulary = Vocabulary::load(**model);
    EXPECT_FALSE(vocabulary.has_value());
    return vocabulary ? std::string() : vocabulary.error().message;
  };
  const Json &english = layout("english"), &large = layout("large-v3");
  const auto ends = [](const std::string& message, const std::string& end) {
    EXPECT_TRUE(message.ends_with(end)) << message;
  };
  ends(error_of("large-v3", english),
       "vocabulary.txt' makes 51864 tokens, the model's table has 51866 rows; take the file that belongs to it");
  Json base = large;  // 99 languages
  for (JsonMember& member : *base.object())
    if (member.key == "languages") member.value.array()->pop_back();
  ends(error_of("large-v3", base),
       "vocabulary.txt' makes 51865 tokens, the model's table has 51866 rows; take the file that belongs to it");
  ends(error_of("english", base), "end with the token 51864, the model's table has 51864 rows");
}

// The configuration is the small checkpoint's, whose decoder has a second layer.
TEST(WhisperLayouts, HeadsOfAnotherModelAreRefused) {
  const TempFolder folder;
  write_layout_weights(layout("turbo"), true, folder.path());
  ASSERT_TRUE(Model::load(folder.path()).has_value());
  std::filesystem::copy_file(data("ct2/config.json"), folder.file("config.json"),
                             std::filesystem::copy_options::overwrite_existing);
  const auto model = Model::load(folder.path());
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, Code::kDataLoss);
  EXPECT_NE(model.error().message.find("aligns by head 0 of layer 1, but has 2 of 1"), std::string::npos)
      << model.error().message;
}

TEST(WhisperLayouts, HearsTheMakersMelOf128Bands) {
  const Layout layout("large-v3");
  std::vector<float> sound;
  for (const int32_t sample : Arrays().get<int32_t>("sound")) sound.push_back(static_cast<float>(sample) / 32768.0f);
  const auto log_mel = LogMel::create(layout.model->config().mels);
  ASSERT_TRUE(log_mel.has_value());
  ThreadTeam team(1);
  std::vector<float> values = log_mel_of(*log_mel, sound, sound.size(), team);
  const View<float, 2> frames(values.data(), {values.size() / 128, 128});
  normalise(frames, peak(frames), frames);
  EXPECT_LE(relative(values, layout.of("mel")), 2e-5);
}

void expect_cross(const Layout& layout, const Encoded& window) {
  const Config& c = layout.model->config();
  const AudioState& audio = window.audio;
  for (size_t layer = 0; layer < c.decoder_layers; ++layer) {
    std::vector<float> keys(audio.positions * c.width), values = keys;
    for (size_t p = 0; p < audio.positions; ++p) {
      for (size_t i = 0; i < c.width; ++i) {
        const size_t head = i / audio.head_size, at = i % audio.head_size;
        keys[p * c.width + i] = audio.head_keys<float>(layer, head)(p, at);
        values[p * c.width + i] = audio.head_values<float>(layer, head)(p, at);
      }
    }
    EXPECT_LE(relative(keys, layout.of(fmt::format("cross_keys.{}", layer))), 1e-4);
    EXPECT_LE(relative(values, layout.of(fmt::format("cross_values.{}", layer))), 1e-4);
  }
}

TEST(WhisperLayouts, EncodesAsItsMaker) {
  for (const char* const name : {"large-v3", "turbo"}) {
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", name, swapped));
      const Layout layout(name, swapped);
      Encoded window(layout.model, layout.mel());
      std::map<std::string, std::vector<float>> seen;
      window.encoder->set_probe([&](std::string_view stage, size_t layer, View<const float, 2> rows) {
        const std::string of(stage);
        seen[stage == "block" ? fmt::format("block.{}", layer) : of] = values_of(rows);
      });
      window.encoder->encode(window.frames(), window.audio);
      EXPECT_EQ(seen.size(), 2 + whole(layout.told, "encoder_layers"));
      for (const auto& [stage, values] : seen) EXPECT_LE(relative(values, layout.of(stage)), 1e-4) << stage;
      expect_cross(layout, window);
    }
  }
}

TEST(WhisperLayouts, DecodesAsItsMaker) {
  for (const char* const name : kLayouts) {
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", name, swapped));
      const Layout layout(name, swapped);
      const Encoded window(layout.model, layout.mel());
      const std::vector<int32_t> tokens = layout.ids("tokens"), columns = layout.ids("columns");
      const std::vector<int32_t> best = layout.ids("best");
      ThreadTeam team(1);
      Decoder decoder(layout.model, team, 1);
      auto state = DecoderState::make(*layout.model, 1);
      std::vector<float> kept;
      for (size_t t = 0; t < tokens.size(); ++t) {
        const DecoderInput input{0, tokens[t], &window.audio};
        const std::vector<float> logits = values_of(decoder.step({&input, 1}, *state));
        ASSERT_EQ(logits.size(), whole(layout.told, "vocabulary"));
        EXPECT_EQ(std::ranges::max_element(logits) - logits.begin(), best[t]);
        for (const int32_t column : columns) kept.push_back(logits[static_cast<size_t>(column)]);
      }
      EXPECT_LE(relative(kept, layout.of("logits")), 1e-4);
    }
  }
}

// Languages found or given, translations, what came before, and times of words and tokens.
TEST(WhisperLayouts, TranscriptsAreTheMakers) {
  for (const char* const name : kLayouts) {
    const Layout layout(name);
    ThreadTeam team(1);
    auto transcriber = Transcriber::create(layout.model, layout.vocabulary, team);
    ASSERT_TRUE(transcriber.has_value()) << transcriber.error().message;
    for (const Json& row : list(layout.told, "rows")) {
      SCOPED_TRACE(fmt::format("{} {}", name, whole(row, "seed")));
      expect_row(**transcriber, row);
      if (layout.multilingual()) {
        EXPECT_EQ((*transcriber)->language()->code, string_of(row, "found"));
      } else {
        EXPECT_EQ((*transcriber)->language(), nullptr) << "English alone: there is nothing to find";
      }
    }
  }
}

}  // namespace
}  // namespace syrinx::whisper
