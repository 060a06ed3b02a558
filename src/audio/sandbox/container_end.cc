// ISO/IEC 14496-12 (boxes, 4.2), RFC 8794 (EBML) and 9559 (Matroska), ISO/IEC 13818-7 (ADTS, 6.2), Microsoft's ASF
// specification (objects, 2.1), RFC 4867 (AMR, 5).
#include "audio/sandbox/container_end.h"

#include <bit>
#include <string_view>

namespace syrinx {
namespace {

bool is_cut_mp4(FileView& file) {
  constexpr uint64_t kHeaderBytes = 8, kLongHeaderBytes = 16;
  for (uint64_t at = 0; file.has(at, kHeaderBytes);) {
    uint64_t size = file.number(at, 4), header = kHeaderBytes;
    if (size == 0) return false;  // to the end
    if (size == 1) {
      if (!file.has(at, kLongHeaderBytes)) return true;
      size = file.number(at + kHeaderBytes, 8);
      header = kLongHeaderBytes;
    }
    if (size < header) return false;
    if (!file.has(at, size)) return true;
    at += size;
  }
  return false;
}

// Length of a number of EBML by the leading zeros of its first byte; 0 for more than eight bytes.
uint64_t number_bytes(uint8_t first) {
  const auto zeros = static_cast<uint64_t>(std::countl_zero(first));
  return zeros < 8 ? zeros + 1 : 0;
}

bool is_cut_matroska(FileView& file) {
  constexpr uint64_t kSegment = 0x18538067, kCluster = 0x1F43B675;
  for (uint64_t at = 0; at < file.size();) {
    const uint64_t id_bytes = number_bytes(file.byte(at));
    if (id_bytes == 0 || id_bytes > 4) return false;
    if (!file.has(at, id_bytes + 1)) return true;
    const uint64_t size_bytes = number_bytes(file.byte(at + id_bytes));
    if (size_bytes == 0) return false;
    if (!file.has(at, id_bytes + size_bytes)) return true;
    const uint64_t ones = (uint64_t{1} << (7 * size_bytes)) - 1, id = file.number(at, id_bytes),
                   size = file.number(at + id_bytes, size_bytes) & ones;
    at += id_bytes + size_bytes;
    // In one of unknown size whatever follows lies, up to its next sibling.
    const bool is_open = size == ones;
    if (is_open && id != kSegment && id != kCluster) return false;
    if (is_open) continue;
    if (!file.has(at, size)) return true;
    at += size;
  }
  return false;
}

bool is_cut_adts(FileView& file) {
  constexpr uint64_t kHeaderBytes = 7;
  uint64_t at = 0;
  while (file.has(at, kHeaderBytes)) {
    const uint64_t header = file.number(at, kHeaderBytes), size = header >> 13 & 0x1FFF;
    const bool is_frame =
        header >> 44 == 0xFFF && (header >> 41 & 3) == 0 && (header >> 34 & 15) <= 12 && size >= kHeaderBytes;
    if (!is_frame) return false;
    if (!file.has(at, size)) return true;
    at += size;
  }
  return at < file.size() && file.byte(at) == 0xFF;
}

bool is_cut_asf(FileView& file) {
  constexpr uint64_t kHeaderBytes = 24;
  for (uint64_t at = 0; file.has(at, kHeaderBytes);) {
    const uint64_t size = file.little_endian(at + 16, 8);
    if (size < kHeaderBytes) return false;
    if (!file.has(at, size)) return true;
    at += size;
  }
  return false;
}

bool is_cut_amr(FileView& file) {
  constexpr std::string_view kNarrow = "#!AMR\n", kWide = "#!AMR-WB\n";
  constexpr uint8_t kNarrowBytes[16] = {12, 13, 15, 17, 19, 20, 26, 31, 5},
                    kWideBytes[16] = {17, 23, 32, 36, 40, 46, 50, 58, 60, 5};
  const bool is_wide = file.has(0, kWide.size()) && file.byte(5) == '-';
  uint64_t at = is_wide ? kWide.size() : kNarrow.size();
  while (at < file.size()) {
    const size_t mode = file.byte(at) >> 3 & 15;
    const uint64_t size = 1 + uint64_t{is_wide ? kWideBytes[mode] : kNarrowBytes[mode]};
    if (!file.has(at, size)) return true;
    at += size;
  }
  return false;
}

}  // namespace

bool is_cut_off(FileView& file, SoundContainer container) {
  switch (container) {
    case SoundContainer::kMatroska: return is_cut_matroska(file);
    case SoundContainer::kMp4: return is_cut_mp4(file);
    case SoundContainer::kAdts: return is_cut_adts(file);
    case SoundContainer::kAsf: return is_cut_asf(file);
    case SoundContainer::kAmr: return is_cut_amr(file);
    case SoundContainer::kOggFlac: return false;  // its pages were looked at before
  }
  return false;
}

}  // namespace syrinx
