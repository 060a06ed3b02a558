// Boost's assertions, in builds that have them (tests, sanitizers, Debug): as assert() does, but for one that is wrong.
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace boost {

// Beast up to 1.85 takes for granted that behind the line of the last chunk two more bytes have come; a client that
// sends them one by one may not end the process.  What follows there waits for the rest, whatever there is
// (basic_parser.ipp, parse_chunk_header; boostorg/beast, pull request 2861).
static bool is_wrong(std::string_view expression, std::string_view function) {
  return expression == "n >= 5" && function.find("parse_chunk_header") != std::string_view::npos;
}

void assertion_failed(char const* expression, char const* function, char const* file, long line) {
  if (is_wrong(expression, function)) return;
  std::fprintf(stderr, "%s:%ld: %s: assertion failed: %s\n", file, line, function, expression);
  std::abort();
}

void assertion_failed_msg(char const* expression, char const* message, char const* function, char const* file,
                          long line) {
  std::fprintf(stderr, "%s: ", message);
  assertion_failed(expression, function, file, line);
}

}  // namespace boost
