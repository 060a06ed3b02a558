// Files of others that are read where they are mapped: where another program shortens one, reading a page that is gone
// is a SIGBUS, which would end the process.  A watched page that is gone reads as zeros, and who watches is told.  For
// what anybody may change at any time, as recordings; not for weights, for which nobody may take zeros.
// Whoever opens such a file takes watched_file.h, which notices what is cut off within a page, too.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

// From now on pages are watched; without it WatchedPages does nothing.  Of programs (install_signal_handlers()), not of
// the library: a process has one action for a signal.  What is not watched takes the action that was there before.
void catch_missing_pages();

// Watches while it lives.  At most kMost at once, in all threads; those beyond are watched by nobody.
class WatchedPages {
 public:
  static constexpr size_t kMost = 128;

  // A whole mapping, which must outlive this.
  explicit WatchedPages(std::span<const std::byte> mapped);
  ~WatchedPages();
  WatchedPages(const WatchedPages&) = delete;
  WatchedPages& operator=(const WatchedPages&) = delete;

  // kDataLoss where something that was read was gone.  `name` stands in the message.
  Status check(const std::string& name) const;
  static Status became_shorter(const std::string& name);  // what check() says then

 private:
  std::optional<size_t> slot_;
};

}  // namespace syrinx
