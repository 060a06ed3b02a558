// Permissions of files that hold secrets.  Thread-safe.
#pragma once

#include <string>

namespace syrinx {

// Whether users of this machine who neither own the file nor are in its group can read or change it.
bool others_can_read(const std::string& path);
// Logs a warning where they can.
void warn_of_readers(const std::string& key_file);

}  // namespace syrinx
