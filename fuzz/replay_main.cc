// Runs a fuzz target over the files of the folders given, and over the beginnings of each file, so that every build
// replays the kept corpus without libFuzzer.  Fails when there is no file: a corpus that went missing is a fault.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kCuts = 64;  // beginnings tried of each file

// A copy of exact size, so that a sanitizer sees one byte read too many.
void run(const std::vector<char>& bytes, size_t size) {
  const auto exact = std::make_unique<uint8_t[]>(size);
  std::copy_n(bytes.begin(), size, exact.get());
  LLVMFuzzerTestOneInput(exact.get(), size);
}

}  // namespace

int main(int argc, char** argv) {
  size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i], error)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
      for (size_t cut = 0; cut < kCuts; ++cut) run(bytes, bytes.size() * cut / kCuts);
      run(bytes, bytes.size());
      ++files;
    }
  }
  std::printf("replayed %zu files, %zu beginnings of each\n", files, kCuts);
  return files > 0 ? 0 : 1;
}
