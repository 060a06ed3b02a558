#include "tensor/packed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/xxhash64.h"

namespace syrinx {
namespace {

constexpr char kMagic[8] = {'S', 'Y', 'R', 'X', 'P', 'A', 'C', 'K'};
constexpr uint32_t kVersion = 2;
constexpr size_t kKeyBytes = 160;
constexpr size_t kNameBytes = 104;
constexpr size_t kAlign = 64;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t count;
  uint64_t index_offset;
  uint64_t file_bytes;
  uint64_t checksum;  // of the index
  char key[kKeyBytes];
};
struct IndexEntry {
  char name[kNameBytes];
  uint64_t offset;
  uint64_t size_bytes;
  uint64_t checksum;
};
static_assert(sizeof(Header) % 8 == 0 && sizeof(IndexEntry) == 128);

// Bytes copied at a time, so that no large array is in memory twice, and checked before pages are released.
constexpr size_t kCopyBytes = size_t{1} << 20;

}  // namespace

Result<PackedFile> PackedFile::open(MappedFile file, std::string_view key) {
  const auto bytes = file.bytes();
  const auto damaged = [&](const char* what) {
    return fail(Code::kDataLoss, "packed file '{}' is unusable: {}", file.path(), what);
  };
  if (bytes.size() < sizeof(Header)) return damaged("it is too short");
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.version != kVersion)
    return damaged("another format");
  if (header.file_bytes != bytes.size()) return damaged("its length is not what its header says");
  if (key.size() >= kKeyBytes || std::string_view(header.key, strnlen(header.key, kKeyBytes)) != key)
    return damaged("it was made from something else");
  const size_t index_bytes = size_t{header.count} * sizeof(IndexEntry);
  if (header.count > kMaxPackedArrays || header.index_offset > bytes.size() ||
      bytes.size() - header.index_offset < index_bytes)
    return damaged("its index lies outside");
  const auto index = bytes.subspan(header.index_offset, index_bytes);
  if (xxhash64(index) != header.checksum) return damaged("its index is damaged");
  PackedFile packed;
  packed.arrays_.reserve(header.count);
  for (size_t i = 0; i < header.count; ++i) {
    IndexEntry entry;
    std::memcpy(&entry, index.data() + i * sizeof entry, sizeof entry);
    if (entry.offset % kAlign != 0 || entry.offset > bytes.size() || bytes.size() - entry.offset < entry.size_bytes)
      return damaged("an array lies outside");
    packed.arrays_.emplace(std::string(entry.name, strnlen(entry.name, kNameBytes)),
                           Array{bytes.subspan(entry.offset, entry.size_bytes), entry.checksum});
  }
  packed.file_ = std::move(file);
  return packed;
}

Result<PackedFile::Array> PackedFile::entry(std::string_view name) const {
  const auto found = arrays_.find(std::string(name));
  if (found == arrays_.end()) return fail(Code::kDataLoss, "packed file '{}' has no array '{}'", file_.path(), name);
  return found->second;
}

tl::unexpected<Error> PackedFile::damaged(std::string_view name) const {
  return fail(Code::kDataLoss, "packed file '{}' is unusable: its array '{}' is damaged", file_.path(), name);
}

Result<std::span<const std::byte>> PackedFile::find(std::string_view name) const {
  SYRINX_TRY(const Array array, entry(name));
  return array.bytes;
}

Status PackedFile::check(std::string_view name) const {
  SYRINX_TRY(const Array array, entry(name));
  if (xxhash64(array.bytes) != array.checksum) return damaged(name);
  return {};
}

Status PackedFile::check_all() const {
  std::vector<const std::pair<const std::string, Array>*> in_order;
  for (const auto& entry : arrays_) in_order.push_back(&entry);
  std::sort(in_order.begin(), in_order.end(),
            [](const auto* a, const auto* b) { return a->second.bytes.data() < b->second.bytes.data(); });
  size_t read = 0;
  for (const auto* entry : in_order) {
    const Array& array = entry->second;
    if (xxhash64(array.bytes) != array.checksum) return damaged(entry->first);
    read += array.bytes.size();
    if (read < kCopyBytes) continue;
    file_.release();
    read = 0;
  }
  file_.release();
  return {};
}

