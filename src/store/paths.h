// Where Syrinx keeps things: models under the user's data folder, packed weights under the cache folder.
//   SYRINX_HOME set:  $SYRINX_HOME/data and $SYRINX_HOME/cache
//   otherwise:        $XDG_DATA_HOME/syrinx (~/.local/share/syrinx) and $XDG_CACHE_HOME/syrinx (~/.cache/syrinx)
// An XDG variable with a relative path is ignored, as its specification asks; a relative SYRINX_HOME counts from the
// current folder.  Nothing is created before something is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace syrinx {

struct UserPaths {
  std::string data;   // absolute
  std::string cache;  // absolute
};

// kNotFound when the system knows no home folder and no variable says one.
Result<UserPaths> user_paths();

// A path that cannot be examined counts as absent.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// Files that a folder may hold: those with the extension, of which one with a usual name, in their order, goes first.
struct FileKind {
  const char* extension;
  std::vector<const char*> usual;  // of any extension
};
// The folder's only file of the first kind that it holds any of; empty where it holds none.  kInvalidArgument names two
// of several.
Result<std::string> only_file(const std::filesystem::path& folder, std::span<const FileKind> kinds);

// Creates the folder and its missing parents (0755 as the umask allows).  kIo names the part that failed.
Status make_folders(const std::string& folder);

// Bytes that this user may still write where `path`, or its nearest existing parent, lies.
Result<uint64_t> free_bytes(const std::string& path);

}  // namespace syrinx
