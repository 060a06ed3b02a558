#include "engine/families/qwen_tts/qwen_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "engine/families/qwen_tts/qwen_model.h"
#include "engine/families/qwen_tts/qwen_voice.h"
#include "engine/families/qwen_tts/qwen_voices.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

using testing::ElementsAre, testing::HasSubstr;

qwen_tts::Config config_of(const std::string& kind) {
  const auto config = read_qwen_config(std::string(SYRINX_TEST_DATA) + "/qwen_tts/" + kind);
  EXPECT_TRUE(config) << config.error().message;
  return config.value_or(qwen_tts::Config());
}

TEST(QwenSettings, AbsentOptionsAreTheCheckpoints) {
  qwen_tts::GenerationConfig defaults;
  defaults.talker = {.temperature = 0.7f, .top_k = 9};
  defaults.penalty = 1.2f;
  const auto settings = read_qwen_settings({}, config_of("custom_voice"), defaults);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->language, "auto");
  EXPECT_EQ(settings->draws.talker.temperature, 0.7f);
  EXPECT_EQ(settings->draws.talker.top_k, 9u);
  EXPECT_EQ(settings->draws.penalty, 1.2f);
  EXPECT_EQ(settings->piece_tokens, 100u);
  EXPECT_TRUE(settings->text_first);
  EXPECT_FALSE(read_qwen_settings({}, config_of("base"), defaults)->text_first);
}

TEST(QwenSettings, OptionsAreTaken) {
  SpeakOptions options;
  options.knobs = {{"language", "de-AT"},    {"temperature", 0.0},        {"top_k", 5.0},
                   {"top_p", 0.5},           {"repetition_penalty", 2.0}, {"subtalker_temperature", 0.25},
                   {"subtalker_top_k", 3.0}, {"subtalker_top_p", 0.75},   {"text_layout", "streaming"},
                   {"max_tokens", 7.0},      {"max_seconds", 3.5},        {"instructions", "Sadly."}};
  const auto settings = read_qwen_settings(options, config_of("voice_design"), {});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->language, "german");
  EXPECT_FALSE(settings->draws.talker.samples);
  EXPECT_EQ(settings->draws.talker.top_k, 5u);
  EXPECT_EQ(settings->draws.talker.top_p, 0.5f);
  EXPECT_EQ(settings->draws.penalty, 2.0f);
  EXPECT_TRUE(settings->draws.predictor.samples);
  EXPECT_EQ(settings->draws.predictor.temperature, 0.25f);
  EXPECT_EQ(settings->draws.predictor.top_k, 3u);
  EXPECT_EQ(settings->draws.predictor.top_p, 0.75f);
  EXPECT_FALSE(settings->text_first);
  EXPECT_EQ(settings->piece_tokens, 7u);
  EXPECT_EQ(settings->max_seconds, 3.5);
  EXPECT_EQ(settings->instructions, "Sadly.");
}

TEST(QwenSettings, LanguagesAreFoundByNameAndCode) {
  const qwen_tts::Config config = config_of("custom_voice");
  for (const auto& [asked, expected] : {std::pair("", "auto"),
                                        {"auto", "auto"},
                                        {"Auto", "auto"},
                                        {"ENGLISH", "english"},
                                        {"en-GB", "english"},
                                        {"zh", "chinese"},
                                        {"cmn", "chinese"},
                                        {"pt_BR", "portuguese"},
                                        {"deu", "german"}})
    EXPECT_EQ(find_qwen_language(asked, config).value_or("none"), expected) << asked;
  for (const char* const bad : {"klingon", "beijing_dialect", "nl"}) {
    const auto found = find_qwen_language(bad, config);
    ASSERT_FALSE(found) << bad;
    EXPECT_EQ(found.error().code, Code::kInvalidArgument);
    EXPECT_THAT(found.error().message, HasSubstr("speaks auto, chinese, english"));
  }
  EXPECT_THAT(qwen_language_codes(config), ElementsAre("zh", "en", "de", "it", "pt", "es", "ja", "ko", "fr", "ru"));
}

TEST(QwenSettings, InstructionsToSmallModelAreRefused) {
  SpeakOptions options;
  options.knobs.set("instructions", "Sadly.");
  for (const char* const kind : {"custom_voice", "base"}) {
    const auto settings = read_qwen_settings(options, config_of(kind), {});
    ASSERT_FALSE(settings) << kind;
    EXPECT_EQ(settings.error().code, Code::kUnsupported);
    EXPECT_THAT(settings.error().message, HasSubstr("has no instructions; leave them out"));
  }
  EXPECT_THAT(qwen_lacking_knobs(config_of("base")), ElementsAre("instructions"));
}

TEST(QwenSettings, PiecesThatAreCarriedAreShort) {
  SpeakOptions options;
  options.knobs.set("carry_seconds", 8.0);
  const auto settings = read_qwen_settings(options, config_of("base"), {});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->carry_seconds, 8.0);
  EXPECT_EQ(settings->piece_tokens, 25u);
  options.knobs.set("max_tokens", 20.0);
  EXPECT_EQ(read_qwen_settings(options, config_of("base"), {})->piece_tokens, 20u);
  options.knobs = {{"carry_seconds", 0.5}};
  EXPECT_EQ(read_qwen_settings(options, config_of("base"), {})->piece_tokens, 8u);
  EXPECT_EQ(read_qwen_settings({}, config_of("base"), {})->carry_seconds, 0);
}

