#include "base/key_file.h"

#include <sys/stat.h>

#include "base/log.h"

namespace syrinx {

bool others_can_read(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && (status.st_mode & (S_IROTH | S_IWOTH)) != 0;
}

void warn_of_readers(const std::string& key_file) {
  if (others_can_read(key_file))
    log_warning("the key in '{}' can be read by every user of this machine; take that right away (chmod o-rw)",
                key_file);
}

}  // namespace syrinx
