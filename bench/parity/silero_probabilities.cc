// Silero's probabilities of raw sound, for bench/parity/silero.py.
// Usage: silero_probabilities MODEL.bin carried|mirrored SOUND.f32 OUT.f32   (16 kHz mono)
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <string_view>

#include "base/mapped_file.h"
#include "models/silero/vad.h"

namespace {

using namespace syrinx;

Status run(char** arguments) {
  SYRINX_TRY(const auto vad, silero::SileroVad::load(arguments[1]));
  const auto framing =
      std::string_view(arguments[2]) == "mirrored" ? silero::Framing::kMirrored : silero::Framing::kCarried;
  SYRINX_TRY(const MappedFile file, MappedFile::open(arguments[3]));
  std::vector<float> samples(file.bytes().size() / sizeof(float));
  std::memcpy(samples.data(), file.bytes().data(), samples.size() * sizeof(float));
  const std::vector<float> probabilities = silero::speech_probabilities(*vad, samples, framing);
  std::ofstream out(arguments[4], std::ios::binary);
  out.write(reinterpret_cast<const char*>(probabilities.data()),
            static_cast<std::streamsize>(probabilities.size() * sizeof(float)));
  if (!out.flush()) return fail(Code::kIo, "{} cannot be written", arguments[4]);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: silero_probabilities MODEL.bin carried|mirrored SOUND.f32 OUT.f32\n");
    return 2;
  }
  const Status status = run(argv);
  if (!status) fmt::print(stderr, "error: {}\n", status.error().message);
  return status ? 0 : 1;
}
