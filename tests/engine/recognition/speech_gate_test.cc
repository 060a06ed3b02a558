// Stretches of speech joined to pieces, and the way back from a piece's times to the recording's.
#include "engine/recognition/speech_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/recognition/quiet_level.h"
#include "tests/base/temp_folder.h"
#include "tests/models/silero/container_writer.h"

namespace syrinx {
namespace {

using silero::SpeechSpan;
constexpr uint64_t kSecond = 16000;

SpeechSpan seconds(double begin, double end) {
  return {static_cast<uint64_t>(begin * kSecond), static_cast<uint64_t>(end * kSecond)};
}

TEST(SpeechGate, StretchesAreJoinedUpToAPiece) {
  const std::vector<SpeechSpan> spans{seconds(1, 11), seconds(20, 30), seconds(40, 50), seconds(60, 61),
                                      seconds(70, 95)};
  const auto pieces = join_spans(spans, 30);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].spans, (std::vector<SpeechSpan>{spans[0], spans[1], spans[2]}));
  EXPECT_EQ(pieces[1].spans, (std::vector<SpeechSpan>{spans[3], spans[4]}));
  EXPECT_EQ(pieces[0].samples(), 30 * kSecond);
  EXPECT_TRUE(join_spans({}, 30).empty());
}

TEST(SpeechGate, AStretchLongerThanAPieceFillsSeveral) {
  const std::vector<SpeechSpan> spans{seconds(0, 1), seconds(2, 67), seconds(70, 71)};
  const auto pieces = join_spans(spans, 30);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[0].spans, std::vector<SpeechSpan>{seconds(0, 1)});
  EXPECT_EQ(pieces[1].spans, std::vector<SpeechSpan>{seconds(2, 32)});
  EXPECT_EQ(pieces[2].spans, std::vector<SpeechSpan>{seconds(32, 62)});
  EXPECT_EQ(pieces[3].spans, (std::vector<SpeechSpan>{seconds(62, 67), seconds(70, 71)}));
}

TEST(SpeechGate, TimesGoBackToTheRecording) {
  const SpeechPiece piece{.spans = {seconds(1, 3), seconds(10, 11), seconds(20, 25)}};
  EXPECT_DOUBLE_EQ(piece.end_in_recording(1.5), 2.5);
  EXPECT_DOUBLE_EQ(piece.end_in_recording(2), 3);
  EXPECT_DOUBLE_EQ(piece.end_in_recording(2.25), 10.25);
  EXPECT_DOUBLE_EQ(piece.end_in_recording(8), 25);
  EXPECT_DOUBLE_EQ(piece.end_in_recording(30), 25);  // a model may say more than there was
  EXPECT_DOUBLE_EQ(piece.end_in_recording(-1), 1);
}

TEST(SpeechGate, ThePieceSoundsAsItsStretches) {
  std::vector<float> recording(100);
  for (size_t i = 0; i < recording.size(); ++i) recording[i] = static_cast<float>(i);
  const SpeechPiece piece{.spans = {{3, 5}, {90, 93}}};
  EXPECT_EQ(piece.sound(recording), (std::vector<float>{3, 4, 90, 91, 92}));
}

