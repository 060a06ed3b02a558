// Maths, code, chemistry, references of HTML, links and broken lines.
#include <gtest/gtest.h>

#include "spoken.h"
#include "text/speech/entities.h"

namespace syrinx::text {
namespace {

class Symbols : public testing::TestWithParam<Spoken> {};
TEST_P(Symbols, AreReadOut) { EXPECT_EQ(spoken(GetParam().written), GetParam().said); }

INSTANTIATE_TEST_SUITE_P(
    Maths, Symbols,
    testing::Values(
        Spoken{"8 - 3 = 5", "eight minus three equals five"}, Spoken{"8-3=5", "eight minus three equals five"},
        Spoken{"x - 3", "x minus three"}, Spoken{"6*7", "six times seven"}, Spoken{"**bold** text", "bold text"},
        Spoken{"12 / 4", "twelve divided by four"}, Spoken{"either/or", "either or"},
        Spoken{"g(t) = 4t - 1", "G of T equals four T minus one"}, Spoken{"sin(x)", "sine of X"},
        Spoken{"book(s)", "book s"}, Spoken{"2^8", "two to the eighth"}, Spoken{"x^2", "x squared"},
        Spoken{"10⁻⁹", "ten to the minus nine"}, Spoken{"10¹²", "ten to the twelfth"},
        Spoken{"10²⁴", "ten to the twenty fourth"}, Spoken{"5³", "five cubed"},
        Spoken{"the end.¹ Next", "the end one next"}, Spoken{"√16", "the square root of sixteen"},
        Spoken{"x < 3", "x is less than three"}, Spoken{"<3 ms", "less than three milliseconds"},
        Spoken{"n >= 5", "n is at least five"}, Spoken{"a ≠ b", "a is not equal to b"},
        Spoken{"<b>bold</b>", "b bold b"}, Spoken{"2.5e-3 s", "two point five times ten to the minus three seconds"},
        Spoken{"4e6", "four times ten to the sixth"}, Spoken{"E5", "E five"},
        Spoken{"4! = 24", "four factorial equals twenty four"}, Spoken{"Only 4! Yes", "only four yes"},
        Spoken{"the bill is > 5 pages", "the bill is greater than five pages"},
        Spoken{"loads were ≥ 3", "loads were at least three"}, Spoken{"x > 3", "x is greater than three"},
        Spoken{"Press Ctrl+Shift+T or Alt+4", "press ctrl shift t or alt four"},
        Spoken{"Ctrl + C and Alt+F4", "ctrl c and alt F four"}, Spoken{"Windows+Mac", "windows plus mac"},
        Spoken{"Control:+5", "control plus five"}, Spoken{"it's < 5", "it's less than five"},
        Spoken{"it takes >= 2 days", "it takes at least two days"}, Spoken{"it is == 3", "it is equal to three"},
        Spoken{"This is <b>bold</b>", "this is b bold b"}, Spoken{"The type is <T>.", "the type is t"},
        Spoken{"B+C", "b plus c"}, Spoken{"y = kx + c", "y equals K X plus c"}));

INSTANTIATE_TEST_SUITE_P(
    Code, Symbols,
    testing::Values(Spoken{"parser.py", "parser dot P Y"}, Spoken{"the end.py", "the end dot P Y"},
                    Spoken{"Vue.js", "vue J S"}, Spoken{"app.js", "app dot J S"},
                    Spoken{"archive.tar.gz", "archive dot tar dot G Z"}, Spoken{"use .NET here", "use dot net here"},
                    Spoken{"ASP.NET", "A S P dot net"}, Spoken{"C# and F#", "C sharp and F sharp"},
                    Spoken{"an M.2 slot", "an M dot two slot"}, Spoken{"max_size", "max underscore size"},
                    Spoken{"_so_ what", "so what"}, Spoken{"parseHttpLine", "parse H T T P line"},
                    Spoken{"JavaScript YouTube", "javascript youtube"}, Spoken{"/etc/fstab", "slash E T C slash fstab"},
                    Spoken{"a && b", "a and b"}, Spoken{"x == 3", "x equals three"}, Spoken{"End.Start", "end start"}));

INSTANTIATE_TEST_SUITE_P(Chemistry, Symbols,
                         testing::Values(Spoken{"KMnO4", "K M N O four"}, Spoken{"NaCl", "N A C L"},
                                         Spoken{"C6H12O6", "C six H twelve O six"}, Spoken{"CH₄", "C H four"},
                                         Spoken{"Ca(OH)2", "C A O H two"}, Spoken{"He said No", "he said no"},
                                         Spoken{"CO and NO", "co and no"}, Spoken{"IoT PhD McCoy", "iot phd mccoy"},
                                         Spoken{"GaAs", "G A A S"}, Spoken{"UFOs and PCs", "ufos and pcs"}));

INSTANTIATE_TEST_SUITE_P(Writing, Symbols,
                         testing::Values(Spoken{"salt &amp; oil", "salt and oil"},
                                         Spoken{"it&#39;s &lt;5", "it's less than five"}, Spoken{"a&nbsp;b", "a b"},
                                         Spoken{"R&D; no", "R and D no"}, Spoken{"&#x41;sh", "ash"},
                                         Spoken{"[the guide](https://a.org/b) helps", "the guide helps"},
                                         Spoken{"[x](y)", "x y"}, Spoken{"the infor-\nmation", "the information"},
                                         Spoken{"well-\nknown", "well known"}, Spoken{"zero\u200Bwidth", "zero width"},
                                         Spoken{"c/o Ann", "care of ann"}));

TEST(Entities, OnlyWholeReferencesCount) {
  EXPECT_EQ(parse_entity("&eacute;x").character, U'é');
  EXPECT_EQ(parse_entity("&eacute;x").bytes, 8u);
  for (const char* none :
       {"", "&", "&;", "&amp", "&bogus;", "&#;", "&#0;", "&#xD800;", "&#x110000;", "&#99999999;", "amp;"}) {
    EXPECT_EQ(parse_entity(none).character, U'\0') << none;
  }
}

}  // namespace
}  // namespace syrinx::text
