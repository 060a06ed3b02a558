#include "models/kokoro/voice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

namespace syrinx::kokoro {
namespace {

using testing::HasSubstr;

constexpr size_t kWidth = 4;

// Row r, column c holds r + c / 16 + bias.
std::string content(float bias) {
  std::vector<float> rows(kVoiceRows * kWidth);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<float>(i / kWidth) + static_cast<float>(i % kWidth) / 16.0f + bias;
  return {reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(float)};
}

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

class VoiceFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("voices" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    write("af_one.bin", content(0));
    write("bm_two.bin", content(100));
    write("readme.txt", "no voice");
    write("af_cut.bin", content(0).substr(0, 100));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string folder() const { return folder_.string(); }

  std::filesystem::path folder_;
};

TEST(Voice, ChoosesTheRowByTheNumberOfPhonemes) {
  const std::string bytes = content(0);
  const auto voice = Voice::parse(as_bytes(bytes), "v", kWidth);
  ASSERT_TRUE(voice);
  EXPECT_EQ(voice->style(0)[0], 0);
  EXPECT_EQ(voice->style(1)[0], 0);
  EXPECT_EQ(voice->style(2)[1], 1 + 1.0f / 16);
  EXPECT_EQ(voice->style(510)[0], 509);
  EXPECT_EQ(voice->style(100000)[0], 509);
  EXPECT_EQ(voice->style(7).size(), kWidth);
}

TEST(Voice, RefusesOtherSizesAndUnusableValues) {
  std::string bytes = content(0);
  for (const size_t size : {size_t{0}, size_t{3}, bytes.size() - 1, bytes.size() - kWidth * 4}) {
    const auto voice = Voice::parse(as_bytes(bytes).first(size), "short", kWidth);
    ASSERT_FALSE(voice);
    EXPECT_EQ(voice.error().code, Code::kDataLoss);
    EXPECT_THAT(voice.error().message, HasSubstr("short"));
  }
  for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity(), 1e9f}) {
    std::memcpy(bytes.data() + 4096, &value, sizeof value);
    EXPECT_FALSE(Voice::parse(as_bytes(bytes), "v", kWidth));
  }
}

TEST(Voice, ReadsBlends) {
  const auto parts = parse_voice("af_heart:0.6 + am_adam:0.4");
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].name, "af_heart");
  EXPECT_FLOAT_EQ((*parts)[1].weight, 0.4f);
  EXPECT_EQ(parse_voice("a,b,c")->size(), 3u);
  const auto bracketed = parse_voice("af_bella(2)+af_sky (1.5) + am_adam");
  ASSERT_TRUE(bracketed) << bracketed.error().message;
  ASSERT_EQ(bracketed->size(), 3u);
  EXPECT_EQ((*bracketed)[1].name, "af_sky");
  EXPECT_EQ((*bracketed)[0].weight, 2.0f);
  EXPECT_EQ((*bracketed)[1].weight, 1.5f);
  EXPECT_EQ((*bracketed)[2].weight, 1.0f);
  EXPECT_TRUE(parse_voice("./mine.bin:2")->front().is_path());
}

TEST(Voice, RefusesInvalidBlends) {
  for (const char* text :
       {"",  " ",  "a++b", "a:",   "a:x",  "a:-1",  "a:0", "a:nan", "a:inf", "a:1e9",   "a b",   "af\xff",
        "+", "a,", "a()",  "a(0)", "a(x)", "a(-1)", "(2)", "a(2",   "a2)",   "a(1)(2)", "a:1(2)"}) {
    const auto parts = parse_voice(text);
    ASSERT_FALSE(parts) << text;
    EXPECT_EQ(parts.error().code, Code::kInvalidArgument) << text;
  }
  std::string many = "a";
  for (size_t i = 0; i < kMaxVoiceParts; ++i) many += "+a";
  EXPECT_EQ(parse_voice(many).error().code, Code::kLimitExceeded);
  EXPECT_EQ(parse_voice(std::string(10000, 'a')).error().code, Code::kLimitExceeded);
}

TEST_F(VoiceFolder, MixesByShares) {
  const auto mixed = load_voice(folder(), "af_one:3+bm_two:1", kWidth);
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_NEAR(mixed->style(3)[2], 2 + 2.0 / 16 + 25, 1e-4);
  const auto bracketed = load_voice(folder(), "af_one(6)+bm_two(2)", kWidth);
  ASSERT_TRUE(bracketed) << bracketed.error().message;
  EXPECT_EQ(bracketed->style(3)[2], mixed->style(3)[2]);
  const auto mean = load_voice(folder(), "af_one,bm_two", kWidth);
  ASSERT_TRUE(mean);
  EXPECT_NEAR(mean->style(3)[2], 2 + 2.0 / 16 + 50, 1e-4);
  const auto alone = load_voice(folder(), "bm_two", kWidth);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->style(3)[2], 2 + 2.0f / 16 + 100);
  EXPECT_TRUE(load_voice("/nowhere", folder() + "/af_one.bin", kWidth));
}

TEST_F(VoiceFolder, NamesTheVoiceThatIsMissingOrDamaged) {
  const auto missing = load_voice(folder(), "af_one+af_none", kWidth);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("'af_none'"));
  const auto cut = load_voice(folder(), "af_cut", kWidth);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Code::kDataLoss);
  EXPECT_FALSE(load_voice(folder(), "../secret", kWidth));
}

TEST_F(VoiceFolder, ListsByName) {
  const auto voices = list_voices(folder());
  ASSERT_TRUE(voices);
  ASSERT_EQ(voices->size(), 3u);
  EXPECT_EQ((*voices)[0].name, "af_cut");
  EXPECT_EQ((*voices)[2].name, "bm_two");
  EXPECT_EQ((*voices)[2].language, "British English");
  EXPECT_EQ((*voices)[2].gender, "male");
  EXPECT_EQ(list_voices("/nowhere/at/all").error().code, Code::kNotFound);
}

// A text may name a voice, and messages go to a terminal.
TEST(Voice, MessagesHoldNoControlCharacters) {
  for (const char* text : {"\x1b[31m", "a:\x1b[31m"}) {
    const auto parts = parse_voice(text);
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().message.find('\x1b'), std::string::npos);
  }
}

TEST(Voice, IsBritishByItsDescription) {
  for (const char* british : {"bf_emma", "bm_george:0.5+af_heart:0.5", " bf_emma , af_heart", "/a/voices/bf_emma.bin"})
    EXPECT_TRUE(speaks_british(british)) << british;
  for (const char* other : {"bob", "ben", "b", "", "af_heart+bf_emma", "/b/af_heart.bin", "./bob.bin", "xbf_emma"})
    EXPECT_FALSE(speaks_british(other)) << other;
}

TEST(Voice, DescribesNames) {
  EXPECT_EQ(describe_voice("jf_alpha").language_code, "ja");
  EXPECT_EQ(describe_voice("jf_alpha").gender, "female");
  EXPECT_EQ(describe_voice("mine").language, "unknown");
  EXPECT_EQ(describe_voice("xm_mine").language_code, "und");
}

}  // namespace
}  // namespace syrinx::kokoro
