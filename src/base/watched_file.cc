#include "base/watched_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptor.h"
#include "base/mapped_file.h"
#include "base/watched_pages.h"

namespace syrinx {
namespace {

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

}  // namespace

struct WatchedFile::State {
  explicit State(Descriptor opened) : descriptor(std::move(opened)) {}

  const Descriptor descriptor;  // stays open: another file may have the path by then
  struct stat info {};          // before it was mapped
  MappedFile file;
  std::unique_ptr<const WatchedPages> pages;
};

Result<WatchedFile> WatchedFile::open(const std::string& path) {
  SYRINX_TRY(Descriptor descriptor, Descriptor::open(path));
  auto state = std::make_unique<State>(std::move(descriptor));
  const int opened = state->descriptor.value();
  if (::fstat(opened, &state->info) != 0) return fail(Code::kIo, "cannot stat '{}': {}", path, std::strerror(errno));
  SYRINX_TRY(state->file, MappedFile::from_descriptor(opened, path));
  state->pages = std::make_unique<WatchedPages>(state->file.bytes());
  return WatchedFile(std::move(state));
}

WatchedFile::WatchedFile(std::unique_ptr<const State> state) : state_(std::move(state)) {}
WatchedFile::WatchedFile(WatchedFile&&) noexcept = default;
WatchedFile::~WatchedFile() = default;

std::span<const std::byte> WatchedFile::bytes() const { return state_->file.bytes(); }

void WatchedFile::release() const { state_->file.release(); }

Status WatchedFile::check() const { return check(true); }

Status WatchedFile::check_all() const { return check(false); }

Status WatchedFile::check(bool may_grow) const {
  SYRINX_TRY_VOID(state_->pages->check(state_->file.path()));
  struct stat now {};
  if (::fstat(state_->descriptor.value(), &now) != 0) return {};  // of a file system that is gone its pages tell
  if (now.st_size < state_->info.st_size) return WatchedPages::became_shorter(state_->file.path());
  const bool has_grown = now.st_size > state_->info.st_size;
  if (has_grown ? !may_grow : !same_time(now.st_mtim, state_->info.st_mtim))
    return fail(Code::kDataLoss, "'{}' was written while it was read; try again when no program writes to it",
                state_->file.path());
  return {};
}

}  // namespace syrinx