Result<std::span<const std::byte>> PackedFile::copy(std::string_view name) {
  SYRINX_TRY(const Array array, entry(name));
  const size_t size = array.bytes.size(), begin = copied_, end = begin + (size + kAlign - 1) / kAlign * kAlign;
  if (copies_.size() == 0) {
    copies_ = Buffer<std::byte>(file_.bytes().size());
    prefer_huge_pages(copies_.data(), copies_.size());
  }
  // An array copied twice may not fit; its first copy serves as well, but nobody asks.
  if (end > copies_.size()) return fail(Code::kInternal, "packed array '{}' is copied twice", name);
  copied_ = end;
  std::byte* const to = copies_.data() + begin;
  for (size_t at = 0; at < size; at += kCopyBytes) {
    const auto part = array.bytes.subspan(at, std::min(kCopyBytes, size - at));
    std::memcpy(to + at, part.data(), part.size());
    file_.release();  // all of it: reading a page maps its neighbours too
  }
  const std::span<const std::byte> copied(to, size);
  if (xxhash64(copied) != array.checksum) return damaged(name);
  return copied;
}

void PackedFile::trim_copies() {
  give_back_pages(copies_.data() + copied_, copies_.size() - copied_);
  kept_ = KeptPages({copies_.data(), copied_});
}

void PackedFile::release_before(std::string_view name) const {
  const auto found = find(name);
  if (found) file_.release(0, static_cast<size_t>(found->data() - file_.bytes().data()));
}

Result<PackedFileWriter> PackedFileWriter::create(const std::string& path, std::string_view key) {
  PackedFileWriter writer;
  writer.path_ = path;
  writer.key_ = key;
  if (path.empty()) {
    writer.descriptor_ = ::memfd_create("syrinx-packed", MFD_CLOEXEC);
  } else {
    writer.temporary_ = path + ".XXXXXX";
    writer.descriptor_ = ::mkostemp(writer.temporary_.data(), O_CLOEXEC);
  }
  if (writer.descriptor_ < 0) {
    writer.temporary_.clear();
    return fail(Code::kIo, "cannot write a packed cache beside '{}': {}", path, std::strerror(errno));
  }
  writer.end_ = (sizeof(Header) + kAlign - 1) / kAlign * kAlign;
  return writer;
}

PackedFileWriter::PackedFileWriter(PackedFileWriter&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      key_(std::move(other.key_)),
      entries_(std::move(other.entries_)),
      end_(other.end_) {}

PackedFileWriter::~PackedFileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status PackedFileWriter::write_at(size_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(Code::kIo, "cannot write packed cache '{}': {}", path_, std::strerror(errno));
    offset += static_cast<size_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status PackedFileWriter::add(std::string_view name, std::span<const std::byte> bytes) {
  if (name.size() >= kNameBytes || entries_.size() >= kMaxPackedArrays)
    return fail(Code::kLimitExceeded, "packed array name '{}' is too long, or there are too many", name);
  SYRINX_TRY_VOID(write_at(end_, bytes));
  entries_.push_back({std::string(name), end_, bytes.size(), xxhash64(bytes)});
  end_ = (end_ + bytes.size() + kAlign - 1) / kAlign * kAlign;
  return {};
}

Result<PackedFile> PackedFileWriter::finish() {
  std::vector<IndexEntry> index(entries_.size());
  for (size_t i = 0; i < index.size(); ++i) {
    std::memcpy(index[i].name, entries_[i].name.data(), entries_[i].name.size());
    index[i].offset = entries_[i].offset;
    index[i].size_bytes = entries_[i].size_bytes;
    index[i].checksum = entries_[i].checksum;
  }
  const auto index_bytes = std::as_bytes(std::span(index));
  SYRINX_TRY_VOID(write_at(end_, index_bytes));
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.count = static_cast<uint32_t>(index.size());
  header.index_offset = end_;
  header.file_bytes = end_ + index_bytes.size();
  header.checksum = xxhash64(index_bytes);
  if (key_.size() >= kKeyBytes) return fail(Code::kInternal, "packed key of {} characters", key_.size());
  std::memcpy(header.key, key_.data(), key_.size());
  SYRINX_TRY_VOID(write_at(0, std::as_bytes(std::span(&header, 1))));
  if (!temporary_.empty()) {
    if (::fsync(descriptor_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0)
      return fail(Code::kIo, "cannot keep packed cache '{}': {}", path_, std::strerror(errno));
    temporary_.clear();
  }
  SYRINX_TRY(MappedFile mapped, MappedFile::from_descriptor(descriptor_, path_.empty() ? "packed memory" : path_));
  return PackedFile::open(std::move(mapped), key_);
}

}  // namespace syrinx
