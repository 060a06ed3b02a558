// Money, measures, scales, ranges and fractions: how they are read out.
#include <gtest/gtest.h>

#include "spoken.h"

namespace syrinx::text {
namespace {

class Amount : public testing::TestWithParam<Spoken> {};
TEST_P(Amount, IsReadOut) { EXPECT_EQ(spoken(GetParam().written), GetParam().said); }

INSTANTIATE_TEST_SUITE_P(MoneyBeforeNoun, Amount,
                         testing::Values(Spoken{"a $7 sandwich", "a seven dollar sandwich"},
                                         Spoken{"the $7 was lost", "the seven dollars was lost"},
                                         Spoken{"an €80k car", "an eighty thousand euro car"},
                                         Spoken{"her £3.5m house", "her three point five million pound house"},
                                         Spoken{"a new $20 bill", "a new twenty dollar bill"},
                                         Spoken{"two $20 bills", "two twenty dollar bills"},
                                         Spoken{"paid $20 for it", "paid twenty dollars for it"},
                                         Spoken{"a $4.99 toy", "a four dollar and ninety nine cent toy"},
                                         Spoken{"a $5-$10 fee", "a five to ten dollar fee"},
                                         Spoken{"a 5¢ coin", "a five cent coin"}));

INSTANTIATE_TEST_SUITE_P(
    Currencies, Amount,
    testing::Values(Spoken{"USD 5", "five U S dollars"}, Spoken{"1 USD", "one U S dollar"},
                    Spoken{"12.50 CHF", "twelve swiss francs and fifty rappen"},
                    Spoken{"KWD 1.250", "one kuwaiti dinar and two hundred fifty fils"},
                    Spoken{"500 JPY", "five hundred japanese yen"}, Spoken{"TRY 5 times", "try five times"},
                    Spoken{"TRY 1,500", "one thousand five hundred turkish lira"}, Spoken{"20€", "twenty euros"},
                    Spoken{"5 €", "five euros"}, Spoken{"₦2,000", "two thousand naira"}, Spoken{"₿2", "two bitcoins"},
                    Spoken{"HK$30", "thirty hong kong dollars"}, Spoken{"C$1", "one canadian dollar"},
                    Spoken{"Rs. 500", "five hundred rupees"}, Spoken{"100 kr", "one hundred kronor"},
                    Spoken{"$5 USD", "five U S dollars"}, Spoken{"₹5 lakh", "five lakh rupees"},
                    Spoken{"~$5", "about five dollars"}, Spoken{"-€3", "minus three euros"}));

INSTANTIATE_TEST_SUITE_P(Per, Amount,
                         testing::Values(Spoken{"$3/lb", "three dollars per pound"},
                                         Spoken{"£90/night", "ninety pounds per night"},
                                         Spoken{"€2.50/kg", "two euros and fifty cents per kilogram"},
                                         Spoken{"10 mg/dL", "ten milligrams per deciliter"},
                                         Spoken{"3 times/day and/or", "three times day and or"},
                                         Spoken{"9.8 m/s²", "nine point eight meters per second squared"}));

INSTANTIATE_TEST_SUITE_P(
    Units, Amount,
    testing::Values(Spoken{"a 10 km walk", "a ten kilometer walk"}, Spoken{"10 km are far", "ten kilometers are far"},
                    Spoken{"35mm lenses", "thirty five millimeter lenses"},
                    Spoken{"2 tbsp. of milk", "two tablespoons of milk"}, Spoken{"6 in. of snow", "six inches of snow"},
                    Spoken{"6 in the bag", "six in the bag"}, Spoken{"1 c. of tea", "one cup of tea"},
                    Spoken{"900 sq. ft. here", "nine hundred square feet here"},
                    Spoken{"an 8 fl. oz. glass", "an eight fluid ounce glass"}, Spoken{"12 m³", "twelve cubic meters"},
                    Spoken{"12 m3", "twelve cubic meters"}, Spoken{"5 kg/m^3", "five kilograms per cubic meter"},
                    Spoken{"2.4 GHz", "two point four gigahertz"}, Spoken{"5 MΩ", "five megaohms"},
                    Spoken{"100 Mbps", "one hundred megabits per second"}, Spoken{"a 20-ft pole", "a twenty foot pole"},
                    Spoken{"1 pt of cream", "one pint of cream"}, Spoken{"2 pt. milk", "two pints milk"},
                    Spoken{"12pt high", "twelve points high"}, Spoken{"3-in-1", "three in one"},
                    Spoken{"1/2 in. deep", "one half inch deep"}, Spoken{"2 1/2 tsp", "two and a half teaspoons"},
                    Spoken{"-5°C", "minus five degrees celsius"}));

INSTANTIATE_TEST_SUITE_P(
    FeetAndInches, Amount,
    testing::Values(Spoken{"5'11\" tall", "five feet eleven inches tall"}, Spoken{"a 6'2\" man", "a six foot two man"},
                    Spoken{"6 ft 1 in tall", "six feet one inch tall"},
                    Spoken{"5 ft 9 in. and up", "five feet nine inches and up"},
                    Spoken{"a 6 ft 3 in man", "a six foot three man"},
                    Spoken{"4 ft 6 in 2020", "four feet six in twenty twenty"}, Spoken{"10' long", "ten feet long"},
                    Spoken{"a 15\" laptop", "a fifteen inch laptop"}, Spoken{"it is 15\".", "it is fifteen inches"},
                    Spoken{"\"see 15\" he said", "see fifteen he said"}, Spoken{"8 x 10 ft", "eight by ten feet"},
                    Spoken{"8.5 × 11 in.", "eight point five by eleven inches"},
                    Spoken{"a 3×3 grid", "a three by three grid"},
                    Spoken{"a hall of 9 × 12 meters", "a hall of nine by twelve meters"},
                    Spoken{"2 × 5280 feet", "two times five thousand two hundred eighty feet"},
                    Spoken{"9 × 12 boxes", "nine times twelve boxes"}));

INSTANTIATE_TEST_SUITE_P(
    Scales, Amount,
    testing::Values(Spoken{"80m people", "eighty million people"}, Spoken{"80m long", "eighty meters long"},
                    Spoken{"a 100m sprint", "a one hundred meter sprint"}, Spoken{"4bn", "four billion"},
                    Spoken{"20k users", "twenty thousand users"}, Spoken{"a 10K run", "a ten K run"},
                    Spoken{"4K videos", "four K videos"},
                    Spoken{"12 345 678", "twelve million three hundred forty five thousand six hundred seventy eight"},
                    Spoken{"5 000 cats", "five thousand cats"},
                    Spoken{"room 5, 100 cats", "room five one hundred cats"}));

INSTANTIATE_TEST_SUITE_P(
    Ranges, Amount,
    testing::Values(Spoken{"5%-8%", "five percent to eight percent"}, Spoken{"5-8%", "five to eight percent"},
                    Spoken{"2.5-3x", "two point five to three times"}, Spoken{"1st-3rd", "first to third"},
                    Spoken{"10 - 20 people", "ten to twenty people"},
                    Spoken{"20 - 10 = 10", "twenty minus ten equals ten"}, Spoken{"5–8 days", "five to eight days"},
                    Spoken{"the 2018-19 season", "the twenty eighteen to nineteen season"},
                    Spoken{"2-3 km", "two to three kilometers"}));

INSTANTIATE_TEST_SUITE_P(Fractions, Amount,
                         testing::Values(Spoken{"3/8 of it", "three eighths of it"},
                                         Spoken{"20/20 vision", "twenty twenty vision"},
                                         Spoken{"I scored 7/10", "i scored seven out of ten"},
                                         Spoken{"a 3/5 star hotel", "a three out of five star hotel"},
                                         Spoken{"a 1/2 star review", "a one half star review"},
                                         Spoken{"a 95/100 grade", "a ninety five out of one hundred grade"},
                                         Spoken{"in 6/8 time", "in six eight time"},
                                         Spoken{"a 50/50 split", "a fifty fifty split"},
                                         Spoken{"9/10 of them", "nine tenths of them"}));

}  // namespace
}  // namespace syrinx::text
