#include "audio/child/decoder_program.h"

#include <link.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace syrinx {
namespace {

namespace fs = std::filesystem;

struct Search {
  uintptr_t address;
  std::string path;  // of the file that holds the address; empty: the program's
};

int look_at(dl_phdr_info* object, size_t /*size*/, void* search) {
  auto* const wanted = static_cast<Search*>(search);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || wanted->address < begin || wanted->address - begin >= part.p_memsz) continue;
    wanted->path = object->dlpi_name == nullptr ? "" : object->dlpi_name;
    return 1;
  }
  return 0;
}

// The folder of the program or library that holds this code; empty: unknown.  A program that was replaced since it was
// started has a name of its own in /proc, in the same folder.
fs::path find_folder() {
  Search search{reinterpret_cast<uintptr_t>(&look_at), {}};
  ::dl_iterate_phdr(look_at, &search);
  std::error_code error;
  const fs::path file =
      search.path.empty() ? fs::read_symlink("/proc/self/exe", error) : fs::canonical(search.path, error);
  return error ? fs::path() : file.parent_path();
}

}  // namespace

Result<std::string> find_decoder_program() {
  // The user of a program with more rights does not choose what runs with them.
  if (const char* const named = ::secure_getenv("SYRINX_DECODE"); named != nullptr && *named != '\0')
    return std::string(named);
  static const fs::path here = find_folder();
  if (!here.empty())
    for (const char* const place :
         {"syrinx-decode", "../libexec/syrinx/syrinx-decode", "../../libexec/syrinx/syrinx-decode"})
      if (const std::string path = (here / place).lexically_normal().string(); ::access(path.c_str(), X_OK) == 0)
        return path;
  if (::access(SYRINX_DECODE_INSTALLED, X_OK) == 0) return std::string(SYRINX_DECODE_INSTALLED);
  return fail(Code::kUnsupported,
              "the program syrinx-decode is not there (a build with Debian's package libavformat-dev makes it)");
}

}  // namespace syrinx
