// The rules that end an utterance, one by one, on times alone.
#include "engine/recognition/endpointing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace syrinx {
namespace {

using Reason = EndpointReason;
constexpr double kNever = EndpointOptions::kNever;

// The first time, in steps of 80 ms, at which the utterance is over.
std::pair<double, std::optional<Reason>> first_end(const Endpointer& endpointer, double from_s, double until_s = 60) {
  for (double now = from_s; now < until_s; now += 0.08) {
    if (const auto reason = endpointer.check(now)) return {now, reason};
  }
  return {until_s, std::nullopt};
}

TEST(Endpointing, NothingAtAllEndsAfterTheLongSilence) {
  const Endpointer endpointer;
  EXPECT_FALSE(endpointer.check(0));
  EXPECT_FALSE(endpointer.check(2.39));
  EXPECT_EQ(endpointer.check(2.4), Reason::kSilence);
  EXPECT_FALSE(endpointer.has_speech());
}

TEST(Endpointing, SilenceBehindSpeechEndsSooner) {
  Endpointer endpointer;
  endpointer.token(1.04);
  EXPECT_TRUE(endpointer.has_speech());
  EXPECT_FALSE(endpointer.check(2.23));
  EXPECT_EQ(endpointer.check(2.25), Reason::kSilenceAfterSpeech);
  EXPECT_EQ(endpointer.check(2.25), Reason::kSilenceAfterSpeech);  // until restart()
  endpointer.token(2.5);
  EXPECT_FALSE(endpointer.check(2.5));
  EXPECT_DOUBLE_EQ(endpointer.trailing_silence_s(3.0), 0.5);
}

// TDT: the last token was found at 4.0 s and lasts to 4.32 s; what counts is its end, not how many frames were blank.
TEST(Endpointing, TheEndOfATokenCountsAndNotWhereItWasFound) {
  Endpointer endpointer;
  endpointer.token(4.32);
  endpointer.token(4.08);  // an earlier one that comes later changes nothing
  EXPECT_FALSE(endpointer.check(4.0));
  EXPECT_DOUBLE_EQ(endpointer.trailing_silence_s(4.0), 0);
  EXPECT_NEAR(first_end(endpointer, 4.0).first, 5.52, 0.08);
}

TEST(Endpointing, VoiceWithoutTokensKeepsTheUtteranceOpen) {
  Endpointer endpointer;
  endpointer.token(1.0);
  endpointer.voice(3.0);
  EXPECT_FALSE(endpointer.check(4.1));
  EXPECT_EQ(endpointer.check(4.2), Reason::kSilenceAfterSpeech);
}

TEST(Endpointing, AnUtteranceWithoutPausesEndsByItsLength) {
  Endpointer endpointer;
  for (double now = 0; now < 19.9; now += 0.08) {
    endpointer.token(now + 0.08);
    EXPECT_FALSE(endpointer.check(now + 0.08)) << now;
  }
  endpointer.token(20);
  EXPECT_EQ(endpointer.check(20), Reason::kLength);
  endpointer.restart(20);
  EXPECT_FALSE(endpointer.check(20));
  EXPECT_FALSE(endpointer.has_speech());
  EXPECT_EQ(endpointer.check(22.4), Reason::kSilence);
}

TEST(Endpointing, EveryTimeCanBeSetOrSwitchedOff) {
  Endpointer quick({.silence_s = 0.5, .silence_after_speech_s = 0.3, .max_utterance_s = 2});
  EXPECT_EQ(quick.check(0.5), Reason::kSilence);
  quick.token(0.6);
  EXPECT_EQ(quick.check(0.95), Reason::kSilenceAfterSpeech);
  quick.token(1.9);
  EXPECT_EQ(quick.check(2.0), Reason::kLength);
  Endpointer never({.silence_s = kNever, .silence_after_speech_s = kNever, .max_utterance_s = kNever});
  never.token(1);
  EXPECT_FALSE(never.check(1e9));
}

TEST(Endpointing, AModelsOwnTokenEndsAtOnceButLetsPunctuationSettle) {
  Endpointer endpointer;
  endpointer.token(1.0);
  endpointer.end_of_utterance(1.08);
  EXPECT_FALSE(endpointer.check(1.2));
  endpointer.token(1.2);  // the full stop
  EXPECT_FALSE(endpointer.check(1.3));
  EXPECT_EQ(endpointer.check(1.36), Reason::kEndOfUtterance);
  endpointer.restart(1.36);
  endpointer.end_of_utterance(1.2);  // of the utterance before
  EXPECT_FALSE(endpointer.check(2.0));
  endpointer.end_of_utterance(2.0, true);
  EXPECT_EQ(endpointer.check(2.2), Reason::kEndOfBackchannel);
}

TEST(Endpointing, ChangesReplaceNamedRules) {
  const EndpointOptions own{.silence_s = kNever, .silence_after_speech_s = 0.6, .max_utterance_s = 60};
  const auto changed = EndpointChanges{.silence_after_speech_s = 1.5}.apply(own);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->silence_s, kNever);
  EXPECT_EQ(changed->silence_after_speech_s, 1.5);
  EXPECT_EQ(changed->max_utterance_s, 60);
  for (const double refused : {-1.0, 3600.5, kNever})
    EXPECT_EQ(EndpointChanges{.max_utterance_s = refused}.apply(own).error().code, Code::kInvalidArgument) << refused;
  EXPECT_EQ(EndpointChanges{.max_utterance_s = 3600}.apply(own)->max_utterance_s, 3600);
}

