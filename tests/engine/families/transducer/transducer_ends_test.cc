// Where a stream's utterances end, with models that say the same at every frame.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/families/transducer/edited_transducer.h"
#include "tests/models/allocation_count.h"

namespace syrinx {
namespace {

constexpr size_t kLabel = 7, kNoDuration = 25,
                 kOneFrame = 26;  // of the output layer of tdt_mlx, behind 24 labels and blank
constexpr float kSure = 1e6f;

// One label at every frame, or the most that a frame may have.
TransducerEdits always(size_t duration, const std::string& text) {
  return {.values = {{"joint.joint_net.2.bias", {{kLabel, kSure}, {duration, kSure}}}},
          .config = {"\"haa\"", "\"" + text + "\""}};
}

// The final events of a second of noise, a word of the client's that it is over, and another second.
std::vector<RecognitionEvent> in_two(Recogniser& recogniser, const TranscribeOptions& options) {
  auto stream = *recogniser.start(options);
  std::vector<RecognitionEvent> events;
  EXPECT_TRUE(stream->push(noise(6, 1), events).has_value());
  EXPECT_TRUE(stream->commit(events).has_value());
  EXPECT_TRUE(stream->push(noise(6, 2), events).has_value());
  EXPECT_TRUE(stream->finish(events).has_value());
  std::erase_if(events, [](const RecognitionEvent& event) { return !event.is_final; });
  return events;
}

// No pause was where the client, or the length, ended an utterance: what follows it may begin with anything.
TEST(TransducerEnds, MarksAreOfTheUtteranceBeforeOnlyBehindAPause) {
  const TempFolder folder;
  const auto recogniser = load_edited(folder, always(kOneFrame, "."));
  ASSERT_TRUE(recogniser.has_value()) << recogniser.error().message;
  const auto events = in_two(**recogniser, {});
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].reason, EndpointReason::kCommit);
  EXPECT_EQ(events[1].result.text.size(), 75u);  // frames of six seconds
  const auto by_length = in_two(**recogniser, {.endpoints = {.max_utterance_s = 4}});
  ASSERT_EQ(by_length.size(), 4u);
  EXPECT_EQ(by_length[1].result.text.size(), 25u);  // what is left until the client's word
  EXPECT_EQ(by_length[2].result.text.size(), 50u);
  const auto by_pauses = in_two(**recogniser, {.endpoints = {.silence_after_speech_s = 1e-6}});
  EXPECT_EQ(by_pauses.size(), 1u);
}

// A label that lasts to the end has no silence behind it, however early it was found.
TEST(TransducerEnds, ALabelThatLastsIsNoSilence) {
  const TempFolder folder;
  const auto recogniser =
      load_edited(folder, {.source = "transformers/ctc", .values = {{"ctc_head.bias", {{5, kSure}}}}});
  ASSERT_TRUE(recogniser.has_value()) << recogniser.error().message;
  const auto events = in_two(**recogniser, {.endpoints = {.silence_after_speech_s = 0.4}});
  ASSERT_GE(events.size(), 1u);
  EXPECT_EQ(events[0].reason, EndpointReason::kCommit);
  EXPECT_GT(events[0].result.end_s, 5.5);
}

// A full stop at some frames of noise, and nothing else; nothing at those of silence.
TransducerEdits full_stops() {
  constexpr size_t kWidth = 8, kStop = 11, kBlank = 12;
  TransducerEdits edits = {.source = "transformers/nemotron3_5"};
  auto& rows = edits.values["joint.head.weight"];
  for (size_t i = 0; i < kWidth; ++i) {
    rows[kStop * kWidth + i] =
        i == 7 ? 100.0f : 0.0f;  // of what the encoder gives, which is above this for noise alone
    rows[kBlank * kWidth + i] = 0;
    edits.values["decoder.decoder_projector.bias"][i] = 0;
    for (size_t j = 0; j < kWidth; ++j) edits.values["decoder.decoder_projector.weight"][i * kWidth + j] = 0;
  }
  for (size_t label = 0; label < kStop; ++label) edits.values["joint.head.bias"][label] = -kSure;
  edits.values["joint.head.bias"][kStop] = -25;
  return edits;
}

// A pause ends nothing where nothing was said in it, and is one all the same: a mark behind it belongs to what the
// client had ended before.
TEST(TransducerEnds, MarksAreOfTheUtteranceBeforeBehindAPauseInWhichNothingWasSaid) {
  const TempFolder folder;
  const auto recogniser = load_edited(folder, full_stops());
  ASSERT_TRUE(recogniser.has_value()) << recogniser.error().message;
  for (const bool pauses : {false, true}) {
    for (const bool at_once : {false, true}) {
      SCOPED_TRACE(testing::Message() << pauses << at_once);
      auto stream =
          *(*recogniser)->start({.endpoints = {.silence_s = 2, .silence_after_speech_s = EndpointOptions::kNever}});
      std::vector<RecognitionEvent> events;
      ASSERT_TRUE(stream->push(noise(3, 1), events).has_value());
      ASSERT_TRUE(stream->commit(events).has_value());
      std::vector<float> rest(pauses ? 4 * kRecognitionRateHz : 0);
      if (!at_once && pauses) {
        ASSERT_TRUE(stream->push(rest, events).has_value());
        rest.clear();
      }
      const std::vector<float> more = noise(3, 2);
      rest.insert(rest.end(), more.begin(), more.end());
      ASSERT_TRUE(stream->push(rest, events).has_value());
      ASSERT_TRUE(stream->finish(events).has_value());
      std::erase_if(events, [](const RecognitionEvent& event) { return !event.is_final; });
      ASSERT_GE(events.size(), 1u);
      EXPECT_EQ(events[0].reason, EndpointReason::kCommit);
      EXPECT_EQ(events.size(), pauses ? 1u : 2u);
    }
  }
}

