#include "tensor/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "base/byte_reader.h"

namespace syrinx {
namespace {

constexpr size_t kMaxRatio = 64, kSlack = size_t{64} << 20;
constexpr size_t kMinBytes = 18;                      // of a gzip file: header and trailer
constexpr size_t kMaxCall = size_t{1} << 30;          // zlib counts in 32 bits
constexpr int kGzipWindow = 16 + MAX_WBITS;           // "a gzip file, checksum verified"
constexpr uint64_t kSizeModulus = uint64_t{1} << 32;  // of the size in the trailer

// What the trailer says, which is true but for multiples of 4 GiB; weights hardly shrink, so the content is not much
// smaller than the file.
uint64_t claimed_size(std::span<const std::byte> bytes) {
  uint64_t size = ByteReader(bytes.last(4)).u32();
  while (size + size / 64 + kSlack < bytes.size()) size += kSizeModulus;
  return size;
}

// Z_STREAM_END when all input made exactly the output.
bool inflate_all(std::span<const std::byte> in, std::span<std::byte> out) {
  z_stream stream{};
  if (::inflateInit2(&stream, kGzipWindow) != Z_OK) return false;
  size_t read = 0, written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const size_t more = std::min(in.size() - read, kMaxCall), room = std::min(out.size() - written, kMaxCall);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data() + read));
    stream.avail_in = static_cast<uInt>(more);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    status = ::inflate(&stream, Z_NO_FLUSH);  // Z_BUF_ERROR when nothing more can be done
    read += more - stream.avail_in;
    written += room - stream.avail_out;
  }
  ::inflateEnd(&stream);
  return status == Z_STREAM_END && read == in.size() && written == out.size();
}

}  // namespace

bool looks_like_gzip(std::span<const std::byte> bytes) { return ByteReader(bytes).u16() == 0x8B1F; }

Result<Inflated> inflate_gzip(std::span<const std::byte> bytes, size_t max_bytes, const std::string& name) {
  if (!looks_like_gzip(bytes) || bytes.size() < kMinBytes)
    return fail(Code::kDataLoss, "'{}' is not a gzip file", name);
  const uint64_t size = claimed_size(bytes);
  if (size > max_bytes || size > bytes.size() * kMaxRatio + kSlack)
    return fail(Code::kLimitExceeded,
                "'{}' says that its {} bytes hold {}; at most {} are unpacked, and 64 times as many", name,
                bytes.size(), size, max_bytes);
  Inflated out{.memory = Buffer<std::byte>(static_cast<size_t>(size)), .size = static_cast<size_t>(size)};
  if (!inflate_all(bytes, out.memory.span()))
    return fail(Code::kDataLoss, "'{}' is damaged or truncated: it does not unpack to the {} bytes that it promises",
                name, size);
  return out;
}

}  // namespace syrinx
