#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/in_quotes.h"
#include "base/signals.h"
#include "text/columns.h"

namespace syrinx::cli {

Status print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR && !cancel_requested()) continue;
      if (errno == EINTR) return fail(Code::kCancelled, "stopped");
      return fail(Code::kIo, "cannot write to standard output: {}", std::strerror(errno));
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status print_words(std::string_view text) {
  return is_terminal(STDOUT_FILENO) ? print(text::printable(text)) : print(text);
}

void note(std::string_view sentence) {
  // Names of files may hold anything: a sentence is one line, and gives a terminal no orders.
  const std::string line = fmt::format("syrinx: {}\n", shortened(sentence, sentence.size()));
  // Without standard error there is no place for the message.
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

void note_no_memory() {
  constexpr std::string_view kLine = "syrinx: out of memory; close other programs or give shorter text\n";
  if (::write(STDERR_FILENO, kLine.data(), kLine.size()) < 0) return;
}

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

StatusLine::StatusLine(bool quiet) : on_(!quiet && is_terminal(STDERR_FILENO)) {}

void StatusLine::show(const std::string& text) {
  if (!on_) return;
  const std::string line = "\r\x1b[K" + text;
  if (::write(STDERR_FILENO, line.data(), line.size()) > 0) shown_ = true;
}

void StatusLine::clear() {
  if (!shown_) return;
  shown_ = false;
  constexpr std::string_view kErase = "\r\x1b[K";
  if (::write(STDERR_FILENO, kErase.data(), kErase.size()) < 0) return;
}

}  // namespace syrinx::cli
