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
  EXPECT_EQ(parsed->find("big")->whole(), nullptr);
  EXPECT_EQ(parsed->find("none"), nullptr);
  EXPECT_EQ(items[0].find("x"), nullptr);
}

TEST(Json, WritesOneLineThatReadsBack) {
  Json out;
  out.set("text", "a\"b\n").set("n", 3).set("x", 0.25).set("list", Json::Array{Json(true), Json(), Json(size_t{7})});
  out.set("inner", Json().set("k", std::string("v")));
  const std::string text = out.dump();
  EXPECT_EQ(text, R"({"text":"a\"b\n","n":3,"x":0.25,"list":[true,null,7],"inner":{"k":"v"}})");
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