TEST(QwenSettings, OnlyBaseCarriesPieces) {
  SpeakOptions options;
  options.knobs.set("carry_seconds", 8.0);
  for (const char* const kind : {"custom_voice", "voice_design"}) {
    const auto settings = read_qwen_settings(options, config_of(kind), {});
    ASSERT_FALSE(settings) << kind;
    EXPECT_EQ(settings.error().code, Code::kUnsupported);
    EXPECT_THAT(settings.error().message, HasSubstr("has no carry_seconds; leave it out, or take Base"));
  }
  options.knobs = {{"carry_seconds", 0.0}};
  EXPECT_TRUE(read_qwen_settings(options, config_of("custom_voice"), {}));
  EXPECT_THAT(qwen_lacking_knobs(config_of("voice_design")), ElementsAre("carry_seconds"));
}

TEST(QwenVoices, SpeakersHaveTheirLanguages) {
  const std::vector<VoiceEntry> voices = list_qwen_voices(config_of("custom_voice"), "/nowhere");
  ASSERT_EQ(voices.size(), 9u);
  EXPECT_EQ(voices[0].name, "ryan");
  EXPECT_EQ(voices[0].language_code, "en");
  EXPECT_EQ(voices[7].name, "ono_anna");
  EXPECT_EQ(voices[7].language, "Japanese");
  EXPECT_EQ(default_qwen_voice(config_of("custom_voice"), "/nowhere"), "ryan");
}

TEST(QwenVoices, FineTunesHaveTheirOwnSpeakers) {
  qwen_tts::Config config = config_of("custom_voice");
  config.speakers = {{.name = "zoe", .id = 3, .dialect = {}}, {.name = "abe", .id = 4, .dialect = {}}};
  EXPECT_EQ(list_qwen_voices(config, "/nowhere").size(), 2u);
  EXPECT_EQ(default_qwen_voice(config, "/nowhere"), "zoe");
  EXPECT_EQ(find_qwen_speaker(config, "Zoe").value_or(""), "zoe");
  const auto none = find_qwen_speaker(config, "ryan");
  EXPECT_EQ(none.error().code, Code::kNotFound);
  EXPECT_EQ(none.error().message, "there is no voice 'ryan'; this checkpoint has zoe, abe");
}

TEST(QwenVoices, RecordingsLieBesideBase) {
  const TempFolder folder;
  const qwen_tts::Config config = config_of("base");
  EXPECT_THAT(find_qwen_recording(folder.path(), "").error().message, HasSubstr("none lies in"));
  std::filesystem::create_directory(folder.path() + "/voices");
  write_text(folder.path() + "/voices/ann.wav", "x");
  EXPECT_EQ(default_qwen_voice(config, folder.path()), "ann");
  write_text(folder.path() + "/voices/bob.mp3", "x");
  write_text(folder.path() + "/voices/bob.txt", " What he says.\n");
  EXPECT_EQ(list_qwen_voices(config, folder.path()).size(), 2u);
  EXPECT_EQ(default_qwen_voice(config, folder.path()), "");
  EXPECT_THAT(find_qwen_recording(folder.path(), "").error().message, HasSubstr("there are ann, bob"));
  const auto bob = find_qwen_recording(folder.path(), "bob");
  ASSERT_TRUE(bob);
  EXPECT_EQ(read_qwen_words(*bob).value_or(""), "What he says.");
  EXPECT_EQ(read_qwen_words(*find_qwen_recording(folder.path(), "ann")).value_or("x"), "");
  write_text(folder.path() + "/voices/bob.txt", "\xff");
  EXPECT_EQ(read_qwen_words(*bob).error().code, Code::kDataLoss);
  write_text(folder.path() + "/voices/bob.txt", std::string(8193, 'x'));
  EXPECT_EQ(read_qwen_words(*bob).error().code, Code::kLimitExceeded);
}

TEST(QwenVoice, FileIsReadAsWritten) {
  const qwen_tts::Config config = config_of("base");
  const auto make = [&] {
    QwenVoice voice;
    voice.vector.assign(config.talker.width, 0.5f);
    voice.words = {1, 2, 3};
    voice.codes.assign(2 * config.codebooks, 1);
    return voice;
  };
  const auto read = [&](const QwenVoice& written) {
    const std::string content = write_qwen_voice(written, config);
    EXPECT_TRUE(is_qwen_voice_file(std::as_bytes(std::span(content))));
    return parse_qwen_voice(std::as_bytes(std::span(content)), "v", config);
  };
  const auto voice = read(make());
  ASSERT_TRUE(voice) << voice.error().message;
  EXPECT_EQ(voice->vector, make().vector);
  EXPECT_EQ(voice->codes, make().codes);
  EXPECT_EQ(voice->words, make().words);
  const auto fault = [&](const std::function<void(QwenVoice&)>& change) {
    QwenVoice bad = make();
    change(bad);
    const auto parsed = read(bad);
    EXPECT_FALSE(parsed);
    return parsed ? Code::kInternal : parsed.error().code;
  };
  EXPECT_EQ(fault([&](QwenVoice& bad) { bad.codes[17] = static_cast<int32_t>(config.predictor_codes); }),
            Code::kDataLoss);
  EXPECT_EQ(fault([](QwenVoice& bad) { bad.words[0] = -1; }), Code::kDataLoss);
  EXPECT_EQ(fault([](QwenVoice& bad) { bad.words.clear(); }), Code::kDataLoss);
  EXPECT_EQ(fault([](QwenVoice& bad) { bad.vector.pop_back(); }), Code::kInvalidArgument);
  EXPECT_EQ(fault([](QwenVoice& bad) { bad.vector[0] = std::numeric_limits<float>::quiet_NaN(); }), Code::kDataLoss);
  EXPECT_EQ(fault([](QwenVoice& bad) { bad.words.assign(kMaxQwenVoiceWords + 1, 1); }), Code::kLimitExceeded);
  QwenVoice alone = make();
  alone.words.clear();
  alone.codes.clear();
  EXPECT_TRUE(read(alone));
}

}  // namespace
}  // namespace syrinx
