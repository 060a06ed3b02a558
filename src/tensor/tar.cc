#include "tensor/tar.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/in_quotes.h"

namespace syrinx {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMaxExtendedBytes = size_t{1} << 20;  // of a pax header; real ones have a line or two
constexpr size_t kMaxHeaders = 4 * TarArchive::kMaxMembers;

// A header block's fields: offset and size.
struct Field {
  size_t offset, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kMagic{257, 5}, kPrefix{345, 155};
constexpr size_t kType = 156;

std::string_view field(std::span<const std::byte> block, Field at) {
  return {reinterpret_cast<const char*>(block.data()) + at.offset, at.size};
}
std::string_view text_of(std::span<const std::byte> block, Field at) {
  const std::string_view all = field(block, at);
  return all.substr(0, all.find('\0'));
}

// Octal digits between blanks, or GNU's big-endian binary form behind a set top bit.
std::optional<uint64_t> number_of(std::span<const std::byte> block, Field at) {
  std::string_view text = field(block, at);
  uint64_t value = 0;
  if ((static_cast<uint8_t>(text[0]) & 0x80) != 0) {
    value = static_cast<uint8_t>(text[0]) & 0x7F;
    for (const char c : text.substr(1)) {
      if (value >> 48 != 0) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(c);
    }
    return value;
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find_first_of(std::string_view(" \0", 2)));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The sum of all bytes with the checksum's own taken as blanks.
bool checksum_fits(std::span<const std::byte> block) {
  uint64_t sum = kChecksum.size * ' ';
  for (size_t i = 0; i < kBlock; ++i)
    if (i < kChecksum.offset || i >= kChecksum.offset + kChecksum.size) sum += static_cast<uint8_t>(block[i]);
  return number_of(block, kChecksum) == sum;
}

bool is_zero(std::span<const std::byte> block) {
  return std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
}

// "a/../b", "..", "/a".
bool escapes(std::string_view name) {
  if (name.starts_with('/')) return true;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Result<std::vector<TarMember>> run() {
    for (size_t headers = 0; at_ < bytes_.size(); ++headers) {
      if (headers >= kMaxHeaders) return too_many();
      if (bytes_.size() - at_ < kBlock) return damaged("it ends within a header");
      const auto block = bytes_.subspan(at_, kBlock);
      if (is_zero(block)) break;
      at_ += kBlock;
      SYRINX_TRY_VOID(entry(block));
    }
    return std::move(members_);
  }

 private:
  tl::unexpected<Error> damaged(std::string_view what) const {
    return fail(Code::kDataLoss, "'{}' is not a tar archive, or is damaged or truncated: {}", name_, what);
  }

  tl::unexpected<Error> too_many() const {
    return fail(Code::kLimitExceeded, "'{}' has more than {} members", name_, TarArchive::kMaxMembers);
  }

  Status entry(std::span<const std::byte> block) {
    if (!checksum_fits(block)) return damaged(fmt::format("the checksum of a header before byte {} is wrong", at_));
    const std::optional<uint64_t> stored = number_of(block, kSize);
    if (!stored) return damaged("a member's size is not a number");
    const char type = static_cast<char>(block[kType]);
    const bool extension = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    const uint64_t size = extension ? *stored : size_.value_or(*stored);
    if (size > bytes_.size() - at_) return damaged(fmt::format("a member of {} bytes leaves the file", size));
    const auto content = bytes_.subspan(at_, static_cast<size_t>(size));
    at_ += std::min((static_cast<size_t>(size) + kBlock - 1) / kBlock * kBlock, bytes_.size() - at_);
    if (extension) return extend(type, content);
    const std::string long_name = long_name_.value_or(short_name(block));
    long_name_.reset();
    size_.reset();
    return member(type, long_name, content);
  }

  static std::string short_name(std::span<const std::byte> block) {
    const std::string_view prefix = text_of(block, kPrefix), name = text_of(block, kName);
    // GNU's own form keeps times where ustar has the prefix.
    const bool ustar = field(block, {kMagic.offset, kMagic.size + 1}) == std::string_view("ustar\0", kMagic.size + 1);
    return ustar && !prefix.empty() ? fmt::format("{}/{}", prefix, name) : std::string(name);
  }

  // Reads an extended header, which precedes a member and adds to its own header.
  Status extend(char type, std::span<const std::byte> content) {
    const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
    if (text.size() > kMaxExtendedBytes)
      return fail(Code::kLimitExceeded, "'{}' has an extended header of {} bytes; at most {} are read", name_,
                  text.size(), kMaxExtendedBytes);
    if (type == 'L') long_name_ = std::string(text.substr(0, text.find('\0')));
    return type == 'x' ? pax(text) : Status();
  }

  // Lines "LENGTH KEY=VALUE\n", the length that of the whole line.
  Status pax(std::string_view text) {
    while (!text.empty()) {
      size_t length = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
      const size_t digits = static_cast<size_t>(end - text.data());
      if (error != std::errc() || length > text.size() || length < digits + 2 || text[digits] != ' ' ||
          text[length - 1] != '\n')
        return damaged("a line of an extended header does not fit");
      const std::string_view line = text.substr(digits + 1, length - digits - 2);
      text.remove_prefix(length);
      const size_t equals = line.find('=');
      if (equals == std::string_view::npos) return damaged("a line of an extended header has no value");
      const std::string_view key = line.substr(0, equals), value = line.substr(equals + 1);
      if (key == "path") long_name_ = std::string(value);
      if (key == "size") {
        uint64_t size = 0;
        const auto [rest, fault] = std::from_chars(value.data(), value.data() + value.size(), size);
        if (fault != std::errc() || rest != value.data() + value.size()) return damaged("a size is not a number");
        size_ = size;
      }
      if (key.starts_with("GNU.sparse")) return fail(Code::kUnsupported, "'{}' holds a sparse file", name_);
    }
    return {};
  }

  Status member(char type, std::string_view name, std::span<const std::byte> content) {
    if (name.size() > TarArchive::kMaxNameBytes)
      return fail(Code::kLimitExceeded, "'{}' has a member whose name has {} bytes; at most {} are read", name_,
                  name.size(), TarArchive::kMaxNameBytes);
    if (escapes(name))
      return damaged(fmt::format("the member {} would lie outside of the archive's folder", in_quotes(name)));
    while (name.starts_with("./")) name.remove_prefix(2);
    if (type == '5') return {};  // a folder
    if (type != '0' && type != '\0' && type != '7')
      return fail(Code::kUnsupported, "'{}': the member {} is a link or a device; a model is made of plain files",
                  name_, in_quotes(name));
    if (name.empty()) return damaged("a member has no name");
    if (!names_.emplace(name).second) return damaged(fmt::format("the member {} stands twice", in_quotes(name)));
    if (members_.size() == TarArchive::kMaxMembers) return too_many();
    members_.push_back({.name = std::string(name), .bytes = content});
    return {};
  }

  const std::span<const std::byte> bytes_;
  const std::string& name_;
  size_t at_ = 0;
  std::optional<std::string> long_name_;  // of the next member
  std::optional<uint64_t> size_;
  std::set<std::string, std::less<>> names_;
  std::vector<TarMember> members_;
};

}  // namespace

bool TarArchive::looks_like(std::span<const std::byte> bytes) {
  return bytes.size() >= kBlock && field(bytes, kMagic) == "ustar";
}

Result<TarArchive> TarArchive::parse(std::span<const std::byte> bytes, const std::string& name) {
  if (!looks_like(bytes)) return fail(Code::kDataLoss, "'{}' is not a tar archive", name);
  TarArchive archive;
  SYRINX_TRY(archive.members_, Reader(bytes, name).run());
  return archive;
}

const TarMember* TarArchive::find(std::string_view name) const {
  const auto at = std::find_if(members_.begin(), members_.end(), [&](const TarMember& m) { return m.name == name; });
  return at == members_.end() ? nullptr : &*at;
}

}  // namespace syrinx
