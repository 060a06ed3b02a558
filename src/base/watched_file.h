// A file of somebody's that others may change at any time, as recordings and voices: what is read of it is what stood
// in it when it was opened, or check() says that it is not.
//
//   SYRINX_TRY(const WatchedFile file, WatchedFile::open(path));
//   auto voice = read_voice(file.bytes());  // whatever comes of it
//   SYRINX_TRY_VOID(file.check());
//
// Mapped, with its pages watched (watched_pages.h): what another program cuts off reads as zeros.  Besides, its size
// and the time when it was last written are compared with those at the opening; whoever only appends, as a recorder
// does, changes nothing that was there.  Not seen: one that is written anew and is longer by the time of check() than
// it was, which check_all() does see; and one that is written in the same tick of the file system's clock in which it
// was opened and keeps its size.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

class WatchedFile {
 public:
  // Errors: those of MappedFile::open().
  static Result<WatchedFile> open(const std::string& path);
  WatchedFile(WatchedFile&&) noexcept;
  ~WatchedFile();

  std::span<const std::byte> bytes() const;  // as long as the object lives
  void release() const;                      // MappedFile::release()
  // kDataLoss: somebody has shortened it or written it anew since, or it could not be read.  Any thread; some hundreds
  // of nanoseconds, but a question to its server where a file system keeps no attributes.
  Status check() const;
  // The same also where it has become longer: for what nobody appends to, as voices.
  Status check_all() const;

 private:
  struct State;
  explicit WatchedFile(std::unique_ptr<const State> state);
  Status check(bool may_grow) const;
  std::unique_ptr<const State> state_;
};

}  // namespace syrinx
