#include "store/paths.h"

#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace syrinx {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string home_folder() {
  std::string home = environment("HOME");
  if (!home.empty() && home[0] == '/') return home;
  const passwd* const user = ::getpwuid(::getuid());
  return user != nullptr && user->pw_dir != nullptr ? std::string(user->pw_dir) : std::string();
}

Result<std::string> xdg_folder(const char* variable, const char* below_home) {
  const std::string chosen = environment(variable);
  if (!chosen.empty() && chosen[0] == '/') return chosen + "/syrinx";
  const std::string home = home_folder();
  if (home.empty()) {
    return fail(Code::kNotFound, "no home folder is known for this user; set SYRINX_HOME to a folder for models");
  }
  return home + below_home + "/syrinx";
}

}  // namespace

Result<UserPaths> user_paths() {
  const std::string own = environment("SYRINX_HOME");
  if (!own.empty()) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(own, error);
    if (error) return fail(Code::kIo, "cannot resolve SYRINX_HOME='{}': {}", own, error.message());
    return UserPaths{(absolute / "data").string(), (absolute / "cache").string()};
  }
  SYRINX_TRY(std::string data, xdg_folder("XDG_DATA_HOME", "/.local/share"));
  SYRINX_TRY(std::string cache, xdg_folder("XDG_CACHE_HOME", "/.cache"));
  return UserPaths{std::move(data), std::move(cache)};
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

Result<std::string> only_file(const std::filesystem::path& folder, std::span<const FileKind> kinds) {
  namespace fs = std::filesystem;
  for (const FileKind& kind : kinds) {
    for (const char* const name : kind.usual)
      if (is_there(folder / name)) return (folder / name).string();
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (entry->path().extension() == kind.extension) names.push_back(entry->path().string());
    if (names.size() > 1) {
      std::sort(names.begin(), names.end());
      return fail(Code::kInvalidArgument, "the folder holds several checkpoints, '{}' and '{}' among them; name one",
                  names[0], names[1]);
    }
    if (!names.empty()) return names.front();
  }
  return {};
}

Status make_folders(const std::string& folder) {
  for (size_t end = 1; end <= folder.size(); ++end) {
    if (end < folder.size() && folder[end] != '/') continue;
    const std::string part = folder.substr(0, end);
    if (::mkdir(part.c_str(), 0755) == 0) continue;
    const int error = errno;
    struct stat info {};
    if (::stat(part.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    return fail(Code::kIo, "cannot create the folder '{}': {}; SYRINX_HOME chooses another place", part,
                std::strerror(error == EEXIST ? ENOTDIR : error));
  }
  return {};
}

Result<uint64_t> free_bytes(const std::string& path) {
  std::filesystem::path at = path;
  struct statvfs info {};
  while (::statvfs(at.c_str(), &info) != 0) {
    if ((errno != ENOENT && errno != ENOTDIR) || !at.has_relative_path()) {
      return fail(Code::kIo, "cannot read the free space of '{}': {}", at.string(), std::strerror(errno));
    }
    at = at.parent_path();
  }
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace syrinx
