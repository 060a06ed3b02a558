// A lock between processes, on a file: held while a model's folder is changed.  Freed when the object or the process
// ends.  Errors: kIo, kCancelled.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/result.h"

namespace syrinx {

class ModelLock {
 public:
  // Waits while another process holds it; `on_wait` is called once in that case and may be empty.
  static Result<ModelLock> acquire(const std::string& path, const std::atomic<bool>* cancel,
                                   const std::function<void()>& on_wait);
  ModelLock(ModelLock&& other) noexcept;
  ModelLock& operator=(ModelLock&&) = delete;
  ModelLock(const ModelLock&) = delete;
  ~ModelLock();

 private:
  explicit ModelLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace syrinx
