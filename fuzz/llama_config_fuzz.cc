// Parsers: src/models/llama/config\.cc
#include "base/check.h"
#include "models/llama/config.h"

// A GGUF file or a config.json, whose numbers must describe a decoder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syrinx;
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  Result<llama::Config> config = tl::unexpected(Error{});
  if (const auto file = GgufFile::parse(bytes, "fuzz"))
    config = llama::read_config(*file, "fuzz");
  else
    config = llama::read_config(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!config) return 0;
  const nn::DecoderConfig shape = llama::decoder_shape(*config, DType::kBF16);
  SYRINX_CHECK(shape.heads % shape.key_heads == 0 && shape.query_width() > 0, "{} heads", shape.heads);
  SYRINX_CHECK(config->frequency_factors.empty() || config->frequency_factors.size() == shape.head_size / 2,
               "{} factors", config->frequency_factors.size());
  return 0;
}