// Letters come faster than pieces of words; here one at every frame.
TEST(TransducerEnds, AnUtteranceOfLettersIsAsLongAsItMayBe) {
  const TempFolder folder;
  const auto recogniser = load_edited(folder, always(kOneFrame, "h"));
  ASSERT_TRUE(recogniser.has_value()) << recogniser.error().message;
  auto stream = *(*recogniser)->start({.endpoints = {.max_utterance_s = 400}});
  std::vector<RecognitionEvent> events;
  const std::vector<float> sound = noise(10, 1);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(stream->push(sound, events).has_value());
  ASSERT_TRUE(stream->finish(events).has_value());
  std::erase_if(events, [](const RecognitionEvent& event) { return !event.is_final; });
  ASSERT_GE(events.size(), 1u);
  EXPECT_EQ(events[0].result.text.size(), 5000u);
}

// Ten labels at each frame: an utterance that is full is over.
TEST(TransducerEnds, LabelsThatFillTheirRoomEndTheUtterance) {
  const TempFolder folder;
  const auto recogniser = load_edited(folder, always(kNoDuration, "h"));
  ASSERT_TRUE(recogniser.has_value()) << recogniser.error().message;
  auto stream = *(*recogniser)->start({.endpoints = {.max_utterance_s = 60}});
  std::vector<RecognitionEvent> events;
  ASSERT_TRUE(stream->push(noise(40, 1), events).has_value());
  ASSERT_TRUE(stream->finish(events).has_value());
  std::erase_if(events, [](const RecognitionEvent& event) { return !event.is_final; });
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].reason, EndpointReason::kLength);
  EXPECT_GE(events[0].result.text.size(), 4096u);
  EXPECT_LT(events[0].result.text.size(), 4096u + 4 * 10);
  EXPECT_EQ(events[0].result.text.size() + events[1].result.text.size(), 5000u);
}

// Labels that are no text, of which nothing is told: however many a step finds, and utterances that end in it.
TEST(TransducerEnds, AStepAllocatesNothingWhateverItFinds) {
  struct Case {
    StreamWindow window;
    EndpointChanges endpoints;
  };
  const double never = EndpointOptions::kNever;
  for (const Case& c : {Case{{}, {.silence_s = never, .max_utterance_s = 300}}, Case{{}, {.silence_s = 0.08}},
                        Case{{.left_s = 0, .chunk_s = 100, .right_s = 0}, {.silence_s = 0.08}}}) {
    const TempFolder folder;
    RecogniserOptions options;
    options.warm_up = true;
    options.knobs = window_knob(c.window);
    const auto recogniser = load_edited(folder, always(kNoDuration, "<h>"), options);
    ASSERT_TRUE(recogniser.has_value()) << recogniser.error().message;
    auto stream = *(*recogniser)->start({.endpoints = c.endpoints});
    std::vector<RecognitionEvent> events;
    const std::vector<float> sound = noise(1, 1);
    for (int i = 0; i < 101; ++i) {
      const size_t before = allocation_count();
      ASSERT_TRUE(stream->push(sound, events).has_value());
      ASSERT_EQ(allocation_count(), before) << i;
    }
    EXPECT_TRUE(events.empty());
  }
}

// A configuration that allows a thousand labels at a frame, in windows of minutes: a fault, and no result of what was
// found before it, whichever call brings it and however often somebody asks again.
TEST(TransducerEnds, MoreLabelsThanAStreamHasRoomForAreAFault) {
  const TempFolder folder;
  RecogniserOptions options;
  options.knobs = window_knob({.left_s = 0, .chunk_s = 20, .right_s = 0});
  TransducerEdits edits = always(kNoDuration, "h");
  edits.config = {"\"max_symbols\": 10", "\"max_symbols\": 1000"};
  const auto recogniser = load_edited(folder, edits, options);
  ASSERT_TRUE(recogniser.has_value()) << recogniser.error().message;
  for (const int failing : {0, 1, 2}) {
    auto stream = *(*recogniser)->start({.endpoints = {.silence_after_speech_s = 1e-6}});
    std::vector<RecognitionEvent> events;
    const Status pushed = stream->push(noise(failing == 0 ? 21 : 19, 1), events);
    EXPECT_EQ(pushed.has_value(), failing != 0);
    if (failing != 2) {
      EXPECT_FALSE(stream->commit(events).has_value());
      EXPECT_FALSE(stream->push(noise(1, 1), events).has_value());
    }
    const Status status = stream->finish(events);
    ASSERT_FALSE(status.has_value()) << failing;
    EXPECT_EQ(status.error().code, Code::kLimitExceeded);
    EXPECT_NE(status.error().message.find("more words at once"), std::string::npos) << status.error().message;
    EXPECT_TRUE(events.empty()) << failing;
  }
}

}  // namespace
}  // namespace syrinx
