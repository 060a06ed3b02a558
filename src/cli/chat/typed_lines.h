// Lines of a conversation as they are typed: questions, blocks of several lines between two """, and commands.  Pure;
// one thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx::cli {

struct Typed {
  enum class Kind : uint8_t {
    kNothing,   // a blank line
    kMore,      // a line of a block that goes on
    kQuestion,  // in `text`
    kCommand,   // `text` is its name with the '/', `rest` what follows it
  };
  Kind kind = Kind::kNothing;
  std::string text = {};
  std::string rest = {};
};

class TypedLines {
 public:
  static constexpr std::string_view kQuotes = "\"\"\"";

  // `line` is without its line break.  kLimitExceeded with the end of a block that is too long for a message.
  Result<Typed> push(std::string_view line);
  bool is_in_block() const { return is_in_block_; }
  void abandon_block();

 private:
  void add(std::string_view line);
  Result<Typed> close();

  bool is_in_block_ = false;
  bool is_too_long_ = false;
  bool has_line_ = false;
  std::string block_;
};

}  // namespace syrinx::cli
