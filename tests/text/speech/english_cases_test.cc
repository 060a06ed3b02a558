// The cases of english_unseen.tsv and english_plain.tsv whose reading these readers decide, without the lexicon:
// letters that belong together and words that are spelled by the lexicon are not told apart here.
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "spoken.h"

namespace syrinx::text {
namespace {

constexpr std::array<std::string_view, 30> kKinds = {"currency adjective",
                                                     "currency code",
                                                     "currency per",
                                                     "currency sign",
                                                     "abbreviation: day, month",
                                                     "abbreviation: other",
                                                     "abbreviation: unit",
                                                     "math",
                                                     "scientific notation",
                                                     "chemistry",
                                                     "fraction",
                                                     "code",
                                                     "url",
                                                     "phone",
                                                     "digits",
                                                     "postcode",
                                                     "room, flight, model",
                                                     "number: name, year, book",
                                                     "number: spaced thousands, m, bn",
                                                     "range",
                                                     "score",
                                                     "version",
                                                     "date",
                                                     "timestamp",
                                                     "decade",
                                                     "ordinal",
                                                     "time",
                                                     "unit",
                                                     "html entity",
                                                     "line break"};

// The same for english_plain.tsv.
constexpr std::array<std::string_view, 5> kPlainKinds = {"plain: brackets", "plain: missing space", "plain: law",
                                                         "plain: streets", "plain: plurals of models"};

// Readings that are respelled sounds.
constexpr std::array<std::string_view, 1> kBySound = {"Caf&eacute; Roma opens at ten."};

std::vector<std::string> cells(const std::string& line, std::string_view separator) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(separator, begin), line.size());
    out.push_back(line.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return out;
}

std::string letters(std::string_view reading) {
  std::string out;
  for (const char c : reading) {
    if (c != ' ' && c != '-' && c != ',' && c != '\'') out += ascii_lower(c);
  }
  return out;
}

std::string with_breaks(std::string text) {
  for (size_t at = text.find("\\n"); at != std::string::npos; at = text.find("\\n", at)) text.replace(at, 2, "\n");
  return text;
}

bool is_right(const std::vector<std::string>& row, const std::string& said) {
  std::vector<std::string> right = row.size() > 3 ? cells(row[3], " | ") : std::vector<std::string>();
  right.push_back(row[1]);
  return std::any_of(right.begin(), right.end(),
                     [&](const std::string& each) { return letters(each) == letters(said); });
}

// Rows of `name` that `reads` takes, each read out.
template <class Reads>
size_t judge(const std::string& name, const Reads& reads) {
  std::ifstream file(std::string(SYRINX_TEST_DATA) + "/text/" + name);
  EXPECT_TRUE(file) << name;
  size_t judged = 0;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> row = cells(line, "\t");
    if (row.size() < 3 || !reads(row)) continue;
    const std::string said = spoken(with_breaks(row[0]), row[2].starts_with("british:"));
    EXPECT_TRUE(is_right(row, said)) << row[0] << "\n  expected " << row[1] << "\n  said     " << said;
    ++judged;
  }
  return judged;
}

TEST(EnglishCases, NumbersAndSymbolsAreRead) {
  const size_t judged = judge("english_unseen.tsv", [](const std::vector<std::string>& row) {
    const bool british = row[2].starts_with("british: number") || row[2].starts_with("british: date");
    const bool is_kind = std::find(kKinds.begin(), kKinds.end(), row[2]) != kKinds.end();
    return (british || is_kind) && std::find(kBySound.begin(), kBySound.end(), row[0]) == kBySound.end();
  });
  EXPECT_GT(judged, 190u);
}

TEST(EnglishCases, OrdinarySentencesAreRead) {
  const size_t judged = judge("english_plain.tsv", [](const std::vector<std::string>& row) {
    return std::find(kPlainKinds.begin(), kPlainKinds.end(), row[2]) != kPlainKinds.end();
  });
  EXPECT_GT(judged, 30u);
}

}  // namespace
}  // namespace syrinx::text
