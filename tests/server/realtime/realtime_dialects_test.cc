// Names of events and formats in the dialects of realtime sessions, and that the audio has its format.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "audio/g711.h"
#include "audio/wav.h"
#include "tests/server/realtime/hearing_fixture.h"

namespace syrinx::server::realtime {
namespace {

using testing::ElementsAreArray;

constexpr const char* kText = "Hello there, you.";

std::string response_create(const std::string& more) {
  return fmt::format(R"({{"type":"response.create","response":{{"input":[{{"type":"message","role":"user","content":[)"
                     R"({{"type":"input_text","text":"{}"}}]}}]{}}}}})",
                     kText, more);
}

TEST_F(HearingTest, ATextResponseHasTheReleasedNames) {
  start(kManual, {.speech = speech_});
  say(response_create(R"(,"output_modalities":["text"])"));
  EXPECT_THAT(hear_until("response.content_part.added"),
              ElementsAreArray({"response.created", "response.output_item.added", "conversation.item.added",
                                "response.content_part.added"}));
  ASSERT_EQ(hear(), "response.output_text.delta");
  EXPECT_EQ(text_in({"delta"}), kText);
  ASSERT_EQ(hear(), "response.output_text.done");
  EXPECT_EQ(text_in({"text"}), kText);
  EXPECT_THAT(hear_until("response.done"), ElementsAreArray({"response.content_part.done", "response.output_item.done",
                                                             "conversation.item.done", "response.done"}));
  EXPECT_EQ(text_in({"response", "output_modalities"}), R"(["text"])");
  EXPECT_EQ(text_in({"response", "output", "content", "type"}), "output_text");
}

TEST_F(HearingTest, ATextResponseHasTheBetaNames) {
  start(kManual, {.speech = speech_, .dialect = Dialect::kBeta});
  say(response_create(R"(,"modalities":["text"])"));
  EXPECT_THAT(hear_until("response.content_part.added"),
              ElementsAreArray({"response.created", "response.output_item.added", "conversation.item.created",
                                "response.content_part.added"}));
  ASSERT_EQ(hear(), "response.text.delta");
  EXPECT_EQ(text_in({"delta"}), kText);
  ASSERT_EQ(hear(), "response.text.done");
  EXPECT_EQ(text_in({"text"}), kText);
  EXPECT_THAT(hear_until("response.done"),
              ElementsAreArray({"response.content_part.done", "response.output_item.done", "response.done"}));
  EXPECT_EQ(text_in({"response", "modalities"}), R"(["text"])");
  EXPECT_EQ(text_in({"response", "output", "content", "type"}), "text");
}

TEST_F(HearingTest, ASpokenResponseHasTheBetaNames) {
  start(kManual, {.speech = speech_, .dialect = Dialect::kBeta});
  say(response_create(""));
  EXPECT_THAT(hear_until("response.done"),
              ElementsAreArray({"response.created", "response.output_item.added", "conversation.item.created",
                                "response.content_part.added", "response.audio_transcript.delta",
                                "response.audio.delta", "response.audio.done", "response.audio_transcript.done",
                                "response.content_part.done", "response.output_item.done", "response.done"}));
  EXPECT_EQ(text_in({"response", "modalities"}), R"(["audio","text"])");
  EXPECT_EQ(text_in({"response", "output", "content", "transcript"}), kText);
}

// Not by those of the released names' objects, which the client has never sent.
TEST_F(HearingTest, ASessionOfTranscriptionHasABetaName) {
  start(kManual, {.is_transcription = true, .dialect = Dialect::kBeta});
  EXPECT_EQ(text_in({"session", "object"}), "realtime.transcription_session");
}

TEST_F(HearingTest, BetaRefusalsUseBetaNames) {
  start(kManual, {.strict = true, .dialect = Dialect::kBeta});
  const auto update = [](const char* session) {
    return fmt::format(R"({{"type":"session.update","session":{}}})", session);
  };
  refused(update(R"({"input_audio_format":"mp3"})"), "input_audio_format", "mp3");
  refused(update(R"({"input_audio_transcription":1})"), "input_audio_transcription", "an object");
  refused(update(R"({"input_audio_transcription":{"model":"gpt-9"}})"), "input_audio_transcription.model", "gpt-9");
  refused(update(R"({"input_audio_transcription":{"language":"xx"}})"), "input_audio_transcription.language", "xx");
  refused(update(R"({"input_audio_transcription":{"prompt":1}})"), "input_audio_transcription.prompt", "a text");
  refused(update(R"({"input_audio_noise_reduction":{"type":"mid_field"}})"), "input_audio_noise_reduction", "null");
  refused(update(R"({"turn_detection":{"type":"loud"}})"), "turn_detection", "server_vad");
}

TEST(SessionConfigTest, ASpeedIsTakenWhereTheModelHasOne) {
  for (const char* const session : {R"({"speed":1.5})", R"({"audio":{"output":{"speed":1.5}}})"}) {
    const Json fields = *parse_json(session, "the session");
    SessionConfig config;
    EXPECT_TRUE(update_session(fields, {}, {}, config)) << session;
    EXPECT_EQ(config.output.speed, 1.5);
    EXPECT_FALSE(update_session(fields, {.has_speed = false, .strict = true}, {}, config)) << session;
    EXPECT_TRUE(update_session(*parse_json(R"({"speed":1})", "the session"), {.has_speed = false}, {}, config));
  }
}

TEST(SessionConfigTest, LackingSpeedIsIgnoredAndNamed) {
  for (const auto& [session, field] : {std::pair(R"({"speed":1.5})", "speed"),
                                       std::pair(R"({"audio":{"output":{"speed":1.5}}})", "audio.output.speed")}) {
    SessionConfig config;
    ASSERT_TRUE(update_session(*parse_json(session, "the session"), {.has_speed = false}, {}, config));
    EXPECT_EQ(config.output.speed, 1);
    EXPECT_EQ(ignored_fields(config), std::vector<std::string>{field});
    EXPECT_THAT(session_json(config, "m", Dialect::kReleased).dump(), testing::HasSubstr(field));
    ASSERT_TRUE(update_session(*parse_json(R"({"instructions":"x"})", "the session"), {}, {}, config));
    EXPECT_TRUE(ignored_fields(config).empty());
  }
}

TEST_F(HearingTest, TheReductionOfNoiseIsTakenByItsBetaNameToo) {
  start(kManual, {.dialect = Dialect::kBeta});
  for (const char* const value : {R"({"type":"near_field"})", R"({"type":"far_field"})", "null"}) {
    say(fmt::format(R"({{"type":"session.update","session":{{"input_audio_noise_reduction":{}}}}})", value));
    EXPECT_EQ(hear(), "session.updated") << last_.dump();
    EXPECT_THAT(last_.dump(), testing::Not(testing::HasSubstr("_field")));
  }
}

// ITU-T G.711 in its own words: a law's code as a sample of 16 bits, and how far from it the samples of the code lie,
// half a step, by the size of the sample.
struct Law {
  const char* name;
  const char* released;
  const char* beta;
  int (*sample)(std::byte code);
  double (*half_step)(int sample);
};

int mu_law_sample(std::byte code) {
  const int bits = ~static_cast<int>(code) & 0xFF, exponent = bits >> 4 & 7, mantissa = bits & 15;
  const int magnitude = ((8 * mantissa + 132) << exponent) - 132;
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}
int a_law_sample(std::byte code) {
  const int bits = static_cast<int>(code) ^ 0x55, exponent = bits >> 4 & 7, mantissa = bits & 15;
  const int magnitude = exponent == 0 ? 16 * mantissa + 8 : (16 * mantissa + 264) << (exponent - 1);
  return (bits & 0x80) != 0 ? magnitude : -magnitude;
}

constexpr std::array kLaws = {
    Law{"MuLaw", "audio/pcmu", "g711_ulaw", mu_law_sample, [](int sample) { return (std::abs(sample) + 132) / 32.0; }},
    Law{"ALaw", "audio/pcma", "g711_alaw", a_law_sample,
        [](int sample) { return std::max(std::abs(sample) / 32.0, 8.0); }},
};

std::vector<float> resampled(const std::vector<float>& sound, int from_hz, int to_hz) {
  std::vector<float> result;
  auto resampler = StreamResampler::create(from_hz, to_hz);
  resampler->push(sound, result);
  resampler->finish(result);
  return result;
}

std::vector<int16_t> quantized(const std::vector<float>& sound) {
  std::vector<int16_t> samples(sound.size());
  PcmQuantizer().convert(sound, samples);
  return samples;
}

class FormatTest : public HearingTest, public testing::WithParamInterface<std::tuple<Dialect, Law>> {
 protected:
  bool is_beta() const { return std::get<Dialect>(GetParam()) == Dialect::kBeta; }
  const Law& law() const { return std::get<Law>(GetParam()); }
  void start_session() { start(kManual, {.speech = speech_, .dialect = std::get<Dialect>(GetParam())}); }

