#include "base/json.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

TEST(Json, KeepsKindsOrderAndText) {
  const auto parsed =
      parse_json(R"({"b": [1, -2, 2.5, 1e3, true, null], "a": "ž\n\u00e9", "big": 18446744073709551615})", "t");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const Json::Object& members = *parsed->object();
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(members[0].key, "b");
  const Json::Array& items = *members[0].value.array();
  EXPECT_EQ(*items[0].whole(), 1);
  EXPECT_EQ(*items[1].whole(), -2);
  EXPECT_EQ(*items[2].real(), 2.5);
  EXPECT_EQ(*items[3].real(), 1000);
  EXPECT_TRUE(*items[4].boolean());
  EXPECT_TRUE(items[5].is_null());
  EXPECT_EQ(*parsed->find("a")->string(), "ž\né");
  const Json& big = *parsed->find("big");
  EXPECT_EQ(big.whole(), nullptr);
  EXPECT_EQ(big.natural(), UINT64_MAX);
  EXPECT_EQ(*big.real(), 0x1p64);
  EXPECT_EQ(items[0].natural(), 1u);
  for (const Json& other : {items[1], items[2], items[3], items[4], items[5], *parsed->find("a")})
    EXPECT_FALSE(other.natural());
  EXPECT_EQ(parsed->find("none"), nullptr);
  EXPECT_EQ(items[0].find("x"), nullptr);
}

TEST(Json, AnArrayOfBytesIsNoValues) {
  JsonBytes bytes{.key = "b", .max_bytes = 3};
  const auto parsed = parse_json(R"({"a": {"b": [1]}, "b": [0, 255, 7], "c": [1]})", "t", {}, bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(bytes.bytes, std::string("\0\xFF\7", 3));
  EXPECT_EQ(parsed->dump(), R"({"a":{"b":[1]},"b":null,"c":[1]})");
  for (const char* without : {R"({"b": 7})", "[[1]]", R"({"c": [1]})"}) {
    EXPECT_TRUE(parse_json(without, "t", {}, bytes)) << without;
    EXPECT_FALSE(bytes.bytes) << without;
  }
  const auto fault = [&](const char* text) { return parse_json(text, "t", {}, bytes).error(); };
  EXPECT_EQ(fault(R"({"b": [1, 2, 3, 4]})").code, Code::kLimitExceeded);
  EXPECT_EQ(fault(R"({"b": [1, 2, 3, 4]})").message, "'t': 'b' has more than 3 bytes");
  EXPECT_EQ(fault(R"({"b": [1, 256]})").message, "'t': element 1 of 'b' is not a whole number from 0 to 255");
  EXPECT_EQ(fault(R"({"b": [1], "b": [2]})").code, Code::kDataLoss);
  EXPECT_EQ(fault(R"({"b": [1)").code, Code::kDataLoss);
}

TEST(Json, LoneSurrogatesAreTakenWhereAskedFor) {
  const JsonLimits limits{.takes_lone_surrogates = true};
  const std::pair<const char*, const char*> cases[] = {{R"(["a\ud83d"])", "a\uFFFD"},
                                                       {R"(["\uDE00 b"])", "\uFFFD b"},
                                                       {R"(["\ud83d\ud83d\ude00\ud83d"])", "\uFFFD\U0001F600\uFFFD"},
                                                       {R"(["\ud83dx\ude00"])", "\uFFFDx\uFFFD"},
                                                       {R"(["\ud83d\n\\ud83d"])", "\uFFFD\n\\ud83d"},
                                                       {R"(["\ud83d\ude00 \u00e9"])", "\U0001F600 \u00E9"},
                                                       {R"(["\\\ud83d"])", "\\\uFFFD"}};
  for (const auto& [text, plain] : cases) {
    const auto parsed = parse_json(text, "t", limits);
    ASSERT_TRUE(parsed) << text << parsed.error().message;
    EXPECT_EQ(*parsed->array()->front().string(), plain) << text;
  }
  for (const char* const bad : {R"(["\ud83"])", R"(["\ud83)", R"(["\ug83d"])", R"(["a\)",
                                R"(["a\)"
                                "\"]"})
    EXPECT_FALSE(parse_json(bad, "t", limits)) << bad;
  EXPECT_FALSE(parse_json(R"(["a\ud83d"])", "t"));
}

TEST(Json, LoneSurrogatesAreDroppedWhereAskedFor) {
  const std::pair<const char*, const char*> cases[] = {{R"(["a\ud83d b"])", "a b"},
                                                       {R"(["\ude00\ufffd\ud83d"])", "\uFFFD"},
                                                       {R"(["\ud83d\ud83d\ude00\ud83d"])", "\U0001F600"},
                                                       {"[\"\uFFFD\\ud83d\\\\ud83d\"]", "\uFFFD\\ud83d"}};
  for (const auto& [text, plain] : cases) {
    const auto parsed = parse_json(text, "t", {.drops_lone_surrogates = true});
    ASSERT_TRUE(parsed) << text << parsed.error().message;
    EXPECT_EQ(*parsed->array()->front().string(), plain) << text;
  }
}

// A terminal takes U+009B for the beginning of an order.
TEST(Json, ControlCharactersAreEscaped) {
  EXPECT_EQ(Json("\u0080a\u009b\u009f\u00a0\u00c2\x1b").dump(), "\"\\u0080a\\u009b\\u009f\u00a0\u00c2\\u001b\"");
  EXPECT_EQ(Json("\xc2").dump(), "\"\uFFFD\"");
}

TEST(Json, NoMoreValuesThanAreAskedFor) {
  EXPECT_TRUE(parse_json(R"({"a": 1, "b": [2]})", "t", {.max_values = 4}));
  const auto many = parse_json(R"({"a": 1, "b": [2]})", "t", {.max_values = 3});
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, Code::kLimitExceeded);
  EXPECT_EQ(many.error().message, "'t': more than 3 values of JSON");
}