// The rule for silence alone would end the utterance before.
TEST(Endpointing, ALongSilenceBehindSpeechCanBeAskedFor) {
  Endpointer patient(*EndpointChanges{.silence_after_speech_s = 5}.apply({}));
  patient.token(1);
  EXPECT_FALSE(patient.check(5.9));
  EXPECT_EQ(patient.check(6.0), Reason::kSilenceAfterSpeech);
  EXPECT_EQ(EndpointChanges{.silence_after_speech_s = 0.3}.apply({})->silence_s, EndpointOptions().silence_s);
  const auto both = EndpointChanges{.silence_s = 3, .silence_after_speech_s = 5}.apply({});
  EXPECT_EQ(both->silence_s, 3) << "it was named";
  EXPECT_EQ(EndpointChanges{.silence_after_speech_s = std::nan("")}.apply({}).error().code, Code::kInvalidArgument);
}

TEST(Endpointing, CanBeSwitchedOff) {
  const auto off = EndpointChanges{.off = true}.apply({});
  ASSERT_TRUE(off);
  Endpointer endpointer(*off);
  endpointer.token(1);
  endpointer.end_of_utterance(2);
  EXPECT_FALSE(endpointer.check(3599));
  EXPECT_EQ(endpointer.check(3600), Reason::kLength);
  EXPECT_EQ(EndpointChanges({.max_utterance_s = 60, .off = true}).apply({})->max_utterance_s, 60);
  for (const EndpointChanges& both :
       {EndpointChanges{.silence_s = 3, .off = true}, EndpointChanges{.silence_after_speech_s = 3, .off = true}})
    EXPECT_EQ(both.apply({}).error().code, Code::kInvalidArgument);
}

TEST(Endpointing, ReasonsHaveNames) {
  const std::pair<Reason, const char*> names[] = {{Reason::kSilence, "silence"},
                                                  {Reason::kSilenceAfterSpeech, "silence"},
                                                  {Reason::kLength, "length"},
                                                  {Reason::kEndOfUtterance, "eou"},
                                                  {Reason::kEndOfBackchannel, "eob"},
                                                  {Reason::kCommit, "commit"},
                                                  {Reason::kEnd, "end"}};
  for (const auto& [reason, name] : names) EXPECT_STREQ(reason_name(reason), name);
}

TEST(Endpointing, OptionsAreChecked) {
  EXPECT_TRUE(validate(EndpointOptions{}).has_value());
  EXPECT_TRUE(validate({.silence_s = kNever, .silence_after_speech_s = kNever, .max_utterance_s = kNever}).has_value());
  for (const EndpointOptions& wrong : {EndpointOptions{.silence_s = 0}, EndpointOptions{.silence_after_speech_s = -1},
                                       EndpointOptions{.max_utterance_s = std::nan("")},
                                       EndpointOptions{.settle_s = kNever}, EndpointOptions{.settle_s = -0.1}})
    EXPECT_EQ(validate(wrong).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace syrinx
