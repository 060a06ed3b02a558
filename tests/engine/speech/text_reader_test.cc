// Sentences and marks of a text that is read out, with a front end that takes each word as it stands.
#include "engine/speech/text_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace syrinx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Words have the name of the voice in front.
class EchoReader final : public SentenceReader {
 public:
  Status use_voice(const std::string& name) override {
    if (name == "nobody") return fail(Code::kNotFound, "there is no voice 'nobody'");
    voice_ = name;
    return {};
  }
  Result<SentenceReading> read(std::string_view sentence, size_t offset) override {
    SentenceReading reading;
    reading.text = sentence;
    reading.source_begin = offset;
    reading.source_end = offset + sentence.size();
    for (size_t i = 0; i < sentence.size();) {
      const size_t end = std::min(sentence.find(' ', i), sentence.size());
      const std::string_view word = sentence.substr(i, end - i);
      if (word != "-")
        reading.words.push_back({voice_ + std::string(word), "echo", "echo", "", offset + i, offset + end});
      i = end + 1;
    }
    return reading;
  }

 private:
  std::string voice_;
};

struct Read {
  std::vector<std::string> sentences;
  std::vector<size_t> begins;
  Status status;
};

Read read(std::string_view text, size_t step = SIZE_MAX, bool plain = false) {
  TextReading reading(std::make_unique<EchoReader>(), plain);
  Read all;
  const auto take = [&] {
    for (;;) {
      auto next = reading.next();
      if (!next) all.status = tl::unexpected(next.error());
      if (!next || !*next) return;
      EXPECT_EQ(text.substr((*next)->source_begin, (*next)->text.size()), (*next)->text);
      all.begins.push_back((*next)->source_begin);
      all.sentences.push_back((*next)->read_out());
    }
  };
  for (size_t i = 0; i < text.size() && all.status; i += std::min(step, text.size() - i)) {
    all.status = reading.feed(text.substr(i, step));
    if (all.status) take();
  }
  if (all.status) all.status = reading.finish();
  if (all.status) take();
  return all;
}

TEST(TextReading, CutsDoNotMatter) {
  constexpr std::string_view kText = "One two. Dr. Three! [pause:2s] [voice: ann] Four\n\nfive. [voice:] Sıx";
  const Read whole = read(kText);
  EXPECT_TRUE(whole.status);
  EXPECT_THAT(whole.sentences, ElementsAre("One two.", "Dr. Three!", "annFour", "annfive.", "Sıx"));
  for (const size_t step : {1, 2, 3, 7, 20}) {
    const Read parts = read(kText, step);
    EXPECT_TRUE(parts.status);
    EXPECT_EQ(parts.sentences, whole.sentences) << step;
    EXPECT_EQ(parts.begins, whole.begins) << step;
  }
}

TEST(TextReading, PlainTextHasNoMarks) {
  EXPECT_THAT(read("A [voice: nobody] b.", SIZE_MAX, true).sentences, ElementsAre("A [voice: nobody] b."));
}

TEST(TextReading, ErrorsFollowTheSentencesBefore) {
  for (const auto& [text, code, words] :
       {std::tuple("One.\n[voice: nobody] Two.", Code::kNotFound, "line 2 of the text"),
        std::tuple("One.\n[pause:61s] Two.", Code::kInvalidArgument, "line 2 of the text"),
        std::tuple("One.\n[pause: Two.", Code::kInvalidArgument, "no ']'")}) {
    const Read all = read(text);
    EXPECT_THAT(all.sentences, ElementsAre("One.")) << text;
    ASSERT_FALSE(all.status) << text;
    EXPECT_EQ(all.status.error().code, code) << text;
    EXPECT_THAT(all.status.error().message, HasSubstr(words)) << text;
  }
  EXPECT_EQ(read("One. \xFF").status.error().code, Code::kInvalidArgument);
  EXPECT_EQ(read("One. \xED\xA0\x80").status.error().code, Code::kInvalidArgument);  // half a surrogate pair
  std::string pauses = "One.";
  for (int i = 0; i < 61; ++i) pauses += " [pause:60s]";
  EXPECT_EQ(read(pauses).status.error().code, Code::kLimitExceeded);
}

TEST(TextReading, NothingToSayIsAnError) {
  for (const char* text : {"", " \n\n ", "-", "[pause:1s]", "- [voice: ann] -"}) {
    const Read all = read(text);
    ASSERT_FALSE(all.status) << text;
    EXPECT_EQ(all.status.error().code, Code::kInvalidArgument) << text;
    EXPECT_THAT(all.status.error().message, HasSubstr("nothing to say")) << text;
  }
}

TEST(TextReading, LongSentencesHaveALimit) {
  const std::string most(size_t{1} << 20, 'a');
  EXPECT_TRUE(read(most).status);
  EXPECT_EQ(read(most + "a").status.error().code, Code::kLimitExceeded);
  const std::string half(size_t{1} << 19, 'a');
  EXPECT_EQ(read(half + ". A" + half + ". A" + half, size_t{1} << 16).sentences.size(), 3u);
}

}  // namespace
}  // namespace syrinx
