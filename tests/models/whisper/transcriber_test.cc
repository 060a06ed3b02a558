// Whole transcriptions with the tiny checkpoint beside openai-whisper's transcribe() (tools/reference/whisper_tiny.py).
#include "transcripts.h"

#include <cmath>
#include <filesystem>

#include "../../base/temp_folder.h"

namespace syrinx::whisper {
namespace {

using namespace test;

std::shared_ptr<const Vocabulary> small_vocabulary() {
  auto bpe = text::read_bpe_json(read_small("tokenizer.json"), "tokenizer.json");
  EXPECT_TRUE(bpe.has_value());
  return std::make_shared<const Vocabulary>(Vocabulary{std::move(*bpe), small_tokens()});
}

class WhisperTranscriber : public testing::Test {
 protected:
  void SetUp() override {
    auto model = Model::load(std::string(SYRINX_TEST_DATA) + "/whisper/ct2");
    ASSERT_TRUE(model.has_value()) << model.error().message;
    auto made = Transcriber::create(*model, small_vocabulary(), team_);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    transcriber_ = std::move(*made);
    settings_.decode.temperatures = {0};
    settings_.decode.stop_loops = false;
  }

  const Language* language(const std::string& code) const {
    return transcriber_->vocabulary().tokens.find_language(code);
  }
  std::vector<Segment> heard(std::span<const float> samples) {
    auto segments = transcriber_->transcribe(samples, settings_);
    EXPECT_TRUE(segments.has_value()) << segments.error().message;
    return segments ? *segments : std::vector<Segment>();
  }

