#include "models/llama/jinja_outline.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "models/llama/jinja_condition.h"
#include "models/llama/jinja_pieces.h"

namespace syrinx::llama {
namespace {

using Tokens = std::span<const JinjaToken>;
using Truth = JinjaCondition::Truth;

class Outliner {
 public:
  explicit Outliner(const std::string& name) : name_(name) {}

  Status take(const JinjaPiece& piece) {
    if (piece.kind == JinjaPiece::Kind::kStatement) return take_statement(piece.tokens);
    if (!is_live()) return {};
    if (piece.tokens.empty() && piece.kind == JinjaPiece::Kind::kOutput) return malformed("an output is empty");
    if (!output_.empty()) output_.push_back({JinjaToken::Kind::kOperator, "+"});
    if (piece.kind == JinjaPiece::Kind::kData)
      output_.push_back({JinjaToken::Kind::kString, piece.data});
    else
      output_.insert(output_.end(), piece.tokens.begin(), piece.tokens.end());
    return {};
  }

  Result<std::string> finish() {
    if (!frames_.empty()) return malformed(frames_.back().is_if ? "an if has no endif" : "a for has no endfor");
    end_output();
    return std::move(lines_);
  }

 private:
  // A statement that is open.
  struct Frame {
    bool is_if = false;
    bool is_live = false;                 // the branch that is read counts
    bool was_live = false;                // outside of it
    bool is_written = false;              // the outline has its `if`
    bool is_settled = false;              // no further branch counts
    std::vector<std::string> tried = {};  // the alternatives of the branches before
  };

  tl::unexpected<Error> malformed(std::string_view reason) const {
    return fail(Code::kDataLoss, "{}: the chat template is malformed: {}", name_, reason);
  }
  bool is_live() const { return frames_.empty() || frames_.back().is_live; }

  void end_output() {
    if (output_.empty()) return;
    lines_ += "= " + write_jinja(output_) + '\n';
    output_.clear();
  }
  void write(const std::string& line) {
    end_output();
    lines_ += line + '\n';
  }

  Status take_statement(Tokens tokens) {
    if (tokens.empty()) return malformed("a statement is empty");
    const JinjaToken& word = tokens[0];
    const Tokens rest = tokens.subspan(1);
    if ((word.is("else") || word.is("endif") || word.is("endfor")) && !rest.empty())
      return malformed(word.text + " has something behind it");
    if (word.is("if")) {
      frames_.push_back({.is_if = true, .was_live = is_live()});
      take_branch(rest);
    } else if (word.is("elif") || (word.is("else") && !frames_.empty() && frames_.back().is_if)) {
      if (frames_.empty() || !frames_.back().is_if) return malformed("an elif is in no if");
      if (word.is("elif"))
        take_branch(rest);
      else
        take_last_branch();
    } else if (word.is("endif") || word.is("endfor")) {
      return take_end(word);
    } else if (word.is("for")) {
      if (is_live()) write(write_jinja(tokens));
      frames_.push_back({.is_live = is_live(), .was_live = is_live(), .is_written = is_live()});
    } else if (is_live() && !is_about_tools(tokens)) {
      write((word.is("set") || word.is("else") ? "" : "? ") + write_jinja(tokens));
    }
    return {};
  }

  // if or elif.
  void take_branch(Tokens tokens) {
    Frame& frame = frames_.back();
    frame.is_live = false;
    if (!frame.was_live || frame.is_settled) return;
    JinjaCondition condition = settle_condition(tokens);
    const bool is_tried = std::find(frame.tried.begin(), frame.tried.end(), condition.text) != frame.tried.end();
    if (condition.truth == Truth::kFalse || (condition.truth == Truth::kOpen && is_tried)) return;
    if (condition.truth == Truth::kTrue) return take_last_branch();
    write((frame.is_written ? "elif " : "if ") + condition.text);
    frame.is_live = frame.is_written = true;
    for (std::string& text : condition.alternatives) frame.tried.push_back(std::move(text));
  }

  void take_last_branch() {
    Frame& frame = frames_.back();
    frame.is_live = frame.was_live && !frame.is_settled;
    if (frame.is_live && frame.is_written) write("else");
    frame.is_settled = true;
  }

  Status take_end(const JinjaToken& word) {
    if (frames_.empty() || frames_.back().is_if != word.is("endif")) return malformed(word.text + " ends nothing");
    if (frames_.back().is_written) write(word.text);
    frames_.pop_back();
    return {};
  }

  // {% set tools = none %} and {% set tools_in_user_message = ... %}, which only branches of tools read.
  static bool is_about_tools(Tokens tokens) {
    const std::string text = write_jinja(tokens);
    return text == "set tools=none" || text == "set tools_in_user_message=true" ||
           text == "set tools_in_user_message=false";
  }

  const std::string& name_;
  std::vector<Frame> frames_;
  std::vector<JinjaToken> output_;  // outputs and texts that follow each other
  std::string lines_;
};

}  // namespace

Result<std::string> outline_jinja(std::string_view source, const std::string& name) {
  SYRINX_TRY(const std::vector<JinjaPiece> pieces, read_jinja(source, name));
  Outliner outliner(name);
  for (const JinjaPiece& piece : pieces) SYRINX_TRY_VOID(outliner.take(piece));
  return outliner.finish();
}

}  // namespace syrinx::llama
