// RFC 8794 (EBML) and 9559 (Matroska).
#include "audio/guards/matroska_elements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace syrinx {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t kSegment = 0x18538067, kCluster = 0x1F43B675, kTracks = 0x1654AE6B;
constexpr size_t kTableIdBytes = 4;
// Tables of contents (two kinds), chapters, tags, attachments.
constexpr std::array<uint64_t, 5> kTables = {0x114D9B74, 0x1C53BB6B, 0x1043A770, 0x1254C367, 0x1941A469};
// Elements inside a table that a reader may descend into.
constexpr std::array<uint64_t, 32> kParents = {0x4DBB, 0xBB,   0xB7,   0xDB,   0x45B9, 0xB6,   0x80,   0x8F,
                                               0x6944, 0x6911, 0x7373, 0x63C0, 0x67C8, 0x61A7, 0xAE,   0xE0,
                                               0xE1,   0xE2,   0xE3,   0xE4,   0xE9,   0x6D80, 0x6240, 0x5034,
                                               0x5035, 0x47E7, 0x55B0, 0x55D0, 0x7670, 0x6624, 0x41E4, 0x6924};
constexpr int kMaxDepth = 16;  // FFmpeg's own

template <size_t size>
bool is_among(const std::array<uint64_t, size>& ids, uint64_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

struct Element {
  uint64_t id = 0;
  size_t body = 0, end = 0;
  bool is_open = false;  // of unknown size
};
enum class Found : uint8_t { kElement, kNothing, kCut };

class MatroskaWalk {
 public:
  MatroskaWalk(Bytes file, const std::string& name) : file_(file), name_(name) {}
  // Follows elements; of those of unknown size whatever lies in them follows, up to their next sibling.
  Status walk(size_t at, size_t end, bool is_file);
  Status count_tables();
  std::vector<size_t> take_hidden() { return std::move(hidden_); }

 private:
  uint64_t number(size_t at, size_t bytes) const;
  size_t number_bytes(size_t at) const;
  Found find(size_t at, size_t end, Element& element) const;
  void count(size_t at, size_t end, int depth);
  Status too_many() const;

  const Bytes file_;
  const std::string& name_;
  std::vector<size_t> hidden_;
  size_t entries_ = 0;
};

uint64_t MatroskaWalk::number(size_t at, size_t bytes) const {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<uint64_t>(file_[at + i]);
  return value;
}

// Length of a number, given by the leading zeros of its first byte; 0 for more than eight bytes.
size_t MatroskaWalk::number_bytes(size_t at) const {
  const auto zeros = static_cast<size_t>(std::countl_zero(std::to_integer<uint8_t>(file_[at])));
  return zeros < 8 ? zeros + 1 : 0;
}

// The element at `at`; one that is cut reaches to the end, as far as it is known.
Found MatroskaWalk::find(size_t at, size_t end, Element& element) const {
  element = {.body = end, .end = end};
  const size_t id_bytes = number_bytes(at);
  if (id_bytes == 0 || id_bytes > 4) return Found::kNothing;
  if (end - at < id_bytes + 1) return Found::kCut;
  const size_t size_bytes = number_bytes(at + id_bytes);
  if (size_bytes == 0) return Found::kNothing;
  if (end - at < id_bytes + size_bytes) return Found::kCut;
  const uint64_t ones = (uint64_t{1} << (7 * size_bytes)) - 1, size = number(at + id_bytes, size_bytes) & ones;
  element.id = number(at, id_bytes);
  element.body = at + id_bytes + size_bytes;
  element.is_open = size == ones;
  if (element.is_open) return Found::kElement;
  if (size > end - element.body) return Found::kCut;
  element.end = element.body + static_cast<size_t>(size);
  return Found::kElement;
}

Status MatroskaWalk::too_many() const {
  return fail(Code::kLimitExceeded,
              "'{}' has more than {} tables, or entries in those of tracks and the like; leave its sound alone in it",
              name_, kMaxMatroskaEntries);
}

Status MatroskaWalk::walk(size_t at, size_t end, bool is_file) {
  while (at < end) {
    Element element;
    const Found found = find(at, end, element);
    if (found == Found::kCut && is_file)
      return fail(Code::kDataLoss,
                  "'{}' is cut off: it announces more than the {} bytes that it holds; get the whole file", name_,
                  file_.size());
    if (found != Found::kElement) return {};
    if (element.is_open && element.id != kSegment && element.id != kCluster) return {};
    if (is_among(kTables, element.id)) {
      if (hidden_.size() == kMaxMatroskaEntries) return too_many();
      hidden_.push_back(at);
    }
    // A segment within a segment is passed over by the reader, and would be a way as deep as the file is long.
    const bool goes_in = is_file && element.id == kSegment && !element.is_open;
    if (goes_in) SYRINX_TRY_VOID(walk(element.body, element.end, /*is_file=*/false));
    at = element.is_open ? element.body : element.end;
  }
  return {};
}

// As many as any reader finds, who stops where nothing can be followed, and leaves out what it does not know.
void MatroskaWalk::count(size_t at, size_t end, int depth) {
  while (at < end && entries_ <= kMaxMatroskaEntries) {
    Element element;
    if (find(at, end, element) == Found::kNothing) return;
    ++entries_;
    if (depth < kMaxDepth && is_among(kParents, element.id)) count(element.body, element.end, depth + 1);
    at = element.end;
  }
}

// In the middle of sound as well, where it would need an accident to stand, and many of them to have entries.
Status MatroskaWalk::count_tables() {
  uint64_t id = 0;
  auto hidden = hidden_.begin();
  for (size_t i = 0; i < file_.size(); ++i) {
    id = (id << 8 | std::to_integer<uint64_t>(file_[i])) & 0xFFFFFFFF;
    if (id >> 28 != 1 || (id != kTracks && !is_among(kTables, id))) continue;
    const size_t at = i + 1 - kTableIdBytes;
    while (hidden != hidden_.end() && *hidden < at) ++hidden;
    if (hidden != hidden_.end() && *hidden == at) continue;
    Element element;
    if (find(at, file_.size(), element) == Found::kNothing) continue;
    count(element.body, element.end, 0);
    if (entries_ > kMaxMatroskaEntries) return too_many();
  }
  return {};
}

}  // namespace

Result<std::vector<size_t>> check_matroska_elements(std::span<const std::byte> file, const std::string& name) {
  MatroskaWalk walk(file, name);
  SYRINX_TRY_VOID(walk.walk(0, file.size(), /*is_file=*/true));
  SYRINX_TRY_VOID(walk.count_tables());
  return walk.take_hidden();
}

}  // namespace syrinx
