// Any bytes as a tokenizer.json, as a vocabulary.txt and as the arrays of a GGUF file; what loads must encode a text
// and decode it again.
#include "base/check.h"
#include "text/tokens/bpe_files.h"
#include "text/unicode.h"

namespace {

using syrinx::text::BpeSplit;
using syrinx::text::ByteBpe;

constexpr BpeSplit kSplits[] = {BpeSplit::kGpt2, BpeSplit::kGpt2LoneDigits, BpeSplit::kCl100k,
                                BpeSplit::kCl100kLoneDigits, BpeSplit::kCasedWords};

// Whether no byte is passed over.
bool knows_all_bytes(const ByteBpe& bpe) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (bpe.encode({&c, 1})->empty()) return false;
  }
  return true;
}

void encode(const ByteBpe& bpe, std::string_view text, bool decodes) {
  const auto ids = bpe.encode(text);
  SYRINX_CHECK(ids.has_value());
  for (const int32_t id : *ids) SYRINX_CHECK(!bpe.is_special(id) && static_cast<size_t>(id) < bpe.size());
  if (decodes) SYRINX_CHECK(bpe.bytes(*ids) == text);
}

void use(const syrinx::Result<ByteBpe>& bpe, std::string_view input, bool keeps_bytes) {
  if (!bpe) return;
  const bool decodes = knows_all_bytes(*bpe);
  encode(*bpe, "  He said\u2026 it's <|en|> 12  \U0001F600 a\n\nb ", decodes);
  encode(*bpe, input, decodes && keeps_bytes);
}

// The first byte chooses the split.  A line is a merge if it begins with an m, else a token behind a digit for its
// type; the bytes are tokens before those.
struct Arrays {
  std::vector<std::string> bytes;
  std::vector<std::string_view> tokens, merges;
  std::vector<int64_t> types;
  BpeSplit split = BpeSplit::kGpt2;

  explicit Arrays(std::string_view input) {
    char32_t other = 256;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      syrinx::text::append_utf8(bytes.emplace_back(), printable ? byte : other++);
    }
    tokens.assign(bytes.begin(), bytes.end());
    types.assign(tokens.size(), 1);
    if (input.empty()) return;
    split = kSplits[static_cast<uint8_t>(input.front()) % std::size(kSplits)];
    for (input.remove_prefix(1); !input.empty();) {
      const size_t end = std::min(input.find('\n'), input.size());
      const std::string_view line = input.substr(0, end);
      input.remove_prefix(std::min(end + 1, input.size()));
      if (line.empty()) continue;
      if (line.front() == 'm') {
        merges.push_back(line.substr(1));
      } else {
        types.push_back(line.front() - '0');
        tokens.push_back(line.substr(1));
      }
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syrinx::text;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  use(read_bpe_json(input, "fuzz"), input, false);
  use(read_bpe_json_by_merges(input, "fuzz"), input, false);
  use(read_vocabulary_txt(input, "fuzz"), input, true);
  const Arrays arrays(input);
  const bool is_even = arrays.tokens.size() % 2 == 0;
  use(make_bpe({arrays.tokens, arrays.types, arrays.merges, arrays.split, is_even, !is_even}, "fuzz"), input, is_even);
  SYRINX_CHECK(!find_invalid(replace_malformed(input)));
  const std::string composed = nfc(input);
  SYRINX_CHECK(nfc(composed) == composed);
  SYRINX_CHECK(find_invalid(composed).has_value() == find_invalid(input).has_value());
  for (const BpeSplit split : kSplits) {
    size_t cut = 0;
    for (const std::string_view piece : split_bpe(input, split)) {
      SYRINX_CHECK(!piece.empty());
      cut += piece.size();
    }
    SYRINX_CHECK(cut == size);
  }
  return 0;
}
