#include "tensor/npy.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/byte_reader.h"

namespace syrinx {
namespace {

constexpr size_t kMaxHeaderBytes = 65536;
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kSuffix = ".npy";

struct Header {
  std::string type;  // "<f4"
  bool column_major = false;
  std::vector<size_t> dims;
};

// The header is a Python dictionary of three known keys: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  bool parse(Header& header) {
    bool seen[3] = {};
    if (!accept('{')) return false;
    while (!accept('}')) {
      std::string key;
      if (!quoted(key) || !accept(':')) return false;
      bool good = false;
      if (key == "descr") good = !std::exchange(seen[0], true) && quoted(header.type);
      if (key == "fortran_order") good = !std::exchange(seen[1], true) && boolean(header.column_major);
      if (key == "shape") good = !std::exchange(seen[2], true) && tuple(header.dims);
      if (!good) return false;
      if (!accept(',') && !peek('}')) return false;
    }
    return seen[0] && seen[1] && seen[2] && rest_is_space();
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool peek(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  bool rest_is_space() {
    skip_space();
    return at_ == text_.size();
  }
  bool word(std::string_view expected) {
    skip_space();
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  bool boolean(bool& out) {
    out = word("True");
    return out || word("False");
  }
  bool quoted(std::string& out) {
    const char mark = peek('"') ? '"' : '\'';
    if (!accept(mark)) return false;
    const size_t end = text_.find(mark, at_);
    if (end == std::string_view::npos) return false;
    out = text_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  bool tuple(std::vector<size_t>& out) {
    if (!accept('(')) return false;
    while (!accept(')')) {
      skip_space();
      size_t dim = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (error != std::errc() || out.size() >= kMaxRank) return false;
      at_ = static_cast<size_t>(end - text_.data());
      out.push_back(dim);
      if (!accept(',') && !peek(')')) return false;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

struct ElementType {
  DType dtype = DType::kU8;
  char text = 0;     // 'U' (UCS-4) or 'S' (bytes) for texts
  size_t bytes = 0;  // of one element
};

std::optional<ElementType> element_type(std::string_view type) {
  if (type.size() < 3) return std::nullopt;
  const char order = type[0];
  const char kind = type[1];
  size_t size = 0;
  const auto [end, error] = std::from_chars(type.data() + 2, type.data() + type.size(), size);
  if (error != std::errc() || end != type.data() + type.size() || size > kMaxHeaderBytes) return std::nullopt;
  if (order != '<' && order != '|') return std::nullopt;
  if (kind == 'U' || kind == 'S') return ElementType{DType::kU8, kind, kind == 'U' ? 4 * size : size};
  struct Known {
    char kind;
    size_t size;
    DType dtype;
  };
  constexpr Known kKnown[] = {{'f', 8, DType::kF64}, {'f', 4, DType::kF32}, {'f', 2, DType::kF16},
                              {'i', 8, DType::kI64}, {'i', 4, DType::kI32}, {'i', 2, DType::kI16},
                              {'i', 1, DType::kI8},  {'u', 8, DType::kU64}, {'u', 4, DType::kU32},
                              {'u', 2, DType::kU16}, {'u', 1, DType::kU8},  {'b', 1, DType::kBool}};
  for (const Known& known : kKnown)
    if (known.kind == kind && known.size == size) return ElementType{known.dtype, 0, size};
  return std::nullopt;
}

void append_utf8(std::string& out, uint32_t point) {
  if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) point = 0xfffd;
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | (point >> 6));
  } else {
    if (point < 0x10000) {
      put(0xe0 | (point >> 12));
    } else {
      put(0xf0 | (point >> 18));
      put(0x80 | ((point >> 12) & 0x3f));
    }
    put(0x80 | ((point >> 6) & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

std::string decode_text(std::span<const std::byte> bytes, char kind) {
  ByteReader reader(bytes);
  std::string out;
  if (kind == 'S') {
    out = reader.text(bytes.size());
  } else {
    while (!reader.at_end()) append_utf8(out, reader.u32());
  }
  out.resize(out.find_last_not_of('\0') + 1);
  return out;
}

// Column-major values in row-major order.
std::vector<std::byte> transpose(std::span<const std::byte> values, const std::vector<size_t>& dims, size_t width) {
  std::vector<std::byte> out(values.size());
  std::vector<size_t> at(dims.size(), 0);
  for (size_t to = 0; to + width <= out.size(); to += width) {
    size_t from = 0;
    for (size_t axis = dims.size(); axis-- > 0;) from = from * dims[axis] + at[axis];
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from * width), width,
                out.begin() + static_cast<std::ptrdiff_t>(to));
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++at[axis] < dims[axis]) break;
      at[axis] = 0;
    }
  }
  return out;
}

}  // namespace

Result<NpyArray> parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  ByteReader reader(bytes);
  const bool magic = reader.text(kMagic.size()) == kMagic;
  const uint8_t major = reader.u8();
  reader.u8();
  const size_t header_size = major == 1 ? reader.u16() : reader.u32();
  if (!magic || reader.failed() || major < 1 || major > 3)
    return fail(Code::kDataLoss, "'{}' is not a NumPy array, or is truncated", name);
  if (header_size > kMaxHeaderBytes)
    return fail(Code::kLimitExceeded, "'{}': a header of {} bytes, the limit is {}", name, header_size,
                kMaxHeaderBytes);
  const std::string_view text = reader.text(header_size);
  Header header;
  if (reader.failed() || !HeaderParser(text).parse(header))
    return fail(Code::kDataLoss, "'{}': its NumPy header is malformed or of a kind we do not read", name);
  const auto type = element_type(header.type);
  if (!type)
    return fail(Code::kUnsupported, "'{}': elements of type '{}' are not plain little-endian values", name,
                header.type.substr(0, 80));
  const auto count = element_count(header.dims);
  // Texts of no width take no bytes, whatever their number.
  if (!count || (type->bytes == 0 && *count > kMaxHeaderBytes) ||
      (type->bytes != 0 && *count > reader.remaining() / type->bytes) || *count * type->bytes != reader.remaining())
    return fail(Code::kDataLoss, "'{}': {} bytes of values do not match the shape {} of type '{}'", name,
                reader.remaining(), dims_text(header.dims), header.type);
  NpyArray array;
  array.dtype = type->dtype;
  array.dims = header.dims;
  const auto values = reader.take(reader.remaining());
  array.bytes.assign(values.begin(), values.end());
  if (header.column_major && header.dims.size() > 1 && type->bytes != 0)
    array.bytes = transpose(values, header.dims, type->bytes);
  if (type->text != 0) {
    array.is_text = true;
    for (size_t i = 0; i < *count; ++i)
      array.texts.push_back(
          decode_text(std::span<const std::byte>(array.bytes).subspan(i * type->bytes, type->bytes), type->text));
    array.bytes.clear();
  }
  return array;
}

Result<NpzFile> NpzFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  SYRINX_TRY(ZipArchive archive, ZipArchive::parse(bytes, name));
  return NpzFile(std::move(archive), name);
}

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> out;
  for (const ZipMember& member : archive_.members())
    if (member.name.ends_with(kSuffix)) out.push_back(member.name.substr(0, member.name.size() - kSuffix.size()));
  return out;
}

bool NpzFile::contains(std::string_view array) const {
  return archive_.find(std::string(array) + std::string(kSuffix)) != nullptr;
}

Result<NpyArray> NpzFile::read(std::string_view array, size_t max_bytes) const {
  const ZipMember* const member = archive_.find(std::string(array) + std::string(kSuffix));
  if (member == nullptr) return fail(Code::kNotFound, "'{}' holds no array '{}'", name_, array);
  SYRINX_TRY(const std::vector<std::byte> bytes, archive_.extract(*member, max_bytes));
  return parse_npy(bytes, name_ + ":" + std::string(array));
}

}  // namespace syrinx
