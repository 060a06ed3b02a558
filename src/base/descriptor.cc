#include "base/descriptor.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

namespace syrinx {

Result<Descriptor> Descriptor::open(const std::string& path) {
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened >= 0) return Descriptor(opened);
  const int error = errno;
  const Code code = error == ENOENT || error == ENOTDIR ? Code::kNotFound : Code::kIo;
  return fail(code, "cannot open '{}': {}", path, std::strerror(error));
}

}  // namespace syrinx
