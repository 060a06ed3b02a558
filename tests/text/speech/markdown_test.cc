// Beside markdown-it-py (tools/reference/markdown_texts.py), an implementation of CommonMark; and what differs.
#include "text/speech/markdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/json.h"
#include "tests/base/temp_folder.h"

namespace syrinx::text {
namespace {

std::string spoken(std::string_view text, size_t step = std::string_view::npos) {
  MarkdownReader reader;
  std::string out;
  for (size_t at = 0; at < text.size(); at += std::min(step, text.size())) reader.push(text.substr(at, step), out);
  reader.finish(out);
  return out;
}

// Breaks of lines and indentation are one space here.
std::string in_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c != ' ' && c != '\n' && c != '\t')
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

TEST(Markdown, LeavesTheWordsThatCommonMarkLeaves) {
  const auto parsed = parse_json(read_text(std::string(SYRINX_TEST_DATA) + "/text/markdown.json"), "markdown.json");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const Json* const texts = parsed->find("texts");
  ASSERT_NE(texts, nullptr);
  ASSERT_GT(texts->array()->size(), 60u);
  for (const Json& each : *texts->array()) {
    const std::string& text = *each.find("text")->string();
    EXPECT_EQ(in_one_line(spoken(text)), *each.find("plain")->string()) << text;
    for (const size_t step : {size_t{1}, size_t{2}, size_t{3}, size_t{7}}) EXPECT_EQ(spoken(text, step), spoken(text));
  }
}

// An opening mark counts before it is known whether it will close, and a mark inside a word does not count.
TEST(Markdown, DoesNotWaitForTheEnd) {
  EXPECT_EQ(spoken("*open and **two"), "open and two");
  EXPECT_EQ(spoken("2**3, a*b* and 5*3*2"), "2**3, a*b* and 5*3*2");
  EXPECT_EQ(spoken("[page][name] and [page]"), "page and [page]");
}

// Breaks of lines stay, since they are pauses; a line of marks alone goes with its own.
TEST(Markdown, KeepsTheLines) {
  EXPECT_EQ(spoken("# Tea\n\nFor *two*:\n- Green\n- Black\n\n---\nEnjoy."), "Tea\n\nFor two:\nGreen\nBlack\n\nEnjoy.");
  EXPECT_EQ(spoken("Run:\n```sh\n  make  all\n```\nDone."), "Run:\nmake  all\nDone.");
  EXPECT_EQ(spoken("- [ ] open\n- [x] done\n- [y] none"), "open\ndone\n[y] none");
  EXPECT_EQ(spoken("A claim.[^1] Another [1]."), "A claim. Another [1].");
  EXPECT_EQ(spoken("[a [b](c)](d) ![e](f) [g][h]"), "a b e g");
}

// Text is given out as soon as nothing can change it.
TEST(Markdown, HoldsNoMoreThanItMust) {
  MarkdownReader reader;
  std::string out;
  reader.push("A **bold", out);
  EXPECT_EQ(out, "A bold");
  reader.push("** word [and", out);
  EXPECT_EQ(out, "A bold word ");
  reader.push(" a page](https://x", out);
  EXPECT_EQ(out, "A bold word ");
  reader.push(".org) here", out);
  EXPECT_EQ(out, "A bold word and a page here");
  reader.push("\n-", out);
  EXPECT_EQ(out, "A bold word and a page here\n");
  reader.push(" item", out);
  EXPECT_EQ(out, "A bold word and a page here\nitem");
}

// An answer may be cut anywhere: what was a mark's beginning is told, but for a target.
TEST(Markdown, EndsAnywhere) {
  EXPECT_EQ(spoken("See [the page](https://x.o"), "See the page");
  EXPECT_EQ(spoken("See [the pa"), "See [the pa");
  EXPECT_EQ(spoken("**Bold and"), "Bold and");
  EXPECT_EQ(spoken("a \\"), "a \\");
  EXPECT_EQ(spoken("<https://x"), "<https://x");
  EXPECT_EQ(spoken("```"), "");
  EXPECT_EQ(spoken("-"), "");
  EXPECT_EQ(spoken(""), "");
}

TEST(Markdown, TooLongMarksAreText) {
  const std::string many(3 * MarkdownReader::kMaxHeldBytes, 'x');
  for (const std::string& text : {"[" + many + "](y)", "[x](" + many + ")", "<https://" + many + ">",
                                  std::string(5000, '-'), std::string(5000, '#')}) {
    EXPECT_EQ(spoken(text), text);
    EXPECT_EQ(spoken(text, 1), text);
  }
  EXPECT_EQ(spoken(std::string(3000, '[')), std::string(3000, '['));
}

// Words behind a bracket that does not close are held back for a while, not until the line ends.
TEST(Markdown, AnOpenBracketDoesNotHoldItsLine) {
  constexpr size_t kMax = MarkdownReader::kMaxOpenBytes;
  for (const char* begin : {"[", "![", "<"}) {
    const std::string open = begin + std::string(kMax - 2, 'x');
    MarkdownReader reader;
    std::string out;
    reader.push(open, out);
    EXPECT_EQ(out, "");
    reader.push("y", out);
    EXPECT_EQ(out, open + "y");
    EXPECT_EQ(spoken(open + "yz](a)>", 1), open + "yz](a)>");
  }
  const std::string label(kMax - 2, 'x');
  EXPECT_EQ(spoken("[" + label + "](https://x.org)"), label);
  EXPECT_EQ(spoken("[" + label + "](https://x.org)", 1), label);
}

}  // namespace
}  // namespace syrinx::text
