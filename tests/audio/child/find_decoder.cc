// Says where the decoder is that this copy of a program would start; with an argument, after its file is gone.
#include <cstdio>
#include <filesystem>

#include "audio/child/decoder_program.h"

int main(int count, char** /*words*/) {
  if (count > 1) std::filesystem::remove(std::filesystem::read_symlink("/proc/self/exe"));
  const auto found = syrinx::find_decoder_program();
  std::puts(found ? found->c_str() : found.error().message.c_str());
  return found ? 0 : 1;
}
