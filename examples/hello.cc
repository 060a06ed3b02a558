// Says a sentence into hello.f32: raw samples, mono, SYRINX_SAMPLE_RATE_HZ a second.  `syrinx pull kokoro` comes first.
#include <cstdio>
#include <syrinx/engine.hpp>

int main(int argc, char** argv) {
  syrinx::Engine engine;
  if (engine.load(syrinx::LoadOptions()) != SYRINX_OK) {
    std::fprintf(stderr, "%s\n", engine.error());
    return 1;
  }
  std::FILE* file = std::fopen("hello.f32", "wb");
  if (file == nullptr) return 1;
  const auto hear = [file](const syrinx_chunk& chunk) {
    return std::fwrite(chunk.samples, sizeof(float), chunk.sample_count, file) == chunk.sample_count;
  };
  const syrinx_code code = engine.speak(argc > 1 ? argv[1] : "Hello from the library.", syrinx::VoiceOptions(), hear);
  if (code != SYRINX_OK) std::fprintf(stderr, "%s\n", engine.error());
  return std::fclose(file) == 0 && code == SYRINX_OK ? 0 : 1;
}
