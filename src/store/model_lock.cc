#include "store/model_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "store/paths.h"

namespace syrinx {

Result<ModelLock> ModelLock::acquire(const std::string& path, const std::atomic<bool>* cancel,
                                     const std::function<void()>& on_wait) {
  SYRINX_TRY_VOID(make_folders(std::filesystem::path(path).parent_path().string()));
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) return fail(Code::kIo, "cannot open the lock '{}': {}", path, std::strerror(errno));
  ModelLock lock(descriptor);
  bool waiting = false;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return fail(Code::kIo, "cannot lock '{}': {}", path, std::strerror(errno));
    }
    if (cancel != nullptr && cancel->load()) return fail(Code::kCancelled, "stopped while another process was at work");
    if (!std::exchange(waiting, true) && on_wait) on_wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return lock;
}

ModelLock::ModelLock(ModelLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

ModelLock::~ModelLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace syrinx