  // `end` is "input" or "output", which session.updated repeats.
  void set_format(const char* end, const char* released, const char* beta) {
    const std::string format = is_beta()
                                   ? fmt::format(R"("{}_audio_format":"{}")", end, beta)
                                   : fmt::format(R"("audio":{{"{}":{{"format":{{"type":"{}"}}}}}})", end, released);
    say(R"({"type":"session.update","session":{)" + format + "}}");
    ASSERT_EQ(hear(), "session.updated") << last_.dump();
    if (is_beta())
      EXPECT_EQ(text_in({"session", fmt::format("{}_audio_format", end).c_str()}), beta);
    else
      EXPECT_EQ(text_in({"session", "audio", end, "format", "type"}), released);
  }
  std::vector<std::byte> spoken() {
    std::vector<std::byte> sound;
    say(response_create(""));
    for (std::string type = hear(); type != "response.done"; type = hear()) {
      EXPECT_NE(type, "(silence)");
      if (type == "(silence)") break;
      if (type != (is_beta() ? "response.audio.delta" : "response.output_audio.delta")) continue;
      const auto delta = decode_base64(text_in({"delta"}));
      EXPECT_TRUE(delta);
      if (delta) sound.insert(sound.end(), delta->begin(), delta->end());
    }
    return sound;
  }
};

INSTANTIATE_TEST_SUITE_P(Dialects, FormatTest,
                         testing::Combine(testing::Values(Dialect::kReleased, Dialect::kBeta),
                                          testing::ValuesIn(kLaws)),
                         [](const auto& each) {
                           const bool is_beta = std::get<Dialect>(each.param) == Dialect::kBeta;
                           return std::string(is_beta ? "Beta" : "Released") + std::get<Law>(each.param).name;
                         });

// Each code stands for its own sample; a recogniser hears them at its rate.
TEST_P(FormatTest, SoundThatComesIsHeardByItsLaw) {
  constexpr size_t kTimes = 16;  // so that there is enough for a turn
  std::vector<std::byte> codes;
  std::vector<float> samples;
  for (size_t i = 0; i < 256 * kTimes; ++i) {
    codes.push_back(static_cast<std::byte>(i / kTimes));
    samples.push_back(static_cast<float>(law().sample(codes.back())) / 32768);
  }
  start_session();
  ASSERT_NO_FATAL_FAILURE(set_format("input", law().released, law().beta));
  append(base64(codes));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"usage", "seconds"}), "0.512");
  const std::vector<float> expected = resampled(samples, 8000, kRecognitionRateHz);
  ASSERT_EQ(recogniser_->samples.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(recogniser_->samples[i], expected[i]) << i;
}

