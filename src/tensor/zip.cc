#include "tensor/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/byte_reader.h"
#include "base/in_quotes.h"

namespace syrinx {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr size_t kEndSize = 22;
constexpr size_t kLocatorSize = 20;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kMax32 = std::numeric_limits<uint32_t>::max();
constexpr uint16_t kMax16 = std::numeric_limits<uint16_t>::max();
constexpr uint16_t kEncryptedFlag = 1;
constexpr size_t kMaxNameBytes = 1024;

struct Directory {
  uint64_t entries = 0;
  uint64_t size = 0;
  uint64_t offset = 0;
  size_t end = 0;  // where the end records begin: members and directory lie before
};

auto damaged(const std::string& file, const char* what) {
  return fail(Code::kDataLoss, "'{}' is a damaged or truncated zip archive: {}", file, what);
}

// The end record lies behind everything but a comment of at most 65535 bytes, whose length must fit exactly.
Result<size_t> find_end(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() >= kEndSize) {
    const size_t last = bytes.size() - kEndSize;
    const size_t first = last > kMax16 ? last - kMax16 : 0;
    for (size_t at = last + 1; at-- > first;) {
      ByteReader reader(bytes.subspan(at, kEndSize));
      if (reader.u32() != kEndSignature) continue;
      reader.take(16);
      if (reader.u16() == bytes.size() - at - kEndSize) return at;
    }
  }
  return damaged(file, "it has no end record");
}

Result<Directory> read_directory64(std::span<const std::byte> bytes, size_t end, const std::string& file) {
  ByteReader locator(bytes.subspan(end - kLocatorSize, kLocatorSize));
  locator.u32();  // signature, seen by the caller
  locator.u32();
  const uint64_t at = locator.u64();
  if (at > end - kLocatorSize) return damaged(file, "its zip64 record lies outside the file");
  ByteReader record(bytes.subspan(at, end - kLocatorSize - at));
  const uint32_t signature = record.u32();
  record.take(8 + 2 + 2);
  const uint32_t disk = record.u32();
  const uint32_t directory_disk = record.u32();
  record.u64();
  Directory directory;
  directory.entries = record.u64();
  directory.size = record.u64();
  directory.offset = record.u64();
  directory.end = at;
  if (record.failed() || signature != kEnd64Signature) return damaged(file, "its zip64 record is malformed");
  if (disk != 0 || directory_disk != 0) return fail(Code::kUnsupported, "'{}' is a zip archive in several parts", file);
  return directory;
}

Result<Directory> read_directory(std::span<const std::byte> bytes, const std::string& file) {
  SYRINX_TRY(const size_t end, find_end(bytes, file));
  ByteReader reader(bytes.subspan(end));
  reader.u32();
  const uint16_t disk = reader.u16();
  const uint16_t directory_disk = reader.u16();
  reader.u16();
  Directory directory;
  directory.entries = reader.u16();
  directory.size = reader.u32();
  directory.offset = reader.u32();
  directory.end = end;
  const bool wide = directory.entries == kMax16 || directory.size == kMax32 || directory.offset == kMax32;
  if (wide && end >= kLocatorSize && ByteReader(bytes.subspan(end - kLocatorSize)).u32() == kLocator64Signature) {
    SYRINX_TRY(directory, read_directory64(bytes, end, file));
  } else if (disk != 0 || directory_disk != 0) {
    return fail(Code::kUnsupported, "'{}' is a zip archive in several parts", file);
  }
  if (directory.offset > directory.end || directory.size > directory.end - directory.offset)
    return damaged(file, "its directory lies outside the file");
  if (directory.entries > ZipArchive::kMaxMembers)
    return fail(Code::kLimitExceeded, "'{}' has {} members, the limit is {}", file, directory.entries,
                ZipArchive::kMaxMembers);
  return directory;
}

struct Sizes {
  uint64_t packed = 0;
  uint64_t unpacked = 0;
  uint64_t offset = 0;
};

// Sizes that do not fit 32 bits stand in an extra field, in this order, only those that are all ones before.
bool widen(std::span<const std::byte> extra, Sizes& sizes) {
  ByteReader reader(extra);
  while (reader.remaining() >= 4) {
    const uint16_t id = reader.u16();
    ByteReader field(reader.take(reader.u16()));
    if (reader.failed()) return false;
    if (id != kZip64Extra) continue;
    if (sizes.unpacked == kMax32) sizes.unpacked = field.u64();
    if (sizes.packed == kMax32) sizes.packed = field.u64();
    if (sizes.offset == kMax32) sizes.offset = field.u64();
    return !field.failed();
  }
  return true;
}

// Where the member's bytes lie, behind its local header; nothing when the header disagrees or leaves the file.
std::span<const std::byte> locate(std::span<const std::byte> before_directory, const Sizes& sizes,
                                  const std::string& name, bool& good) {
  good = sizes.offset <= before_directory.size();
  if (!good) return {};
  ByteReader local(before_directory.subspan(sizes.offset));
  good = local.u32() == kLocalSignature;
  local.take(22);
  const uint16_t name_size = local.u16();
  const uint16_t extra_size = local.u16();
  good = good && local.text(name_size) == name;
  local.take(extra_size);
  const auto packed = local.take(sizes.packed);
  good = good && !local.failed();
  return packed;
}

struct Found {
  ZipMember member;
  std::span<const std::byte> extent;  // local header, name and values
};

