// The cases of english_unseen.tsv, english_fresh.tsv and english_plain.tsv whose reading these readers decide, without
// the lexicon: letters that belong together and words that are spelled by the lexicon are not told apart here.
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

// Kinds of english_plain.tsv that the lexicon decides.
constexpr std::array<std::string_view, 3> kByLexicon = {"plain: A", "plain: I and IV", "plain: capitals"};

// Readings that are respelled sounds, or written out by the lexicon's rules.
constexpr std::array<std::string_view, 3> kBySound = {"Caf&eacute; Roma opens at ten.",
                                                      "All the version numbers live in package.json these days.",
                                                      "Press Ctrl+S to save your work every few minutes."};

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

bool is_british(std::string_view kind) {
  return kind.starts_with("british: number") || kind.starts_with("british: date");
}

bool is_of_numbers(std::string_view kind) {
  return is_british(kind) || std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

bool is_plain(std::string_view kind) {
  return kind.starts_with("plain: ") && std::find(kByLexicon.begin(), kByLexicon.end(), kind) == kByLexicon.end();
}

// Judges the rows of a file of tests/data/text whose kind is wanted; their number.
size_t judge(std::string_view name, bool (*is_wanted)(std::string_view)) {
  std::ifstream file(std::string(SYRINX_TEST_DATA) + "/text/" + std::string(name));
  EXPECT_TRUE(file);
  size_t judged = 0;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> row = cells(line, "\t");
    if (row.size() < 3) ADD_FAILURE() << "too few columns: " << line;
    if (row.size() < 3 || !is_wanted(row[2])) continue;
    if (std::find(kBySound.begin(), kBySound.end(), row[0]) != kBySound.end()) continue;
    std::vector<std::string> right = row.size() > 3 ? cells(row[3], " | ") : std::vector<std::string>();
    right.push_back(row[1]);
    const std::string said = spoken(with_breaks(row[0]), is_british(row[2]));
    const bool is_right = std::any_of(right.begin(), right.end(),
                                      [&](const std::string& each) { return letters(each) == letters(said); });
    EXPECT_TRUE(is_right) << row[0] << "\n  expected " << row[1] << "\n  said     " << said;
    ++judged;
  }
  return judged;
}

TEST(EnglishCases, NumbersAndSymbolsAreRead) { EXPECT_GT(judge("english_unseen.tsv", is_of_numbers), 190u); }

TEST(EnglishCases, FreshNumbersAndSymbolsAreRead) { EXPECT_GT(judge("english_fresh.tsv", is_of_numbers), 150u); }

TEST(EnglishCases, OrdinarySentencesStayPlain) { EXPECT_GT(judge("english_plain.tsv", is_plain), 140u); }

}  // namespace
}  // namespace syrinx::text