// The same wave in each format: PCM has its samples, a law what is nearest to them.
TEST_P(FormatTest, SoundThatLeavesIsCodedByItsLaw) {
  engine_->act.chunks = 3;
  engine_->act.wave = [](size_t sample) { return 0.9f * std::sin(0.003f * static_cast<float>(sample)); };
  std::vector<float> wave(engine_->act.chunks * engine_->act.chunk_samples);
  for (size_t i = 0; i < wave.size(); ++i) wave[i] = engine_->act.wave(i);
  start_session();
  ASSERT_NO_FATAL_FAILURE(set_format("output", "audio/pcm", "pcm16"));
  const std::vector<int16_t> pcm = quantized(wave);
  EXPECT_TRUE(std::ranges::equal(spoken(), std::as_bytes(std::span(pcm))));
  ASSERT_NO_FATAL_FAILURE(set_format("output", law().released, law().beta));
  const std::vector<std::byte> codes = spoken();
  EXPECT_EQ(text_in(is_beta() ? std::initializer_list<const char*>{"response", "output_audio_format"}
                              : std::initializer_list<const char*>{"response", "audio", "output", "format", "type"}),
            is_beta() ? law().beta : law().released);
  const std::vector<int16_t> expected = quantized(resampled(wave, kRateHz, 8000));
  ASSERT_EQ(codes.size(), expected.size());
  for (size_t i = 0; i < codes.size(); ++i)
    ASSERT_NEAR(law().sample(codes[i]), expected[i], law().half_step(expected[i])) << i;
}

// Every code comes back from the sample that it stands for; mu-law has a second zero.
TEST(G711Test, CodesComeBack) {
  for (const PcmCoding coding : {PcmCoding::kMuLaw, PcmCoding::kALaw}) {
    std::vector<std::byte> codes(256);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
    std::vector<float> samples;
    decode_pcm(codes, {.channels = 1, .bits = 8, .coding = coding}, samples);
    ASSERT_EQ(samples.size(), codes.size());
    for (size_t i = 0; i < codes.size(); ++i) {
      const auto sample = static_cast<int16_t>(samples[i] * 32768);
      const std::byte back = coding == PcmCoding::kMuLaw ? encode_mu_law(sample) : encode_a_law(sample);
      EXPECT_EQ(back, coding == PcmCoding::kMuLaw && i == 0x7F ? std::byte{0xFF} : codes[i]) << i;
    }
  }
}

}  // namespace
}  // namespace syrinx::server::realtime