Result<Found> read_member(ByteReader& central, std::span<const std::byte> before_directory, const std::string& file) {
  ZipMember member;
  const uint32_t signature = central.u32();
  central.take(4);
  const uint16_t flags = central.u16();
  member.method = central.u16();
  central.take(4);
  member.crc32 = central.u32();
  Sizes sizes;
  sizes.packed = central.u32();
  sizes.unpacked = central.u32();
  const uint16_t name_size = central.u16();
  const uint16_t extra_size = central.u16();
  const uint16_t comment_size = central.u16();
  central.take(8);
  sizes.offset = central.u32();
  member.name = central.text(name_size);
  const auto extra = central.take(extra_size);
  central.take(comment_size);
  if (central.failed() || signature != kCentralSignature || !widen(extra, sizes))
    return damaged(file, "its directory is malformed");
  if (member.name.empty() || member.name.size() > kMaxNameBytes || member.name.find('\0') != std::string::npos)
    return damaged(file, "a member has no proper name");
  if ((flags & kEncryptedFlag) != 0)
    return fail(Code::kUnsupported, "'{}': member {} is encrypted", file, in_quotes(member.name));
  bool good = false;
  member.packed = locate(before_directory, sizes, member.name, good);
  if (!good || (member.method == 0 && sizes.packed != sizes.unpacked))
    return fail(Code::kDataLoss, "'{}': member {} of the zip archive is damaged or truncated", file,
                in_quotes(member.name));
  member.size_bytes = sizes.unpacked;
  const std::span<const std::byte> extent(before_directory.data() + sizes.offset,
                                          member.packed.data() + member.packed.size());
  return Found{std::move(member), extent};
}

Status check_members(const std::vector<ZipMember>& members, std::vector<std::span<const std::byte>> extents,
                     const std::string& file) {
  for (size_t i = 1; i < members.size(); ++i)
    if (members[i - 1].name == members[i].name)
      return fail(Code::kDataLoss, "'{}': the member {} stands twice in the zip archive", file,
                  in_quotes(members[i].name));
  std::sort(extents.begin(), extents.end(), [](const auto& a, const auto& b) { return a.data() < b.data(); });
  for (size_t i = 1; i < extents.size(); ++i)
    if (extents[i - 1].data() + extents[i - 1].size() > extents[i].data()) return damaged(file, "members overlap");
  return {};
}

// Raw deflate of exactly `out.size()` bytes.
bool inflate_into(std::span<const std::byte> packed, std::span<std::byte> out) {
  if (packed.size() > kMax32 || out.size() > kMax32) return false;
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  std::byte nothing{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.empty() ? &nothing : out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = ::inflate(&stream, Z_FINISH);
  const bool whole = status == Z_STREAM_END && stream.avail_out == 0;
  ::inflateEnd(&stream);
  return whole;
}

}  // namespace

bool ZipArchive::looks_like(std::span<const std::byte> bytes) { return ByteReader(bytes).u32() == kLocalSignature; }

Result<ZipArchive> ZipArchive::parse(std::span<const std::byte> bytes, const std::string& name) {
  SYRINX_TRY(const Directory directory, read_directory(bytes, name));
  ZipArchive archive;
  archive.name_ = name;
  ByteReader central(bytes.subspan(directory.offset, directory.size));
  const auto before_directory = bytes.first(directory.offset);
  std::vector<std::span<const std::byte>> extents;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    SYRINX_TRY(Found found, read_member(central, before_directory, name));
    archive.members_.push_back(std::move(found.member));
    extents.push_back(found.extent);
  }
  std::sort(archive.members_.begin(), archive.members_.end(),
            [](const ZipMember& a, const ZipMember& b) { return a.name < b.name; });
  SYRINX_TRY_VOID(check_members(archive.members_, std::move(extents), name));
  return archive;
}

const ZipMember* ZipArchive::find(std::string_view name) const {
  const auto at = std::lower_bound(members_.begin(), members_.end(), name,
                                   [](const ZipMember& member, std::string_view key) { return member.name < key; });
  return at != members_.end() && at->name == name ? &*at : nullptr;
}

Result<std::span<const std::byte>> ZipArchive::stored(const ZipMember& member) const {
  if (member.method != 0)
    return fail(Code::kUnsupported, "'{}': member {} is compressed, where model files store plain values", name_,
                in_quotes(member.name));
  return member.packed;
}

Result<std::vector<std::byte>> ZipArchive::extract(const ZipMember& member, size_t max_bytes) const {
  if (member.size_bytes > max_bytes)
    return fail(Code::kLimitExceeded, "'{}': member {} holds {} bytes, the limit is {}", name_, in_quotes(member.name),
                member.size_bytes, max_bytes);
  std::vector<std::byte> out;
  bool good = true;
  if (member.method == 0) {
    out.assign(member.packed.begin(), member.packed.end());
  } else if (member.method == 8) {
    // A deflated byte gives at most 1032: a claim beyond that is false, and costs no memory.
    good = member.size_bytes / 1032 <= member.packed.size();
    if (good) {
      out.resize(static_cast<size_t>(member.size_bytes));
      good = inflate_into(member.packed, out);
    }
  } else {
    return fail(Code::kUnsupported, "'{}': member {} uses compression method {}", name_, in_quotes(member.name),
                member.method);
  }
  if (!good || ::crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size()) != member.crc32)
    return fail(Code::kDataLoss, "'{}': member {} does not match its checksum", name_, in_quotes(member.name));
  return out;
}

}  // namespace syrinx