  ThreadTeam team_{1};
  std::unique_ptr<Transcriber> transcriber_;
  TranscriberSettings settings_;
};

TEST_F(WhisperTranscriber, TranscriptIsTheMakers) {
  const auto file = parse_json(read_small("transcripts.json"), "transcripts.json");
  ASSERT_TRUE(file.has_value());
  size_t tokens = 0, words = 0;
  for (const Json& row : *file->array()) {
    SCOPED_TRACE(row.find("seed")->dump());
    const HeardCounts counts = expect_row(*transcriber_, row);
    EXPECT_EQ(transcriber_->language()->code, string_of(row, "found"));
    tokens += counts.tokens;
    words += counts.words;
  }
  EXPECT_GT(tokens, 200u);
  EXPECT_GT(words, 10u);
}

// Temperatures above 0 draw from the seed: the same one gives the same text, also behind other sounds.
TEST_F(WhisperTranscriber, SamplesFromTheSeed) {
  settings_.language = language("en");
  settings_.decode.temperatures = {0.8f};
  settings_.decode.seed = 7;
  const std::vector<float> samples = sound(6, 30000);
  const std::vector<Segment> first = heard(samples);
  heard(sound(3, 20000));
  const std::vector<Segment> again = heard(samples);
  settings_.decode.seed = 8;
  const std::vector<Segment> other = heard(samples);
  const auto tokens_of = [](const std::vector<Segment>& segments) {
    std::vector<int32_t> ids;
    for (const Segment& segment : segments) ids.insert(ids.end(), segment.tokens.begin(), segment.tokens.end());
    return ids;
  };
  ASSERT_FALSE(first.empty());
  EXPECT_FLOAT_EQ(first[0].temperature, 0.8f);
  EXPECT_EQ(tokens_of(first), tokens_of(again));
  EXPECT_NE(tokens_of(first), tokens_of(other));
}

// A text that fails is tried again hotter, and the last try is kept.
TEST_F(WhisperTranscriber, FallsBackToHigherTemperatures) {
  settings_.language = language("en");
  settings_.decode.temperatures = {0.0f, 0.4f, 1.0f};
  settings_.decode.log_probability_threshold = 0;  // nothing is that probable
  settings_.long_form.log_probability_threshold = -1000;
  for (const Segment& segment : heard(sound(1, 16000))) EXPECT_FLOAT_EQ(segment.temperature, 1.0f);
  settings_.decode.log_probability_threshold = -1000;
  settings_.decode.compression_ratio_threshold = 1000;
  for (const Segment& segment : heard(sound(1, 16000))) EXPECT_FLOAT_EQ(segment.temperature, 0.0f);
}

// Each window counts as silence at temperature 0.  Sound that is not said to be speech is left at that.
TEST_F(WhisperTranscriber, SpeechIsTriedAtAllTemperatures) {
  settings_.language = language("en");
  settings_.decode.no_speech_threshold = -1;
  settings_.decode.compression_ratio_threshold = 1000;
  settings_.decode.speech_log_probability_threshold = 1;
  settings_.long_form.log_probability_threshold = -1000;
  size_t steps = 0, improved = 0;
  transcriber_->set_between([&] { ++steps; });
  for (const uint32_t seed : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u}) {
    SCOPED_TRACE(seed);
    const std::vector<float> samples = sound(seed, 16000);
    const auto hear = [&](bool is_speech) {
      settings_.decode.is_speech = is_speech;
      steps = 0;
      return transcriber_->hear(samples, settings_).segment;
    };
    settings_.decode.temperatures = {0};
    settings_.decode.log_probability_threshold = -1000;
    const Segment first = hear(false);
    settings_.decode.temperatures = {0, 0.2f, 0.4f, 0.6f, 0.8f, 1};
    settings_.decode.log_probability_threshold = first.mean_log_probability + 0.01f;
    EXPECT_EQ(hear(false).tokens, first.tokens);
    const size_t once = steps;
    const Segment tried = hear(true);
    EXPECT_GT(steps, once);
    if (tried.temperature > 0) {
      EXPECT_GE(tried.mean_log_probability, settings_.decode.log_probability_threshold);
      ++improved;
    }
    settings_.decode.log_probability_threshold = 1;  // which nothing reaches
    const Segment left = hear(true);
    EXPECT_GT(steps, 3 * once);
    EXPECT_EQ(left.tokens, first.tokens);
  }
  EXPECT_GT(improved, 0u);
  transcriber_->set_between({});
}

// The rule of silence drops the first text of a window; where it is speech, a text that is improbable by little stands.
TEST_F(WhisperTranscriber, NearlyProbableSpeechStands) {
  settings_.language = language("en");
  settings_.decode.compression_ratio_threshold = 1000;
  settings_.decode.no_speech_threshold = settings_.long_form.no_speech_threshold = -1;
  const std::vector<float> samples = sound(1, 16000);
  const auto set_threshold = [&](float value) {
    settings_.decode.log_probability_threshold = settings_.long_form.log_probability_threshold = value;
  };
  set_threshold(-1000);
  const Segment first = transcriber_->hear(samples, settings_).segment;
  ASSERT_FALSE(first.text.empty());
  set_threshold(first.mean_log_probability + 0.01f);
  EXPECT_EQ(transcriber_->hear(samples, settings_).segment.text, "");
  settings_.decode.is_speech = true;
  settings_.decode.speech_log_probability_threshold = first.mean_log_probability - 0.01f;
  EXPECT_EQ(transcriber_->hear(samples, settings_).segment.tokens, first.tokens);
  EXPECT_FALSE(heard(samples).empty());
  settings_.decode.speech_log_probability_threshold = first.mean_log_probability + 0.005f;
  EXPECT_EQ(transcriber_->hear(samples, settings_).segment.text, "");
  settings_.decode.speech_log_probability_threshold = first.mean_log_probability - 0.01f;
  settings_.decode.compression_ratio_threshold = -1;  // each text repeats itself
  EXPECT_EQ(transcriber_->hear(samples, settings_).segment.text, "");
  settings_.decode.compression_ratio_threshold = 1000;
  settings_.decode.max_tokens = 3;
  settings_.decode.speech_log_probability_threshold = -1000;
  EXPECT_EQ(transcriber_->hear(samples, settings_).segment.text, "") << "too short to be no noise";
}

// No silence, but improbable at each temperature.
TEST_F(WhisperTranscriber, NearlyProbableSpeechOutlastsFallbacks) {
  settings_.language = language("en");
  settings_.decode.compression_ratio_threshold = 1000;
  settings_.decode.no_speech_threshold = settings_.long_form.no_speech_threshold = 2;
  const std::vector<float> samples = sound(1, 16000);
  settings_.decode.log_probability_threshold = -1000;
  const Segment first = transcriber_->hear(samples, settings_).segment;
  settings_.decode.temperatures = {0, 0.5f, 1};
  settings_.decode.log_probability_threshold = 1;
  settings_.decode.speech_log_probability_threshold = first.mean_log_probability - 0.01f;
  EXPECT_FLOAT_EQ(transcriber_->hear(samples, settings_).segment.temperature, 1);
  settings_.decode.is_speech = true;
  const Segment kept = transcriber_->hear(samples, settings_).segment;
  EXPECT_EQ(kept.tokens, first.tokens);
  EXPECT_FLOAT_EQ(kept.temperature, 0);
}

TEST_F(WhisperTranscriber, LoopsAreStopped) {
  EXPECT_TRUE(ends_in_loop(std::vector<int32_t>{1, 2, 2, 2}));
  EXPECT_TRUE(ends_in_loop(std::vector<int32_t>{9, 1, 2, 3, 1, 2, 3, 1, 2, 3}));
  EXPECT_FALSE(ends_in_loop(std::vector<int32_t>{1, 2, 3, 1, 2, 3, 1, 2}));
  EXPECT_FALSE(ends_in_loop(std::vector<int32_t>{}));
  settings_.language = language("de");
  settings_.translate = true;
  const std::vector<float> samples = sound(3, 40000);  // a loop of one token, as transcripts.json shows
  const size_t whole = heard(samples)[0].tokens.size();
  settings_.decode.stop_loops = true;
  EXPECT_LT(heard(samples)[0].tokens.size(), whole);
}

// One window, whole: what transcribe() would leave for the next one is heard too.
TEST_F(WhisperTranscriber, HearsOneWindow) {
  settings_.language = language("en");
  const std::vector<float> samples = sound(1, 16000);
  std::vector<int32_t> ids;
  for (const Segment& segment : heard(samples)) ids.insert(ids.end(), segment.tokens.begin(), segment.tokens.end());
  const HeardWindow window = transcriber_->hear(samples, settings_);
  ASSERT_GE(window.segment.tokens.size(), 3u);
  EXPECT_TRUE(std::ranges::equal(std::span(ids).first(3), std::span(window.segment.tokens).first(3)));
  EXPECT_FALSE(window.ends_s.empty());
  EXPECT_FALSE(window.segment.words.empty());
  // A longer sound is cut at the window, and earlier text changes what is heard.
  EXPECT_LE(transcriber_->hear(sound(1, 20000), settings_).segment.end_s, 1.0);
  EXPECT_NE(transcriber_->hear(samples, settings_, "the dog and the fox").segment.mean_log_probability,
            window.segment.mean_log_probability);
  EXPECT_TRUE(transcriber_->hear(std::vector<float>(100), settings_).segment.words.empty());
}

TEST_F(WhisperTranscriber, SoundsOfNoLengthAndNoNumbers) {
  EXPECT_TRUE(heard({}).empty());
  EXPECT_TRUE(heard(std::vector<float>(1)).empty());
  heard(std::vector<float>(3000, NAN));
  heard(std::vector<float>(3000, 1e30f));
  // A broken sample spoils nothing but itself.
  std::vector<float> spiked = sound(6, 30000);
  spiked[1000] = 1000.0f;
  const std::vector<Segment> loud = heard(spiked);
  spiked[1000] = 1e30f;
  const std::vector<Segment> huge = heard(spiked);
  ASSERT_FALSE(loud.empty());
  ASSERT_EQ(huge.size(), loud.size());
  EXPECT_TRUE(std::isfinite(huge[0].mean_log_probability));
  EXPECT_EQ(huge[0].tokens, loud[0].tokens);
  const auto stopped = transcriber_->transcribe(sound(6, 80000), settings_, [&](double done_s) {
    EXPECT_GT(done_s, 0.0);
    return false;
  });
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
}

TEST(WhisperVocabulary, LiesBesideTheModel) {
  const TempFolder place;
  const std::filesystem::path folder = place.path();
  const std::filesystem::path data = std::filesystem::path(SYRINX_TEST_DATA) / "whisper";
  for (const char* const file : {"model.bin", "config.json"})
    std::filesystem::copy_file(data / "ct2" / file, folder / file);
  const auto model = Model::load(folder.string());
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(Vocabulary::load(**model).error().code, Code::kNotFound);
  std::filesystem::copy_file(data / "vocabulary.txt", folder / "vocabulary.txt");
  const auto lines = Vocabulary::load(**model);
  ASSERT_TRUE(lines.has_value()) << lines.error().message;
  std::filesystem::copy_file(data / "tokenizer.json", folder / "tokenizer.json");
  const auto json = Vocabulary::load(**model);
  ASSERT_TRUE(json.has_value()) << json.error().message;
  EXPECT_EQ((*json)->tokens.first_time, (*lines)->tokens.first_time);
}

}  // namespace
}  // namespace syrinx::whisper
