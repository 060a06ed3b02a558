// Digits that name something: telephones, codes, labels, years, dates, times, versions, verses.
#include <gtest/gtest.h>

#include "spoken.h"

namespace syrinx::text {
namespace {

class Naming : public testing::TestWithParam<Spoken> {};
TEST_P(Naming, IsReadOut) { EXPECT_EQ(spoken(GetParam().written), GetParam().said); }

INSTANTIATE_TEST_SUITE_P(
    Telephones, Naming,
    testing::Values(Spoken{"Dial 999", "dial nine nine nine"},
                    Spoken{"Call 0800 555 111", "call zero eight zero zero five five five one one one"},
                    Spoken{"call 300 people", "call three hundred people"},
                    Spoken{"Text me at 55512", "text me at five five five one two"},
                    Spoken{"020 7946 0000", "zero two zero seven nine four six zero zero zero zero"},
                    Spoken{"911 cats", "nine hundred eleven cats"}));

INSTANTIATE_TEST_SUITE_P(
    Codes, Naming,
    testing::Values(Spoken{"The code is 12345", "the code is one two three four five"},
                    Spoken{"Code 7731 works", "code seven seven three one works"},
                    Spoken{"the code has 12345 lines", "the code has twelve thousand three hundred forty five lines"},
                    Spoken{"password: 8812", "password eight eight one two"},
                    Spoken{"The order number 500 customers got", "the order number five hundred customers got"},
                    Spoken{"Tracking number 773091 shows", "tracking number seven seven three zero nine one shows"},
                    Spoken{"order number 778812", "order number seven seven eight eight one two"},
                    Spoken{"123-45-6789", "one two three four five six seven eight nine"},
                    Spoken{"4111 1111 1111 1111", "four one one one one one one one one one one one one one one one"},
                    Spoken{"ISBN 0-306-40615-X", "isbn zero three zero six four zero six one five X"},
                    Spoken{"card ending in 4410", "card ending in four four one zero"}));

INSTANTIATE_TEST_SUITE_P(Postcodes, Naming,
                         testing::Values(Spoken{"Austin, TX 78701", "austin T X seven eight seven oh one"},
                                         Spoken{"NY 10001-2345", "N Y one oh oh oh one two three four five"},
                                         Spoken{"EC1A 1BB", "E C one A one B B"}, Spoken{"M1 1AE", "M one one A E"},
                                         Spoken{"K1A 0B1", "K one A zero B one"},
                                         Spoken{"zip 02134", "zip oh two one three four"}));

INSTANTIATE_TEST_SUITE_P(Labels, Naming,
                         testing::Values(Spoken{"Room 305", "room three oh five"},
                                         Spoken{"flight 1204", "flight twelve oh four"},
                                         Spoken{"Flight LH441", "flight L H four four one"},
                                         Spoken{"a Boeing 777-300", "a boeing seven seventy seven three hundred"},
                                         Spoken{"an RTX 3080", "an rtx thirty eighty"},
                                         Spoken{"305 cats", "three hundred five cats"},
                                         Spoken{"a Cessna 150 landed", "a cessna one fifty landed"},
                                         Spoken{"in London 250 people", "in london two hundred fifty people"},
                                         Spoken{"at 450 Oak Ave. today", "at four fifty oak avenue today"},
                                         Spoken{"Route 66", "route sixty six"}));

INSTANTIATE_TEST_SUITE_P(
    Years, Naming,
    testing::Values(Spoken{"In 1066", "in ten sixty six"}, Spoken{"1066 cats", "one thousand sixty six cats"},
                    Spoken{"sold 1950 cars", "sold one thousand nine hundred fifty cars"},
                    Spoken{"in 1950 cars were", "in nineteen fifty cars were"},
                    Spoken{"in 330 BC", "in three thirty B C"}, Spoken{"the mid-2000s", "the mid two thousands"},
                    Spoken{"her mid-30s", "her mid thirties"}, Spoken{"c. 1650", "circa sixteen fifty"},
                    Spoken{"(b. 1950, d. 1999)", "born nineteen fifty died nineteen ninety nine"}));

INSTANTIATE_TEST_SUITE_P(
    Dates, Naming,
    testing::Values(Spoken{"on 4/5", "on april fifth"}, Spoken{"4/5 of it", "four fifths of it"},
                    Spoken{"by 12/31", "by december thirty first"}, Spoken{"9/11", "nine eleven"},
                    Spoken{"05/2028", "may twenty twenty eight"},
                    Spoken{"2024-03-05T07:04:00Z", "march fifth twenty twenty four seven oh four"},
                    Spoken{"2024-03-05 17:30:05", "march fifth twenty twenty four seventeen thirty and five seconds"},
                    Spoken{"May 3-7", "may third to seventh"}, Spoken{"Mon.-Fri.", "monday to friday"},
                    Spoken{"Jan-Mar", "january to march"}, Spoken{"on Sat. and Sun. too", "on saturday and sunday too"},
                    Spoken{"The cat sat. It ran.", "the cat sat it ran"}));

INSTANTIATE_TEST_SUITE_P(
    Times, Naming,
    testing::Values(Spoken{"9am-5pm", "nine A M to five P M"}, Spoken{"3-4pm", "three to four P M"},
                    Spoken{"10:30-11", "ten thirty to eleven"}, Spoken{"7.15pm", "seven fifteen P M"},
                    Spoken{"7.15 miles", "seven point one five miles"}, Spoken{"6 PM EST.", "six P M E S T"},
                    Spoken{"1:02:45", "one oh two forty five"}));

INSTANTIATE_TEST_SUITE_P(Verses, Naming,
                         testing::Values(Spoken{"John 3:16-18", "john three sixteen to eighteen"},
                                         Spoken{"2 Kings 5", "second kings five"},
                                         Spoken{"2 Johns came", "two johns came"},
                                         Spoken{"Psalm 119:105", "psalm one nineteen one hundred five"}));

INSTANTIATE_TEST_SUITE_P(Items, Naming,
                         testing::Values(Spoken{"(i) one; (iv) two", "one one four two"}, Spoken{"(a) one", "A one"},
                                         Spoken{"a word (a) b", "a word a b"}));

TEST(NamingBritish, DatesNumbersAndScores) {
  EXPECT_EQ(spoken("on 5/11", true), "on the fifth of november");
  EXPECT_EQ(spoken("04/07/2024", true), "the fourth of july twenty twenty four");
  EXPECT_EQ(spoken("14 March 2009", true), "the fourteenth of march two thousand and nine");
  EXPECT_EQ(spoken("They won 3-0", true), "they won three to nil");
  EXPECT_EQ(spoken("£1,105", true), "one thousand one hundred and five pounds");
}

}  // namespace
}  // namespace syrinx::text
