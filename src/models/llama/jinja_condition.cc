#include "models/llama/jinja_condition.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace syrinx::llama {
namespace {

using Tokens = std::span<const JinjaToken>;
using Truth = JinjaCondition::Truth;

// As write_jinja spells them.
constexpr std::string_view kTrue[] = {
    "tools is none",
    "tools is defined",
    "message.content is string",
    "message.content is defined",
    "messages[0].content is string",
    "add_generation_prompt is defined",
    "strftime_now is defined",
    "enable_thinking is defined",
    "enable_thinking is false",
};
constexpr std::string_view kFalse[] = {
    "tools",
    "tools is not none",
    "tools is not defined",
    "custom_tools is defined",
    "builtin_tools is defined",
    "tools_in_user_message is defined",
    "message.tool_calls",
    "message.tool_calls is defined",
    "'tool_calls' in message",
    "message.role=='tool'",
    "message.role=='ipython'",
    "message.reasoning_content is defined",
    "message.reasoning_content is string",
    "message.content is not string",
    "date_string is defined",
    "enable_thinking",
};

enum class Shape { kAtom, kNot, kAnd, kOr };
struct Settled {
  Truth truth = Truth::kOpen;
  Shape shape = Shape::kAtom;
  std::string text;
  std::vector<std::string> alternatives = {};  // kOr: its parts
};

int depth_step(const JinjaToken& token) {
  if (token.is("(") || token.is("[") || token.is("{")) return 1;
  return token.is(")") || token.is("]") || token.is("}") ? -1 : 0;
}

// The parts between the words that stand outside of brackets.
std::vector<Tokens> split(Tokens tokens, std::string_view word) {
  std::vector<Tokens> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    depth += depth_step(tokens[i]);
    if (depth != 0 || !tokens[i].is(word)) continue;
    parts.push_back(tokens.subspan(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(tokens.subspan(begin));
  return parts;
}

bool is_bracketed(Tokens tokens) {
  if (tokens.size() < 2 || !tokens[0].is("(")) return false;
  int depth = 0;
  for (size_t i = 0; i < tokens.size(); ++i)
    if ((depth += depth_step(tokens[i])) == 0) return i + 1 == tokens.size();
  return false;
}

Settled settle_atom(Tokens tokens) {
  Settled atom{Truth::kOpen, Shape::kAtom, write_jinja(tokens)};
  if (std::find(std::begin(kTrue), std::end(kTrue), atom.text) != std::end(kTrue)) atom.truth = Truth::kTrue;
  if (std::find(std::begin(kFalse), std::end(kFalse), atom.text) != std::end(kFalse)) atom.truth = Truth::kFalse;
  if (atom.text == "loop.index0==0") atom.text = "loop.first";
  return atom;
}

Settled settle(Tokens tokens, Shape shape, int depth);

Settled settle_not(Tokens tokens, int depth) {
  Settled inner = settle(tokens.subspan(1), Shape::kNot, depth + 1);
  if (inner.truth != Truth::kOpen)
    return {inner.truth == Truth::kTrue ? Truth::kFalse : Truth::kTrue, Shape::kAtom, ""};
  const bool needs_brackets = inner.shape == Shape::kAnd || inner.shape == Shape::kOr;
  return {Truth::kOpen, Shape::kNot, needs_brackets ? "not (" + inner.text + ")" : "not " + inner.text};
}

// `shape` says which level of the grammar the tokens stand on: or, and, not.
Settled settle(Tokens tokens, Shape shape, int depth) {
  if (depth > kMaxConditionDepth) return {Truth::kOpen, Shape::kAtom, write_jinja(tokens)};
  if (shape == Shape::kNot) {
    if (!tokens.empty() && tokens[0].is("not")) return settle_not(tokens, depth);
    return is_bracketed(tokens) ? settle(tokens.subspan(1, tokens.size() - 2), Shape::kOr, depth + 1)
                                : settle_atom(tokens);
  }
  const bool is_or = shape == Shape::kOr;
  const Truth deciding = is_or ? Truth::kTrue : Truth::kFalse;
  // a or b if c else d: the words bind the other way round.
  if (is_or && split(tokens, "if").size() > 1) return {Truth::kOpen, Shape::kAtom, write_jinja(tokens)};
  std::vector<Settled> open;
  bool is_decided = false;
  for (const Tokens part : split(tokens, is_or ? "or" : "and")) {
    Settled settled = settle(part, is_or ? Shape::kAnd : Shape::kNot, depth);
    is_decided = is_decided || settled.truth == deciding;
    if (settled.truth == Truth::kOpen) open.push_back(std::move(settled));
  }
  if (is_decided) return {deciding, Shape::kAtom, ""};
  if (open.empty()) return {is_or ? Truth::kFalse : Truth::kTrue, Shape::kAtom, ""};
  if (open.size() == 1) return open[0];
  Settled joined{Truth::kOpen, shape, ""};
  for (const Settled& part : open) {
    if (!joined.text.empty()) joined.text += is_or ? " or " : " and ";
    joined.text += !is_or && part.shape == Shape::kOr ? "(" + part.text + ")" : part.text;
    if (is_or) joined.alternatives.push_back(part.text);
  }
  return joined;
}

}  // namespace

JinjaCondition settle_condition(std::span<const JinjaToken> tokens) {
  Settled settled = settle(tokens, Shape::kOr, 0);
  if (settled.alternatives.empty()) settled.alternatives = {settled.text};
  return {settled.truth, std::move(settled.text), std::move(settled.alternatives)};
}

}  // namespace syrinx::llama
