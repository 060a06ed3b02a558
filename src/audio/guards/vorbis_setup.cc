#include "audio/guards/vorbis_setup.h"

#include <ogg/ogg.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <list>
#include <string_view>

namespace syrinx {
namespace {

constexpr std::string_view kSetup = "\x05vorbis";
constexpr long kBookMark = 0x564342;
constexpr int kHeaderPackets = 3;  // the third one has the books
constexpr size_t kMaxStreams = 16, kPieceBytes = size_t{64} << 10;

int bits_for(uint64_t number) { return number == 0 ? 0 : 64 - __builtin_clzll(number); }

// As libvorbis has it: the largest number whose power by `dims`, above 0, is at most `entries`.
uint64_t lattice_values(uint64_t entries, uint64_t dims) {
  const auto fits = [&](uint64_t value) {
    uint64_t power = 1;
    for (uint64_t i = 0; i < dims && power <= entries; ++i) power *= value;
    return power <= entries;
  };
  uint64_t value = std::min<uint64_t>(entries, 1);
  while (value < entries && fits(value + 1)) ++value;
  return value;
}

// The bits of a header, by libogg, which libvorbis reads them with.  Behind the end each number is -1.
class Bits {
 public:
  explicit Bits(const ogg_packet& packet) {
    const size_t bytes = std::min<size_t>(static_cast<size_t>(packet.bytes), INT_MAX) - kSetup.size();
    oggpack_readinit(&buffer_, packet.packet + kSetup.size(), static_cast<int>(bytes));
  }
  long take(int bits) { return oggpack_read(&buffer_, bits); }
  bool skip(uint64_t count, int bits) {
    for (uint64_t i = 0; i < count; ++i)
      if (take(bits) < 0) return false;
    return true;
  }

 private:
  oggpack_buffer buffer_;
};

bool skip_lengths(Bits& bits, uint64_t entries) {
  if (bits.take(1) == 1) {  // in order of their lengths
    if (bits.take(5) < 0) return false;
    for (uint64_t i = 0; i < entries;) {
      const long same = bits.take(bits_for(entries - i));
      if (same < 0) return false;
      i += static_cast<uint64_t>(same);
    }
    return true;
  }
  const bool is_sparse = bits.take(1) == 1;
  for (uint64_t i = 0; i < entries; ++i) {
    const long is_used = is_sparse ? bits.take(1) : 1;
    if (is_used < 0 || (is_used == 1 && bits.take(5) < 0)) return false;
  }
  return true;
}

bool skip_values(Bits& bits, uint64_t entries, uint64_t dims) {
  const long kind = bits.take(4);
  if (kind == 0) return true;
  if (kind != 1 && kind != 2) return false;
  bits.take(32);
  bits.take(32);
  const long width = bits.take(4);
  if (bits.take(1) < 0) return false;
  return bits.skip(kind == 1 ? lattice_values(entries, dims) : entries * dims, static_cast<int>(width) + 1);
}

// A header that ends early, or is none, is left to libvorbis, which refuses it in the same place.
Status check_books(const ogg_packet& packet, const std::string& name) {
  Bits bits(packet);
  const long books = bits.take(8) + 1;
  uint64_t values = 0;
  for (long book = 0; book < books; ++book) {
    if (bits.take(24) != kBookMark) return {};
    const long dims = bits.take(16), entries = bits.take(24);
    if (dims < 0 || entries < 0) return {};
    // libvorbis looks for the values of its lattice for ever.
    if (dims == 0)
      return fail(Code::kDataLoss, "'{}' is damaged: a codebook of its Vorbis stream has no dimension", name);
    const auto count = static_cast<uint64_t>(entries), width = static_cast<uint64_t>(dims);
    values += count * std::max(width, uint64_t{1});
    if (count > kMaxVorbisEntries || values > kMaxVorbisValues)
      return fail(Code::kLimitExceeded,
                  "'{}' has Vorbis codebooks of more than {} entries, or of {} values together; encode it anew", name,
                  kMaxVorbisEntries, kMaxVorbisValues);
    if (!skip_lengths(bits, count) || !skip_values(bits, count, width)) return {};
  }
  return {};
}

// The first packets of one stream, put together by libogg, as libvorbisfile has it do.
class Stream {
 public:
  explicit Stream(int serial) : serial_(serial), has_memory_(ogg_stream_init(&state_, serial) == 0) {}
  ~Stream() { ogg_stream_clear(&state_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int serial() const { return serial_; }
  Status add(ogg_page& page, const std::string& name) {
    if (!has_memory_) return fail(Code::kUnavailable, "no memory to read '{}'", name);
    if (packets_ == kHeaderPackets) return {};
    ogg_stream_pagein(&state_, &page);
    for (ogg_packet packet; packets_ < kHeaderPackets;) {
      const int got = ogg_stream_packetout(&state_, &packet);
      if (got == 0) break;
      if (got < 0) continue;
      ++packets_;
      const auto size = static_cast<size_t>(packet.bytes);
      if (size >= kSetup.size() && std::memcmp(packet.packet, kSetup.data(), kSetup.size()) == 0)
        SYRINX_TRY_VOID(check_books(packet, name));
    }
    return {};
  }

 private:
  const int serial_;
  ogg_stream_state state_{};
  const bool has_memory_;
  int packets_ = 0;
};

// All streams, also those behind the end of the first: which of them libvorbisfile takes up is its own choice.
class Walk {
 public:
  explicit Walk(const std::string& name) : name_(name) { ogg_sync_init(&sync_); }
  ~Walk() { ogg_sync_clear(&sync_); }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  Status push(std::span<const std::byte> bytes) {
    char* const room = ogg_sync_buffer(&sync_, static_cast<long>(bytes.size()));
    if (room == nullptr) return fail(Code::kUnavailable, "no memory to read '{}'", name_);
    std::memcpy(room, bytes.data(), bytes.size());
    ogg_sync_wrote(&sync_, static_cast<long>(bytes.size()));
    ogg_page page;
    for (int got = 0; (got = ogg_sync_pageout(&sync_, &page)) != 0;)
      if (got > 0) SYRINX_TRY_VOID(take(page));
    return {};
  }

 private:
  Status take(ogg_page& page) {
    const int serial = ogg_page_serialno(&page);
    auto stream = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& s) { return s.serial() == serial; });
    if (stream == streams_.end()) {
      if (streams_.size() == kMaxStreams)
        return fail(Code::kLimitExceeded, "'{}' has more than {} streams; leave its sound alone in it", name_,
                    kMaxStreams);
      stream = streams_.emplace(streams_.end(), serial);
    } else if (ogg_page_bos(&page) != 0) {
      // libogg drops what it has of a packet there; libvorbisfile, once it has found its stream, does not.
      return fail(Code::kDataLoss, "'{}' is damaged: a stream of it begins twice", name_);
    }
    return stream->add(page, name_);
  }

  const std::string& name_;
  ogg_sync_state sync_{};
  std::list<Stream> streams_;
};

}  // namespace

Status check_vorbis_setup(std::span<const std::byte> file, const std::string& name) {
  Walk walk(name);
  for (; !file.empty(); file = file.subspan(std::min(kPieceBytes, file.size())))
    SYRINX_TRY_VOID(walk.push(file.first(std::min(kPieceBytes, file.size()))));
  return {};
}

}  // namespace syrinx
