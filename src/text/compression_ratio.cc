#include "text/compression_ratio.h"

#include <zlib.h>

#include <vector>

#include "base/check.h"

namespace syrinx::text {

double compression_ratio(std::string_view text) {
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::vector<Bytef> out(size);
  const int status =
      compress(out.data(), &size, reinterpret_cast<const Bytef*>(text.data()), static_cast<uLong>(text.size()));
  SYRINX_CHECK(status == Z_OK);  // the buffer is large enough by compressBound()
  return static_cast<double>(text.size()) / static_cast<double>(size);
}

}  // namespace syrinx::text
