#include "tensor/gzip.h"

#include <sys/mman.h>
#include <zlib.h>

#include <algorithm>

#include "base/byte_reader.h"

namespace syrinx {
namespace {

// Floats hardly shrink: to 0.9 as drawn or trained, to half where f32 holds 16-bit values; text beside them is small.
constexpr size_t kMaxRatio = 8, kMaxSmall = size_t{16} << 20;
constexpr size_t kSlack = size_t{64} << 20;
constexpr size_t kReadable = 64;              // behind the end, as of a Buffer
constexpr size_t kMinBytes = 18;              // of a gzip file: header and trailer
constexpr size_t kMaxCall = size_t{1} << 30;  // zlib counts in 32 bits
constexpr int kGzipWindow = 16 + MAX_WBITS;   // "a gzip file, checksum verified"

// The least that the trailer may mean, which leaves multiples of the modulus out; weights hardly shrink, so the content
// is not much smaller than the file.
uint64_t least_size(std::span<const std::byte> bytes, uint64_t modulus) {
  uint64_t size = ByteReader(bytes.last(4)).u32() % modulus;
  while (size + size / 64 + kSlack < bytes.size()) size += modulus;
  return size;
}

// Zeros; nothing where the system has no memory to give.
std::unique_ptr<std::byte[], UnmapPages> pages(size_t size) {
  const size_t bytes = size + kReadable;
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return {data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data), UnmapPages{bytes}};
}

// Keeps the content; false where the system has no memory to give.
bool grow(Inflated& out, size_t size) {
  const size_t bytes = size + kReadable;
  void* const data = ::mremap(out.memory.get(), out.memory.get_deleter().size, bytes, MREMAP_MAYMOVE);
  if (data == MAP_FAILED) return false;
  static_cast<void>(out.memory.release());
  out.memory = {static_cast<std::byte*>(data), UnmapPages{bytes}};
  out.size = size;
  return true;
}

class Inflater {
 public:
  explicit Inflater(std::span<const std::byte> in) : in_(in) {
    is_good_ = ::inflateInit2(&stream_, kGzipWindow) == Z_OK;
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Goes on in what is left of `out`, the beginning of which has been written.
  void fill(std::span<std::byte> out) {
    status_ = is_good_ ? Z_OK : Z_STREAM_ERROR;
    while (status_ == Z_OK) {
      const size_t more = std::min(in_.size() - read_, kMaxCall), room = std::min(out.size() - written_, kMaxCall);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in_.data() + read_));
      stream_.avail_in = static_cast<uInt>(more);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + written_);
      stream_.avail_out = static_cast<uInt>(room);
      status_ = ::inflate(&stream_, Z_NO_FLUSH);  // Z_BUF_ERROR when nothing more can be done
      read_ += more - stream_.avail_in;
      written_ += room - stream_.avail_out;
    }
  }
  // All input made exactly so many bytes.
  bool is_whole(size_t size) const { return status_ == Z_STREAM_END && read_ == in_.size() && written_ == size; }
  // All is full, and something is left.
  bool wants_more(size_t size) const { return status_ == Z_BUF_ERROR && read_ < in_.size() && written_ == size; }

 private:
  const std::span<const std::byte> in_;
  z_stream stream_{};
  bool is_good_ = false;
  int status_ = Z_OK;
  size_t read_ = 0, written_ = 0;
};

}  // namespace

void UnmapPages::operator()(std::byte* data) const { ::munmap(data, size); }

bool looks_like_gzip(std::span<const std::byte> bytes) { return ByteReader(bytes).u16() == 0x8B1F; }

Result<Inflated> inflate_gzip(std::span<const std::byte> bytes, size_t max_bytes, const std::string& name,
                              uint64_t modulus) {
  if (!looks_like_gzip(bytes) || bytes.size() < kMinBytes)
    return fail(Code::kDataLoss, "'{}' is not a gzip file", name);
  const auto fits = [&](uint64_t size) { return size <= max_bytes && size <= bytes.size() * kMaxRatio + kMaxSmall; };
  const auto no_memory = [&](uint64_t size) {
    return fail(Code::kLimitExceeded,
                "'{}' needs {} bytes of memory to be unpacked, which the system does not give: unpack it with gunzip",
                name, size);
  };
  const uint64_t size = least_size(bytes, modulus);
  if (!fits(size))
    return fail(Code::kLimitExceeded,
                "'{}' says that its {} bytes hold {}; at most {} are unpacked, and {} times as many with {} MiB more: "
                "unpack it with gunzip",
                name, bytes.size(), size, max_bytes, kMaxRatio, kMaxSmall >> 20);
  Inflated out{.memory = pages(static_cast<size_t>(size)), .size = static_cast<size_t>(size)};
  if (out.memory == nullptr) return no_memory(size);
  Inflater inflater(bytes);
  for (inflater.fill({out.memory.get(), out.size}); inflater.wants_more(out.size) && fits(out.size + modulus);
       inflater.fill({out.memory.get(), out.size})) {
    const uint64_t next = out.size + modulus;
    if (!grow(out, static_cast<size_t>(next))) return no_memory(next);
  }
  if (inflater.is_whole(out.size)) return out;
  if (inflater.wants_more(out.size))
    return fail(Code::kLimitExceeded,
                "'{}' holds more than {} bytes in its {}; at most {} are unpacked, and {} times as many with {} MiB "
                "more: unpack it with gunzip",
                name, out.size, bytes.size(), max_bytes, kMaxRatio, kMaxSmall >> 20);
  return fail(Code::kDataLoss, "'{}' is damaged or truncated: it does not unpack to the {} bytes that it promises",
              name, out.size);
}

}  // namespace syrinx