// A cancelled search stops early: cancellation is checked before each minute of three.
TEST(SpeechGate, CancelledSearchStops) {
  const TempFolder folder;
  const std::string path = folder.file("voice.bin");
  const auto bytes = silero::write_container(silero::random_tensors(5)).bytes;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const auto gate = SpeechGate::load(path);
  ASSERT_TRUE(gate) << gate.error().message;
  Rng rng(1);
  std::vector<float> recording(180 * kSecond);
  for (float& sample : recording) sample = 0.1f * rng.normal();
  silero::SegmentOptions rules;
  rules.threshold = 0.3;
  const auto whole = gate->pieces(recording, rules);
  for (int stays = 0; stays <= 3; ++stays) {
    int asked = 0;
    const auto found = gate->pieces(recording, rules, [&] { return ++asked <= stays; });
    EXPECT_EQ(asked, std::min(stays + 1, 3));
    ASSERT_EQ(found.has_value(), stays == 3);
    if (!found) {
      EXPECT_EQ(found.error().code, Code::kCancelled);
      continue;
    }
    ASSERT_EQ(found->size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ((*found)[i].spans, whole[i].spans);
  }
}

TEST(SpeechGate, VeryQuietRecordingsAreRaised) {
  const TempFolder folder;
  const std::string path = folder.file("voice.bin");
  const auto bytes = silero::write_container(silero::random_tensors(5)).bytes;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const auto gate = SpeechGate::load(path);
  ASSERT_TRUE(gate) << gate.error().message;
  Rng rng(1);
  std::vector<float> quiet(20 * kSecond + 100), raised;
  for (size_t i = 0; i < quiet.size(); ++i) quiet[i] = (i / kSecond % 3 == 0 ? 1e-3f : 1e-5f) * rng.normal();
  const float gain = quiet_gain(quiet);
  EXPECT_GT(gain, 10);
  for (const float sample : quiet) raised.push_back(std::clamp(sample * gain, -1.0f, 1.0f));
  const auto probabilities = silero::speech_probabilities(*gate->vad(), raised);
  EXPECT_EQ(silero::speech_probabilities(*gate->vad(), quiet, silero::Framing::kCarried, {}, {}, gain), probabilities);
  silero::SegmentOptions rules;
  std::vector<float> sorted = probabilities;
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2));
  rules.threshold = sorted[sorted.size() / 2];
  const auto found = gate->pieces(quiet, rules), expected = gate->pieces(raised, rules);
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_FALSE(found.empty());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].spans, expected[i].spans);
}

// A file of random weights says something about noise; what the gate makes of it is what its parts make of it.
TEST(SpeechGate, FindsJoinsAndRefuses) {
  const silero::Tensors tensors = silero::random_tensors(5);
  const TempFolder folder;
  const std::string path = folder.file("voice.bin");
  const auto bytes = silero::write_container(tensors).bytes;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  Rng rng(1);
  std::vector<float> recording(5 * kSecond);
  for (float& sample : recording) sample = 0.1f * rng.normal();
  const std::vector<float> probabilities = silero::speech_probabilities(silero::SileroVad(tensors), recording);
  GateOptions options{.max_piece_s = 2};
  options.segments.threshold = *std::min_element(probabilities.begin(), probabilities.end());
  const auto gate = SpeechGate::load(path, options);
  ASSERT_TRUE(gate) << gate.error().message;
  const auto pieces = gate->pieces(recording);
  ASSERT_EQ(pieces.size(), 3u);  // all of it is speech at this threshold
  EXPECT_EQ(pieces[0].samples() + pieces[1].samples() + pieces[2].samples(), recording.size());
  options.segments.threshold = 1;
  EXPECT_TRUE(SpeechGate::load(path, options)->pieces(recording).empty());
  EXPECT_TRUE(gate->pieces({}).empty());
  EXPECT_TRUE(gate->pieces({}, options.segments, [] { return false; })->empty());
  const auto strict = VoiceActivityChanges{.threshold = 1}.apply(gate->options().segments);
  ASSERT_TRUE(strict);
  EXPECT_EQ(strict->speech_pad_ms, 400);
  EXPECT_TRUE(gate->pieces(recording, *strict).empty());
  EXPECT_EQ(VoiceActivityChanges{.threshold = 0.1}.apply({})->negative_threshold, 0.01);  // or it would never end
  EXPECT_EQ(VoiceActivityChanges{.speech_pad_ms = 1e9}.apply({}).error().code, Code::kInvalidArgument);
  // Changes that nobody would heed are refused, right or wrong, and with a gate or without.
  EXPECT_EQ(speech_rules(*gate, true, {.threshold = 1})->value().threshold, 1);
  for (const std::optional<SpeechGate>& any : {std::optional(*gate), std::optional<SpeechGate>()}) {
    EXPECT_FALSE(speech_rules(any, false, {})->has_value());
    for (const double threshold : {0.4, 2.0})
      EXPECT_EQ(speech_rules(any, false, {.threshold = threshold}).error().code, Code::kInvalidArgument);
  }
  EXPECT_EQ(speech_rules({}, true, {.threshold = 0.4}).error().code, Code::kNotFound);
  options.segments.threshold = 2;
  EXPECT_EQ(SpeechGate::load(path, options).error().code, Code::kInvalidArgument);
  EXPECT_EQ(SpeechGate::load(path, {.max_piece_s = 0}).error().code, Code::kInvalidArgument);
  std::filesystem::remove(path);
  EXPECT_EQ(SpeechGate::load(path).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace syrinx
