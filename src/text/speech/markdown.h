// Spoken form of a text with Markdown's marks, as language models write it (CommonMark 0.31, and ~~ as GitHub has it).
//
// Emphasis, code marks, headings, list marks, quotations, fences, rules and the targets of links go; all words stay,
// code too, and the numbers of lists.  An image is its description, <https://x.org> an address.  A mark that is none
// (2 * 3, snake_case, \*) stays.  Indentation goes with the marks.  Tables and HTML are left as they are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace syrinx::text {

// Reads a text that arrives in pieces: the result is the same however it is cut.  One thread.
class MarkdownReader {
 public:
  static constexpr size_t kMaxHeldBytes = 2048;  // of what may be a mark; what is longer is none
  // Limit of an unclosed bracket and of an address within <>: the listener waits for these words until it closes.
  static constexpr size_t kMaxOpenBytes = 256;

  // UTF-8, cut between characters.  Appends to `out` what has become certain.
  void push(std::string_view text, std::string& out);
  void finish(std::string& out);  // and the rest of it

 private:
  // From the place that is looked at on.  Where it is not settled, a mark that reaches its end may go on.
  struct Ahead {
    std::string_view text;
    bool is_settled, is_end;
  };
  using Used = std::optional<size_t>;  // bytes that are done with; nothing: more has to come first

  void read(bool is_end, std::string& out);
  Used read_line_start(const Ahead& ahead);
  Used read_fence_end(const Ahead& ahead);
  Used read_fence(const Ahead& ahead);
  Used read_rule_or_item(const Ahead& ahead);
  Used read_within_line(const Ahead& ahead, std::string& out);
  Used read_code_mark(const Ahead& ahead, std::string& out);
  Used read_escape(const Ahead& ahead, std::string& out);
  Used read_emphasis(const Ahead& ahead, std::string& out);
  Used read_link(const Ahead& ahead, size_t begin, std::string& out);
  Used read_address(const Ahead& ahead, std::string& out);
  Used read_heading_end(const Ahead& ahead, std::string& out);
  bool is_emphasis(char mark, size_t run, char next);
  void read_label(std::string_view label, std::string& out);
  size_t plain(std::string_view text, size_t bytes, std::string& out);
  size_t end_line(std::string& out);
  Used begin_line(size_t used);

  std::string held_;
  bool is_line_start_ = true, is_heading_ = false, is_item_ = false;
  bool is_dropped_ = false;  // the rest of the line
  char previous_ = '\n';     // the byte before, or the mark
  char fence_ = 0;           // in a block of code: what its fence is made of
  size_t fence_run_ = 0, code_run_ = 0;
  size_t stars_ = 0, underscores_ = 0;  // that are open
  bool is_struck_ = false;
  int depth_ = 0;  // of links in links
};

}  // namespace syrinx::text
