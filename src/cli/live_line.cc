// The escapes are those of ECMA-48: EL (erase to the end of the line), SGR 2 and 22 (faint, normal).
#include "cli/live_line.h"

#include <sys/ioctl.h>

#include <algorithm>

#include "text/columns.h"

namespace syrinx::cli {
namespace {

constexpr std::string_view kCut = "…";
constexpr size_t kUsualColumns = 80;

}  // namespace

std::string live_line(std::string_view text, size_t stable_bytes, size_t columns) {
  std::string all = text::printable(text);
  std::replace(all.begin(), all.end(), '\n', ' ');
  // The last column stays free: some terminals go to the next line behind it.
  const size_t room = std::max<size_t>(columns, 3) - 1;
  std::string_view shown = text::tail_within(all, room);
  const bool is_cut = shown.size() < all.size();
  if (is_cut) shown = text::tail_within(all, room - 1);
  const size_t left_out = all.size() - shown.size();
  const size_t stable = stable_bytes <= left_out ? 0 : std::min(stable_bytes - left_out, shown.size());
  std::string out = "\r";
  if (is_cut) out += kCut;
  out += shown.substr(0, stable);
  if (stable < shown.size()) {
    out += "\x1b[2m";
    out += shown.substr(stable);
    out += "\x1b[22m";
  }
  return out + "\x1b[K";
}

size_t terminal_columns(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

}  // namespace syrinx::cli
