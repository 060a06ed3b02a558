// Written forms and their spoken forms, by kind.
#include "text/speech/normalize.h"

#include <gtest/gtest.h>

namespace syrinx::text {
namespace {

std::string say(std::string_view text, bool british = false) {
  NormalizeOptions options;
  options.british = british;
  const auto normalized = normalize(text, options);
  return normalized ? to_text(*normalized) : normalized.error().message;
}

struct Case {
  const char* written;
  const char* said;
};

class Written : public testing::TestWithParam<Case> {};
TEST_P(Written, IsSaid) { EXPECT_EQ(say(GetParam().written), GetParam().said); }

INSTANTIATE_TEST_SUITE_P(
    Money, Written,
    testing::Values(Case{"$3.50", "three dollars and fifty cents"}, Case{"$1", "one dollar"},
                    Case{"$0.99", "ninety nine cents"}, Case{"$0.01", "one cent"}, Case{"$0", "zero dollars"},
                    Case{"$5.00", "five dollars"}, Case{"£2.20", "two pounds and twenty pence"},
                    Case{"£0.01", "one penny"}, Case{"€20", "twenty euros"}, Case{"¥500", "five hundred yen"},
                    Case{"$5 million", "five million dollars"}, Case{"$1.5bn", "one point five billion dollars"},
                    Case{"$3.5k", "three point five thousand dollars"},
                    Case{"$1,234,567.89",
                         "one million two hundred thirty four thousand "
                         "five hundred sixty seven dollars and eighty nine cents"},
                    Case{"-$20", "minus twenty dollars"}, Case{"US$40", "forty US dollars"},
                    Case{"$5-10", "five to ten dollars"}, Case{"$5-$10 million", "five to ten million dollars"},
                    Case{"a $20-a-day job", "a twenty dollar a-day job"}, Case{"50¢", "fifty cents"},
                    Case{"$1.2345", "one point two three four five dollars"},
                    Case{"It costs $5.", "It costs five dollars."}, Case{"$3.5", "three dollars and fifty cents"}));

INSTANTIATE_TEST_SUITE_P(Dates, Written,
                         testing::Values(Case{"2024-03-15", "March fifteenth, twenty twenty four"},
                                         Case{"3/15/2024", "March fifteenth, twenty twenty four"},
                                         Case{"25/12/1999", "December twenty fifth, nineteen ninety nine"},
                                         Case{"3/5/09", "March fifth, oh nine"},
                                         Case{"March 15, 2024", "March fifteenth, twenty twenty four"},
                                         Case{"March 15", "March fifteenth"}, Case{"Jan. 5", "January fifth"},
                                         Case{"Sept. 3rd, 2001", "September third, two thousand one"},
                                         Case{"15 March 2024", "the fifteenth of March twenty twenty four"},
                                         Case{"the 4th of July", "the fourth of July"},
                                         Case{"May 2020", "May twenty twenty"},
                                         Case{"31.12.2025", "December thirty first, twenty twenty five"},
                                         Case{"2024-13-45", "twenty twenty four thirteen to forty five"}));

INSTANTIATE_TEST_SUITE_P(Times, Written,
                         testing::Values(Case{"3:05", "three oh five"}, Case{"3:00", "three o'clock"},
                                         Case{"15:30", "fifteen thirty"}, Case{"3:05 pm", "three oh five PM"},
                                         Case{"3:05pm.", "three oh five PM."}, Case{"5 p.m. sharp", "five PM sharp"},
                                         Case{"at 5 p.m.", "at five PM."}, Case{"11am", "eleven AM"},
                                         Case{"12:30:45", "twelve thirty forty five"}, Case{"08:00", "eight o'clock"},
                                         Case{"23:00", "twenty three hundred"}, Case{"16:9", "sixteen to nine"}));

INSTANTIATE_TEST_SUITE_P(
    Units, Written,
    testing::Values(Case{"12.5%", "twelve point five percent"}, Case{"5 km", "five kilometers"},
                    Case{"1 km", "one kilometer"}, Case{"80mph", "eighty miles per hour"},
                    Case{"20°C", "twenty degrees celsius"}, Case{"-5°", "minus five degrees"},
                    Case{"3.2GHz", "three point two gigahertz"}, Case{"16GB", "sixteen gigabytes"},
                    Case{"10-20 kg", "ten to twenty kilograms"}, Case{"5-10%", "five to ten percent"},
                    Case{"100m²", "one hundred square meters"}, Case{"90 km/h", "ninety kilometers per hour"},
                    Case{"6 ft 2 in", "six feet two inches"}, Case{"250 μg", "two hundred fifty micrograms"},
                    Case{"15s", "fifteen seconds"}));

INSTANTIATE_TEST_SUITE_P(
    Plain, Written,
    testing::Values(Case{"12.5", "twelve point five"}, Case{".5", "point five"},
                    Case{"1,234", "one thousand two hundred thirty four"}, Case{"1984", "nineteen eighty four"},
                    Case{"5000", "five thousand"}, Case{"1,984", "one thousand nine hundred eighty four"},
                    Case{"007", "zero zero seven"}, Case{"-5", "minus five"}, Case{"2-3", "two to three"},
                    Case{"1914-18", "nineteen fourteen to eighteen"},
                    Case{"1990–1995", "nineteen ninety to nineteen ninety five"}, Case{"1990s", "nineteen nineties"},
                    Case{"'90s", "nineties"}, Case{"the 60s", "the sixties"}, Case{"21st", "twenty first"},
                    Case{"1/2", "one half"}, Case{"3/4", "three quarters"}, Case{"2 1/2", "two and a half"},
                    Case{"2/3", "two thirds"}, Case{"22/7", "twenty two sevenths"},
                    Case{"5/64", "five over sixty four"}, Case{"24/7", "twenty four seven"}, Case{"½", "one half"},
                    Case{"1½", "one and a half"}, Case{"1.2.3", "one point two point three"},
                    Case{"v2.0", "v two point zero"}, Case{"A320", "A three twenty"},
                    Case{"COVID-19", "COVID nineteen"}, Case{"MP3", "MP three"}, Case{"B2B", "B two B"},
                    Case{"20-year-old", "twenty year-old"}, Case{"4K", "four K"}, Case{"10x", "ten times"},
                    Case{"1920x1080", "nineteen twenty by ten eighty"}, Case{"#7", "number seven"},
                    Case{"~30", "about thirty"}, Case{"+4", "plus four"}, Case{"(-3)", "(minus three)"},
                    Case{"7.", "seven."}, Case{"1,2,3", "one, two, three"}, Case{"٣٤", "thirty four"}));

INSTANTIATE_TEST_SUITE_P(
    Addresses, Written,
    testing::Values(Case{"https://www.example.com/a-b.", "www dot example dot com slash a dash b."},
                    Case{"jo.smith@mail.org", "jo dot smith at mail dot org"},
                    Case{"see example.io/x_1, please", "see example dot io slash x underscore one, please"},
                    Case{"http://10.0.0.1/", "ten dot zero dot zero dot one"},
                    Case{"555-123-4567", "five five five, one two three, four five six seven"},
                    Case{"(555) 123-4567", "five five five, one two three, four five six seven"},
                    Case{"1-800-555-0199", "one, eight zero zero, five five five, zero one nine nine"},
                    Case{"555-1234", "five five five, one two three four"},
                    Case{"+44 20 7946 0958", "plus four four, two zero, seven nine four six, zero nine five eight"},
                    Case{"End.Start", "End. Start"}));

INSTANTIATE_TEST_SUITE_P(
    Words, Written,
    testing::Values(Case{"Dr. Smith lives on Elm Dr. now", "Doctor Smith lives on Elm Drive now"},
                    Case{"St. Paul walked down Main St. slowly", "Saint Paul walked down Main Street slowly"},
                    Case{"Mr and Mrs. Bennet", "Mr and Missus Bennet"}, Case{"Mr Darcy", "Mister Darcy"},
                    Case{"No. 5 and no.", "Number five and no."}, Case{"e.g. this", "for example this"},
                    Case{"tea, etc.", "tea, et cetera."}, Case{"cats vs dogs", "cats versus dogs"},
                    Case{"J. R. R. Tolkien", "J R R Tolkien"}, Case{"the U.S. army", "the U.S army"},
                    Case{"from the U.S.", "from the U.S."}, Case{"AT&T", "AT and T"}, Case{"and/or", "and or"},
                    Case{"w/o milk w/ tea", "without milk with tea"},
                    Case{"Henry VIII ruled", "Henry the eighth ruled"}, Case{"World War II", "World War two"},
                    Case{"Chapter IV", "Chapter four"}, Case{"Louis XIV's", "Louis the fourteenth's"},
                    Case{"Elizabeth I was", "Elizabeth the first was"}, Case{"Elizabeth I think", "Elizabeth I think"},
                    Case{"Malcolm X.", "Malcolm X."}, Case{"mix V", "mix V"}, Case{"vitamin A.", "vitamin A."},
                    Case{"café naïve Ærø", "cafe naive AEro"},
                    Case{"100 % of α & β", "one hundred percent of alpha and beta"},
                    Case{"yes -- no - maybe", "yes — no — maybe"}, Case{"well-known", "well-known"},
                    Case{"he said \"no\"", "he said “no”"}, Case{"[really] {ok}", "(really) (ok)"},
                    Case{"wait . . . what...", "wait… what…"}, Case{"it’s ‘fine’", "it's 'fine"},
                    Case{"x ≤ 3 ± 1", "x is at most three plus or minus one"}));

TEST(Normalize, BritishReading) {
  EXPECT_EQ(say("3/4/2024", true), "the third of April, twenty twenty four");
  EXPECT_EQ(say("105", true), "one hundred and five");
}

}  // namespace
}  // namespace syrinx::text
