// The container of Silero VAD.  An even first byte: the rest as it is.  An odd one: a good file with numbers of its
// header and records replaced, five bytes each (which one, the new value), and a last byte that cuts at one of them; so
// that what stands behind 885 kB of values is reached by inputs of a few bytes.
// Parsers: src/models/silero/container\.cc
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "../tests/models/silero/container_writer.h"
#include "models/silero/container.h"

namespace {

using namespace syrinx::silero;

const WrittenContainer& good() {
  static const WrittenContainer written = write_container(random_tensors(1));
  return written;
}

std::vector<std::byte> edited(std::span<const uint8_t> edits) {
  std::vector<std::byte> bytes = good().bytes;
  const std::vector<size_t>& fields = good().fields;
  for (; edits.size() >= 5; edits = edits.subspan(5))
    std::memcpy(bytes.data() + fields[edits[0] % fields.size()], edits.data() + 1, 4);
  if (!edits.empty()) bytes.resize(fields[edits[0] % fields.size()]);
  return bytes;
}

void parse(std::span<const std::byte> bytes) {
  const auto tensors = parse_container(bytes, "fuzz");
  if (!tensors) return;
  if (tensors->basis.size() != 2 * kBins * kBasisSamples || tensors->output_bias.size() != 1) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    parse(std::as_bytes(rest));
  } else {
    parse(edited(rest));
  }
  return 0;
}
