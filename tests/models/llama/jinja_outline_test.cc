#include "models/llama/jinja_outline.h"

#include <gtest/gtest.h>

#include "models/llama/jinja_condition.h"

namespace syrinx::llama {
namespace {

std::string outline(std::string_view source) {
  const auto lines = outline_jinja(source, "file");
  EXPECT_TRUE(lines.has_value()) << lines.error().message;
  return lines ? *lines : "";
}

void expect_malformed(std::string_view source, const std::string& says) {
  const auto lines = outline_jinja(source, "file");
  ASSERT_FALSE(lines.has_value()) << source;
  EXPECT_EQ(lines.error().code, Code::kDataLoss);
  EXPECT_EQ(lines.error().message, "file: the chat template is malformed: " + says);
}

// Each text is Jinja2's with trim_blocks and lstrip_blocks.
TEST(JinjaOutline, BlanksAreStrippedAsInJinja) {
  EXPECT_EQ(outline("a\n"), "= 'a'\n");
  EXPECT_EQ(outline("a\r\nb\rc\r\n\r\n"), "= 'a\\nb\\nc\\n'\n");
  EXPECT_EQ(outline("  {% set x = 1 %}\n  b"), "set x=1\n= '  b'\n");
  EXPECT_EQ(outline("a  {% set x = 1 %}\n\nb"), "= 'a  '\nset x=1\n= '\\nb'\n");
  EXPECT_EQ(outline("a\n  {% set x = 1 +%}\nb"), "= 'a\\n'\nset x=1\n= '\\nb'\n");
  EXPECT_EQ(outline("a\n  {%+ set x = 1 -%} \n b"), "= 'a\\n  '\nset x=1\n= 'b'\n");
  EXPECT_EQ(outline("a \n {%- set x = 1 %} b"), "= 'a'\nset x=1\n= ' b'\n");
  EXPECT_EQ(outline("a\n  {# c #}\n  {# d -#}  \n b"), "= 'a\\nb'\n");
  EXPECT_EQ(outline("a\n  {{ x }}\n b"), "= 'a\\n  '+x+'\\n b'\n");
  EXPECT_EQ(outline("a {{- x -}} \n b"), "= 'a'+x+'b'\n");
  EXPECT_EQ(outline("{{ x }}  {% set y = 1 %}"), "= x+'  '\nset y=1\n");
  EXPECT_EQ(outline("{{ '}}' }} {% set y = '%}' %}"), "= '}} '\nset y='%}'\n");
  EXPECT_EQ(outline("{ a } {"), "= '{ a } {'\n");
}

TEST(JinjaOutline, SpellingsBecomeOne) {
  EXPECT_EQ(outline("{{ m['role'] + \"\\n\" + '\\t' + m[\"a b\"] | trim }}"), "= m.role+'\\n\\t'+m['a b']|trim\n");
  EXPECT_EQ(outline("{{ 'a' + 'b' | trim + 'c' }}"), "= 'a'+'b'|trim+'c'\n");
  EXPECT_EQ(outline("{{ 'a' * 2 + 'b' }}{{ x == 'c' }}"), "= 'a'*2+'b'+x=='c'\n");
  EXPECT_EQ(outline("{{ x in ['a'] }}"), "= x in['a']\n");
  EXPECT_EQ(outline("{{ 'it\\'s' }}{{ \"\\\\\" }}"), "= 'it\\'s\\\\'\n");
  EXPECT_EQ(outline("{{ 'a\\u0041' + 'b' }}"), "= ?'a\\\\u0041'+'b'\n");
  EXPECT_EQ(outline("{% for a in b if c %}{% else %}{% endfor %}{% break %}"),
            "for a in b if c\nelse\nendfor\n? break\n");
}

TEST(JinjaOutline, SettledBranchesAreFollowed) {
  EXPECT_EQ(outline("{% if tools %}a{% elif x %}b{% else %}c{% endif %}"), "if x\n= 'b'\nelse\n= 'c'\nendif\n");
  EXPECT_EQ(outline("{% if x %}a{% elif not tools %}b{% elif y %}c{% else %}d{% endif %}"),
            "if x\n= 'a'\nelse\n= 'b'\nendif\n");
  EXPECT_EQ(outline("{% if tools is none %}a{% else %}{% if x %}b{% endif %}{% endif %}c"), "= 'ac'\n");
  EXPECT_EQ(outline("{% if tools %}{% for t in tools %}{% if y %}a{% else %}b{% endif %}{% endfor %}{% endif %}c"),
            "= 'c'\n");
  EXPECT_EQ(outline("{% if x or y %}a{% elif y %}b{% elif z %}c{% endif %}"),
            "if x or y\n= 'a'\nelif z\n= 'c'\nendif\n");
  EXPECT_EQ(outline("{% set tools = none %}{% set tools = x %}"), "set tools=x\n");
}

TEST(JinjaOutline, ConditionsAreSettledByParts) {
  const auto condition = [](const std::string& text) { return outline("{% if " + text + " %}a{% endif %}"); };
  EXPECT_EQ(condition("tools and x"), "");
  EXPECT_EQ(condition("x or tools"), "if x\n= 'a'\nendif\n");
  EXPECT_EQ(condition("x and not tools"), "if x\n= 'a'\nendif\n");
  EXPECT_EQ(condition("not (tools or 'tool_calls' in message)"), "= 'a'\n");
  EXPECT_EQ(condition("(x or y) and (not tools and z)"), "if (x or y) and z\n= 'a'\nendif\n");
  EXPECT_EQ(condition("not(x and (y))"), "if not (x and y)\n= 'a'\nendif\n");
  EXPECT_EQ(condition("not (x)"), "if not x\n= 'a'\nendif\n");
  EXPECT_EQ(condition("(loop.index0 == 0)"), "if loop.first\n= 'a'\nendif\n");
  EXPECT_EQ(condition("(x == 1) != (y == 2)"), "if (x==1)!=(y==2)\n= 'a'\nendif\n");
  EXPECT_EQ(condition("tools or x if y else z"), "if tools or x if y else z\n= 'a'\nendif\n");
  EXPECT_EQ(condition("f(tools or x)"), "if f(tools or x)\n= 'a'\nendif\n");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "not ";
  EXPECT_NE(condition(deep + "tools").find("not tools\n"), std::string::npos);
}

TEST(JinjaOutline, MalformedTemplatesAreRefused) {
  expect_malformed("{{ a", "a tag has no end");
  expect_malformed("{{", "a tag has no end");
  expect_malformed("{% if a -", "a tag has no end");
  expect_malformed("{# a", "a comment has no end");
  expect_malformed("{{ 'a }}", "a string has no end");
  expect_malformed("{{ 'a\\", "a string has no end");
  expect_malformed("{{ (a] }}", "a bracket does not match");
  expect_malformed("{{ a) }}", "a bracket does not match");
  expect_malformed("{{ \x01$ }}", "a tag has '?$ }}'");
  expect_malformed("{{ }}", "an output is empty");
  expect_malformed("{% %}", "a statement is empty");
  expect_malformed("{% if a %}", "an if has no endif");
  expect_malformed("{% for a in b %}", "a for has no endfor");
  expect_malformed("{% endif %}", "endif ends nothing");
  expect_malformed("{% for a in b %}{% endif %}", "endif ends nothing");
  expect_malformed("{% if a %}{% endif b %}", "endif has something behind it");
  expect_malformed("{% if a %}{% else if b %}{% endif %}", "else has something behind it");
  expect_malformed("{% elif a %}", "an elif is in no if");
  expect_malformed("{% for a in b %}{% elif a %}{% endfor %}", "an elif is in no if");
}

}  // namespace
}  // namespace syrinx::llama
