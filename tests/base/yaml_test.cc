#include "base/yaml.h"

#include <gtest/gtest.h>

namespace syrinx {
namespace {

YamlNode parsed(std::string_view text) {
  auto node = parse_yaml(text, "t.yaml");
  EXPECT_TRUE(node) << node.error().message;
  return node ? std::move(*node) : YamlNode{};
}

TEST(Yaml, KeepsOrderLinesQuotingAndText) {
  const YamlNode root = parsed(
      "# comment\n"
      "b: 1  # one\n"
      "a:\n"
      "  - x\n"
      "  - [y, 'it''s']\n"
      "'’': \"\\\"\\u00e9\"\n"
      "'‘': ''''\n"
      "inner: {k: v, n: null}\n"
      "empty:\n"
      "block: |\n"
      "  two\n"
      "  lines\n");
  ASSERT_EQ(root.kind, YamlNode::Kind::kMapping);
  ASSERT_EQ(root.members.size(), 7u);
  EXPECT_EQ(root.members[0].key, "b");
  EXPECT_EQ(root.members[0].line, 2u);
  EXPECT_EQ(root.members[0].value.text, "1");
  EXPECT_FALSE(root.members[0].value.quoted);
  const YamlNode& list = root.find("a")->value;
  ASSERT_EQ(list.kind, YamlNode::Kind::kSequence);
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[0].text, "x");
  EXPECT_EQ(list.items[1].items[1].text, "it's");
  EXPECT_EQ(list.items[1].line, 5u);
  EXPECT_EQ(root.find("’")->value.text, "\"é");
  EXPECT_EQ(root.find("‘")->value.text, "'");
  EXPECT_TRUE(root.find("‘")->value.quoted);
  EXPECT_EQ(root.find("inner")->value.find("k")->value.text, "v");
  EXPECT_TRUE(root.find("inner")->value.find("n")->value.is_null());
  EXPECT_TRUE(root.find("empty")->value.is_null());
  EXPECT_EQ(root.find("block")->value.text, "two\nlines\n");
  EXPECT_EQ(root.find("none"), nullptr);
  EXPECT_EQ(list.find("x"), nullptr);
}

TEST(Yaml, NullIsPlainAndEmptyOrItsWord) {
  for (const char* text : {"", "# nothing\n", "~", "null", "Null", "NULL", "---\n"})
    EXPECT_TRUE(parsed(text).is_null());
  for (const char* text : {"'null'", "''", "\"~\"", "nul", "0", "[]", "{}"}) EXPECT_FALSE(parsed(text).is_null());
}

TEST(Yaml, ReadsJsonByteOrderMarksAndUnusedAnchors) {
  EXPECT_EQ(parsed(R"({"a": [1, "b"]})").find("a")->value.items[1].text, "b");
  EXPECT_EQ(parsed("\xef\xbb\xbf"
                   "a: 1")
                .find("a")
                ->value.text,
            "1");
  EXPECT_EQ(parsed("a: &here 1\n").find("a")->value.text, "1");
  EXPECT_EQ(parsed("\"a\\0b\"").text, std::string("a\0b", 3));
}

TEST(Yaml, RefusesUnsupportedYaml) {
  struct Case {
    std::string text;
    Code code;
    std::string part;
  };
  const Case cases[] = {
      {"a: [1\n", Code::kDataLoss, "valid YAML"},
      {"a: 1\n b: 2\n", Code::kDataLoss, "line 2"},
      {"a: 1\n\n'b", Code::kDataLoss, "line 3"},
      {"a: \xff\n", Code::kDataLoss, "UTF-8"},
      {"a: 1\nb: 2\na: 3\n", Code::kDataLoss, "'a' on line 1 stands again on line 3"},
      {"a: &x 1\nb: *x\n", Code::kUnsupported, "an alias on line 2"},
      {"a: &x 1\n*x : 2\n", Code::kUnsupported, "an alias on line 2"},
      {"a: !!python/name:os.system x\n", Code::kUnsupported, "a tag on line 1"},
      {"a: !!set {b}\n", Code::kUnsupported, "a tag on line 1"},
      {"a: !!seq [b]\n", Code::kUnsupported, "a tag on line 1"},
      {"? [a, b]\n: 1\n", Code::kUnsupported, "a key that is not a scalar on line 1"},
      {"a: 1\n---\nb: 2\n", Code::kUnsupported, "second YAML document on line 2"},
      {std::string(17, '[') + std::string(17, ']'), Code::kLimitExceeded, "deeper than 16"},
      {std::string(100000, '['), Code::kLimitExceeded, "deeper than 16"},
      {std::string((1 << 20) + 1, ' '), Code::kLimitExceeded, "1048577 bytes"},
  };
  for (const Case& hostile : cases) {
    const auto node = parse_yaml(hostile.text, "t.yaml");
    ASSERT_FALSE(node) << hostile.part;
    EXPECT_EQ(node.error().code, hostile.code) << node.error().message;
    EXPECT_NE(node.error().message.find(hostile.part), std::string::npos) << node.error().message;
    EXPECT_NE(node.error().message.find("'t.yaml'"), std::string::npos) << node.error().message;
  }
  EXPECT_TRUE(parse_yaml(std::string(16, '[') + std::string(16, ']'), "t"));
}

TEST(Yaml, CountsKeysAndValues) {
  EXPECT_TRUE(parse_yaml("a: [1, 2]", "t", {.max_nodes = 5}));
  const auto many = parse_yaml("a: [1,\n 2]", "t", {.max_nodes = 4});
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().message, "'t' has more than 4 keys and values, reached on line 2");
}

}  // namespace
}  // namespace syrinx