TEST(Json, NoLongerPiecesThanAreAskedFor) {
  const JsonLimits limits{.max_piece_bytes = 8};
  for (const char* const text :
       {R"({"a": "123456", "b":        12345678})", R"(["\"\"\"", "]]]]]]"])", "[[[[[[[[[[]]]]]]]]]]"})
    EXPECT_TRUE(parse_json(text, "me", limits)) << text;
  for (const char* const text :
       {R"(["1234567"])", R"(["\"\"\"1"])", "[123456789]", "[         1]", R"("12345678)", "123456789x"}) {
    const auto got = parse_json(text, "me", limits);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code, Code::kLimitExceeded) << text;
  }
}

TEST(Json, NoLongerBlanksAndNumbersThanAreAskedFor) {
  const JsonLimits limits{.max_bare_bytes = 8};
  EXPECT_TRUE(parse_json(R"({"a": "a text of any length", "b":        12345678})", "me", limits));
  for (const char* const text : {"[123456789]", "[         1]", "\n\n\n\n\n\n\n\n\nx", "123456789x"}) {
    const auto got = parse_json(text, "me", limits);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().message, "'me': a number or blanks of more than 8 bytes in JSON") << text;
  }
}

TEST(Json, WritesOneLineThatReadsBack) {
  Json out;
  out.set("text", "a\"b\n").set("n", 3).set("x", 0.25).set("list", Json::Array{Json(true), Json(), Json(UINT64_MAX)});
  out.set("inner", Json().set("k", std::string("v")));
  const std::string text = out.dump();
  EXPECT_EQ(text, R"({"text":"a\"b\n","n":3,"x":0.25,"list":[true,null,18446744073709551615],"inner":{"k":"v"}})");
  const auto again = parse_json(text, "again");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->dump(), text);
}

TEST(Json, WritesBadUtf8AndInfinityWithoutThrowing) {
  EXPECT_EQ(Json("a\xff").dump(), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(Json(1e308 * 10).dump(), "null");
}

TEST(Json, RefusesMalformedTextDepthSizeAndDuplicates) {
  struct Case {
    std::string text;
    Code code;
  };
  const Case cases[] = {{"", Code::kDataLoss},
                        {"{", Code::kDataLoss},
                        {"[1,]", Code::kDataLoss},
                        {"nul", Code::kDataLoss},
                        {"1 2", Code::kDataLoss},
                        {"\"\xff\"", Code::kDataLoss},
                        {"1e999", Code::kDataLoss},
                        {R"({"a":1,"b":2,"a":3})", Code::kDataLoss},
                        {std::string(65, '[') + std::string(65, ']'), Code::kLimitExceeded},
                        {std::string(1000000, '['), Code::kLimitExceeded}};
  for (const Case& hostile : cases) {
    const auto parsed = parse_json(hostile.text, "hostile");
    ASSERT_FALSE(parsed.has_value()) << hostile.text;
    EXPECT_EQ(parsed.error().code, hostile.code) << parsed.error().message;
    EXPECT_NE(parsed.error().message.find("hostile"), std::string::npos);
  }
  EXPECT_EQ(parse_json("[1,2,3]", "long", {.max_bytes = 3}).error().code, Code::kLimitExceeded);
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']'), "deep").has_value());
}

}  // namespace
}  // namespace syrinx
