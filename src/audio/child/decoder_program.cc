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

constexpr const char* kOwnProgram = "/proc/self/exe";

struct Search {
  uintptr_t address;
  std::string path;  // of the file that holds the address
};

int look_at(dl_phdr_info* object, size_t /*size*/, void* search) {
  auto* const wanted = static_cast<Search*>(search);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || wanted->address < begin || wanted->address - begin >= part.p_memsz) continue;
    // The program itself has no name here.
    wanted->path = object->dlpi_name == nullptr || *object->dlpi_name == '\0' ? kOwnProgram : object->dlpi_name;
    return 1;
  }
  return 0;
}

}  // namespace

Result<std::string> find_decoder_program() {
  if (const char* const named = std::getenv("SYRINX_DECODE"); named != nullptr) return std::string(named);
  Search search{reinterpret_cast<uintptr_t>(&look_at), {}};
  ::dl_iterate_phdr(look_at, &search);
  std::error_code error;
  // An update may have replaced the program while it runs: its link still names the folder, and leads to no file.
  const std::filesystem::path file = search.path == kOwnProgram ? std::filesystem::read_symlink(search.path, error)
                                                                : std::filesystem::canonical(search.path, error);
  const std::filesystem::path here = file.parent_path();
  if (!error)
    for (const char* const place :
         {"syrinx-decode", "../libexec/syrinx/syrinx-decode", "../../libexec/syrinx/syrinx-decode"})
      if (const std::string path = (here / place).lexically_normal().string(); ::access(path.c_str(), X_OK) == 0)
        return path;
  if (::access(SYRINX_DECODE_INSTALLED, X_OK) == 0) return std::string(SYRINX_DECODE_INSTALLED);
  return fail(Code::kUnsupported,
              "the program syrinx-decode is not there (a build with Debian's package libavformat-dev makes it)");
}

}  // namespace syrinx
