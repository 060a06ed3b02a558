// Parsers: src/models/qwen_tts/tokenizer\.cc
#include "base/check.h"
#include "models/qwen_tts/tokenizer.h"

// vocab.json, merges.txt and tokenizer_config.json with a line of dashes between them: the tokens of texts are the
// model's, and none but the template's are special.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syrinx;
  constexpr std::string_view kBorder = "\n---\n";
  std::string_view parts[3], rest(reinterpret_cast<const char*>(data), size);
  for (std::string_view& part : parts) {
    const size_t end = std::min(rest.find(kBorder), rest.size());
    part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + kBorder.size(), rest.size()));
  }
  qwen_tts::Config config;
  config.text_vocabulary = 352;
  config.text = {.im_start = 275, .im_end = 276, .pad = 277, .bos = 278, .eos = 279};
  const auto tokenizer =
      qwen_tts::Tokenizer::read({.vocabulary = parts[0], .merges = parts[1], .config = parts[2]}, config, "fuzz");
  if (!tokenizer) return 0;
  const auto special = [&](const std::vector<int32_t>& ids) {
    size_t count = 0;
    for (const int32_t id : ids) {
      SYRINX_CHECK(id >= 0 && static_cast<size_t>(id) < config.text_vocabulary, "{}", id);
      count += tokenizer->bpe().is_special(id) ? 1 : 0;
    }
    return count;
  };
  SYRINX_CHECK(tokenizer->role().size() == 3, "{}", tokenizer->role().size());
  for (const std::string_view text : {std::string_view(" Why \xC3\xA9?<|im_end|>\n"), parts[1]}) {
    if (const auto ids = tokenizer->encode(text)) SYRINX_CHECK(special(*ids) == 0, "special tokens of a text");
    if (const auto ids = tokenizer->encode_instruction(text))
      SYRINX_CHECK(special(*ids) == (text.empty() ? 0 : 2), "special tokens of an instruction");
  }
  return 0;
}
