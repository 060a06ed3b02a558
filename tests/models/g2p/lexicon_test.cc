#include "models/g2p/lexicon.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "../../base/temp_folder.h"
#include "models/g2p/flat_json.h"
#include "tiny.h"

namespace syrinx::g2p {
namespace {

namespace fs = std::filesystem;

std::string value(const std::optional<Entry>& entry) { return entry ? std::string(entry->default_value()) : "none"; }

TEST(Lexicon, FindsGoldAndSilver) {
  const auto lexicon = Lexicon::load(tiny_gold(), tiny_silver(), "");
  ASSERT_TRUE(lexicon) << lexicon.error().message;
  EXPECT_EQ(value(lexicon->gold("hello")), "həlˈO");
  EXPECT_EQ(value(lexicon->gold("quokka")), "none");
  EXPECT_EQ(value(lexicon->silver("quokka")), "kwˈɑkə");
  EXPECT_EQ(value(lexicon->gold("cat")), "kˈæt");
  EXPECT_EQ(value(lexicon->gold("café")), "kæfˈA");   // \u escapes
  EXPECT_EQ(value(lexicon->gold("lonely")), "none");  // null is no pronunciation
  EXPECT_TRUE(lexicon->contains("nato"));
  EXPECT_FALSE(lexicon->contains("zzz"));
  EXPECT_FALSE(lexicon->contains(""));
}

TEST(Lexicon, CapitalisedFormsComeByThemselves) {
  const auto lexicon = Lexicon::load(tiny_gold(), tiny_silver(), "");
  ASSERT_TRUE(lexicon);
  EXPECT_EQ(value(lexicon->gold("Hello")), "həlˈO");
  EXPECT_EQ(value(lexicon->gold("paris")), "pˈɛɹəs");
  EXPECT_EQ(value(lexicon->gold("HELLO")), "none");
  EXPECT_EQ(value(lexicon->gold("heLLo")), "none");
  EXPECT_EQ(value(lexicon->gold("a")), "none");  // single letters stand for themselves
  EXPECT_EQ(value(lexicon->gold("A")), "ˈA");
}

TEST(Lexicon, VariantsByPartOfSpeech) {
  const auto lexicon = Lexicon::load(tiny_gold(), "", "");
  ASSERT_TRUE(lexicon);
  const auto read = lexicon->gold("Read");
  ASSERT_TRUE(read && read->by_tag());
  EXPECT_EQ(read->find("VBD"), "ɹˈɛd");
  EXPECT_EQ(read->find("DEFAULT"), "ɹˈid");
  EXPECT_EQ(read->find("NOUN"), std::nullopt);
  EXPECT_FALSE(lexicon->gold("hello")->by_tag());
}

TEST(Lexicon, CompilesOnceAndMakesADamagedFileAnew) {
  const TempFolder place;
  const fs::path folder = fs::path(place.path()) / "lexicon_cache" / "deep";
  const auto first = Lexicon::load(tiny_gold(), tiny_silver(), folder.string());
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  const fs::path file = fs::directory_iterator(folder)->path();
  const auto written = fs::last_write_time(file);
  ASSERT_TRUE(Lexicon::load(tiny_gold(), tiny_silver(), folder.string()));
  EXPECT_EQ(fs::last_write_time(file), written);
  for (const uintmax_t size : {uintmax_t{0}, uintmax_t{10}, fs::file_size(file) - 1}) {
    fs::resize_file(file, size);
    const auto again = Lexicon::load(tiny_gold(), tiny_silver(), folder.string());
    ASSERT_TRUE(again);
    EXPECT_EQ(value(again->gold("hello")), "həlˈO");
  }
}

TEST(Lexicon, AnUnwritableCacheIsNoError) {
  const auto lexicon = Lexicon::load(tiny_gold(), tiny_silver(), "/proc/no/such/folder");
  ASSERT_TRUE(lexicon);
  EXPECT_EQ(value(lexicon->gold("hello")), "həlˈO");
}

TEST(Lexicon, EveryDamagedByteIsNoticed) {
  const auto lexicon = Lexicon::compile(R"({"ab": "x", "b": {"DEFAULT": "y", "VERB": "z"}})", "{}", "tiny");
  ASSERT_TRUE(lexicon);
  const auto bytes = lexicon->compiled_bytes();
  const std::string whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const uint64_t key = Lexicon::source_key(R"({"ab": "x", "b": {"DEFAULT": "y", "VERB": "z"}})", "{}");
  ASSERT_TRUE(Lexicon::from_compiled(whole, key, "copy"));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    const auto opened = Lexicon::from_compiled(damaged, key, "damaged");
    ASSERT_FALSE(opened) << i;
    EXPECT_EQ(opened.error().code, Code::kDataLoss);
    ASSERT_FALSE(Lexicon::from_compiled(whole.substr(0, i), key, "short")) << i;
  }
  EXPECT_FALSE(Lexicon::from_compiled(whole, key + 1, "other sources"));
}

TEST(Lexicon, MissingAndMalformedSources) {
  const auto missing = Lexicon::load("/no/such/file.json", "", "");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  for (const char* wrong :
       {"", "[", "{", "{\"a\"", "{\"a\":", "{\"a\":1}", "{\"a\":\"b\"", "{\"a\":\"b\"} x", "{\"a\":{\"b\":{}}}",
        "{\"a\":true}", "{\"\":\"b\"}", "{\"a\":\"\\q\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\n\"}",
        "{\"a\":[\"b\"]}", "{a:\"b\"}"}) {
    const auto compiled = Lexicon::compile(wrong, "", "wrong.json");
    if (std::string_view(wrong).empty()) {
      EXPECT_TRUE(compiled);
      continue;
    }
    ASSERT_FALSE(compiled) << wrong;
    EXPECT_EQ(compiled.error().code, Code::kDataLoss) << wrong;
    EXPECT_NE(compiled.error().message.find("wrong.json"), std::string::npos);
  }
}

TEST(FlatJson, ReadsStringsNumbersAndLiterals) {
  std::string seen;
  const auto visit = [&](std::string_view key, std::string_view inner, std::string_view v, bool is_string) -> Status {
    seen += fmt::format("{}.{}={}{};", key, inner, v, is_string ? "s" : "");
    return {};
  };
  ASSERT_TRUE(
      read_flat_json(R"( {"a" : "\u0041\n\ud83d\ude00\/" , "b":{"c":-1.5e-05,"d":null},"e":{} } )", "x", visit));
  EXPECT_EQ(seen, "a.=A\n😀/s;b.c=-1.5e-05;b.d=null;");
}

}  // namespace
}  // namespace syrinx::g2p
