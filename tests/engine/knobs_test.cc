#include "engine/knobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace syrinx {
namespace {

constexpr const char* kColours[] = {"red", "blue"};
constexpr Knob kKnobs[] = {
    {.name = "pace", .kind = Knob::Kind::kNumber, .least = 0.25, .most = 4, .initial = 1},
    {.name = "steps", .kind = Knob::Kind::kWhole, .least = 1, .most = 64, .flag = "decode_steps"},
    {.name = "loud", .kind = Knob::Kind::kFlag},
    {.name = "colour", .kind = Knob::Kind::kText, .choices = kColours},
    {.name = "name", .kind = Knob::Kind::kText, .most = 4, .use = Knob::Use::kLoad},
    {.name = "words", .kind = Knob::Kind::kTexts}};
constexpr Knob kOthers[] = {{.name = "warmth", .kind = Knob::Kind::kNumber, .least = 0, .most = 1},
                            {.name = "bright", .kind = Knob::Kind::kFlag}};
constexpr KnobHolder kOwn{"Own", "own", kKnobs};
constexpr KnobHolder kAll[] = {kOwn, {"Other", "other-kind", kOthers}};

std::string fault(const Knobs& knobs) {
  const Status checked = check_knobs(knobs, kOwn, kAll);
  return checked ? "" : checked.error().message;
}

TEST(Knobs, ValuesInRangeAreTaken) {
  EXPECT_EQ(fault({{"pace", 0.25}, {"steps", 64.0}, {"loud", 1.0}, {"colour", "blue"}}), "");
  EXPECT_EQ(fault({{"words", std::vector<std::string>{"a"}}, {"pace", 4.0}}), "");
}

TEST(Knobs, ValuesOutOfRangeAreRefused) {
  EXPECT_EQ(fault({{"pace", 4.5}}), "'pace' is 4.5; give a number from 0.25 to 4");
  EXPECT_EQ(fault({{"steps", 1.5}}), "'steps' is 1.5; give a whole number from 1 to 64");
  EXPECT_EQ(fault({{"loud", 2.0}}), "'loud' is 2; give 0 or 1");
  EXPECT_EQ(fault({{"colour", "green"}}), "'colour' is 'green'; choose red or blue");
  EXPECT_EQ(fault({{"colour", 1.0}}), "'colour' takes a text");
  EXPECT_EQ(fault({{"name", "anna"}}), "");
  EXPECT_EQ(fault({{"name", "annas"}}), "'name' has 5 bytes; give at most 4");
  EXPECT_EQ(fault({{"pace", "fast"}}), "'pace' takes a number from 0.25 to 4");
  EXPECT_EQ(fault({{"words", "a"}}), "'words' takes a list of texts");
  for (const double bad : {double{NAN}, double{INFINITY}, -double{INFINITY}})
    EXPECT_NE(fault({{"pace", bad}}), "") << bad;
  EXPECT_EQ(check_knobs({{"pace", 4.5}}, kOwn, kAll).error().code, Code::kInvalidArgument);
}

// Numbers and texts that a request gives; flags are routes', lists have fields of their own.
TEST(Knobs, FormsHaveNumbersAndTexts) {
  std::vector<std::string> fields;
  for (const Knob& knob : kKnobs)
    if (fits_form(knob)) fields.emplace_back(knob.name);
  EXPECT_THAT(fields, testing::ElementsAre("pace", "steps", "colour"));
}

TEST(Knobs, LackingOptionsNameTheirFamilies) {
  EXPECT_EQ(fault({{"warmth", 0.5}}), "Own has no 'warmth'; leave it out, or take other-kind");
  EXPECT_EQ(fault({{"top_k", 50.0}}), "no family of models has 'top_k'; leave it out");
  EXPECT_EQ(check_knobs({{"warmth", 0.5}}, kOwn, kAll).error().code, Code::kUnsupported);
}

TEST(Knobs, FlagsAreNamedAsFlags) {
  const auto flag_fault = [](const Knobs& knobs) {
    return check_knobs(knobs, kOwn, kAll, KnobNames::kFlags).error().message;
  };
  EXPECT_EQ(flag_fault({{"steps", 65.0}}), "--decode-steps is 65; give a whole number from 1 to 64");
  EXPECT_EQ(flag_fault({{"colour", "green"}}), "--colour is 'green'; choose red or blue");
  EXPECT_EQ(flag_fault({{"warmth", 0.5}}), "Own has no --warmth; leave it out, or take other-kind");
}

TEST(Knobs, InitialValuesOfOtherFamiliesPass) {
  EXPECT_EQ(fault({{"bright", 0.0}}), "");
  EXPECT_NE(fault({{"bright", 1.0}}), "");
  EXPECT_TRUE(is_initial(kKnobs[0], 1.0));
  EXPECT_FALSE(is_initial(kKnobs[1], 1.0));
}

TEST(Knobs, SetReplacesAndEraseRemoves) {
  Knobs knobs;
  knobs.set("pace", 2.0);
  knobs.set("pace", 3.0);
  knobs.set("loud", 1.0);
  EXPECT_EQ(knobs.entries().size(), 2u);
  EXPECT_EQ(knobs.number("pace"), 3.0);
  EXPECT_TRUE(knobs.flag("loud"));
  EXPECT_EQ(knobs.text("pace"), std::nullopt);
  knobs.erase("pace");
  EXPECT_FALSE(knobs.has("pace"));
}

TEST(Knobs, FlagsAreNamedWithDashes) {
  EXPECT_EQ(flag_name(kKnobs[0]), "--pace");
  EXPECT_EQ(flag_name(kKnobs[1]), "--decode-steps");
}

}  // namespace
}  // namespace syrinx
