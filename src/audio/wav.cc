// The layout is Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" and the page on
// WAVE_FORMAT_EXTENSIBLE: little endian, chunks of a four-letter name, a size and a body padded to an even size.
// A-law and mu-law are those of ITU-T G.711: a sign, three bits of exponent, four of mantissa.
#include "audio/wav.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "audio/float_range.h"

namespace syrinx {
namespace {

constexpr uint16_t kFormatPcm = 1;
constexpr uint16_t kFormatFloat = 3;
constexpr uint16_t kFormatALaw = 6;
constexpr uint16_t kFormatMuLaw = 7;
constexpr uint16_t kFormatExtensible = 0xFFFE;
constexpr uint32_t kUnknownSize = 0xFFFFFFFF;
constexpr uint32_t kLikelyUnknownSize = 0x7FFFF000;  // programs that cannot seek write such numbers
constexpr int kMaxChunks = 1000;
constexpr size_t kBlockFrames = 4096;

// Bytes 2 to 15 of the sub-format of an extensible file; the first two are the plain format number.
constexpr std::array<uint8_t, 14> kSubFormatTail = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};

uint32_t read_le(std::span<const std::byte> bytes, size_t offset, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint32_t>(bytes[offset + i]) << (8 * i);
  return value;
}

bool has_tag(std::span<const std::byte> bytes, size_t offset, std::string_view tag) {
  return std::memcmp(bytes.data() + offset, tag.data(), tag.size()) == 0;
}

// Coding for a format number and its bits, if it is one that we read.
std::optional<PcmCoding> coding_of(uint32_t kind, uint32_t bits) {
  if (kind == kFormatPcm && (bits == 8 || bits == 16 || bits == 24 || bits == 32)) return PcmCoding::kInteger;
  if (kind == kFormatFloat && bits == 32) return PcmCoding::kFloat;
  if (kind == kFormatALaw && bits == 8) return PcmCoding::kALaw;
  if (kind == kFormatMuLaw && bits == 8) return PcmCoding::kMuLaw;
  return std::nullopt;
}

Result<PcmFormat> read_format(std::span<const std::byte> body, const std::string& name, const SoundLimits& limits) {
  if (body.size() < 16) return fail(Code::kDataLoss, "'{}' has a WAV format of {} bytes, needs 16", name, body.size());
  uint32_t kind = read_le(body, 0, 2);
  const uint32_t channels = read_le(body, 2, 2), rate = read_le(body, 4, 4);
  const uint32_t frame_bytes = read_le(body, 12, 2), bits = read_le(body, 14, 2);
  if (kind == kFormatExtensible) {
    if (body.size() < 40) return fail(Code::kDataLoss, "'{}' has a cut-off extensible WAV format", name);
    if (std::memcmp(body.data() + 26, kSubFormatTail.data(), kSubFormatTail.size()) != 0) {
      return fail(Code::kUnsupported, "'{}' is a WAV file of an unknown extensible kind; convert it to 16-bit PCM",
                  name);
    }
    kind = read_le(body, 24, 2);
  }
  const std::optional<PcmCoding> coding = coding_of(kind, bits);
  if (!coding) {
    return fail(Code::kUnsupported, "'{}' is a WAV file of kind {} with {} bits; convert it to 16-bit PCM", name, kind,
                bits);
  }
  if (channels == 0 || channels > static_cast<uint32_t>(limits.max_channels)) {
    return fail(Code::kLimitExceeded, "'{}' has {} channels; 1 to {} are read", name, channels, limits.max_channels);
  }
  if (rate < static_cast<uint32_t>(limits.min_rate_hz) || rate > static_cast<uint32_t>(limits.max_rate_hz)) {
    return fail(Code::kLimitExceeded, "'{}' has a rate of {} Hz; {} to {} Hz are read", name, rate, limits.min_rate_hz,
                limits.max_rate_hz);
  }
  const PcmFormat format{static_cast<int>(rate), static_cast<int>(channels), static_cast<int>(bits), *coding};
  if (frame_bytes != format.frame_bytes()) {
    return fail(Code::kDataLoss, "'{}' says {} bytes a frame for {} channels of {} bits", name, frame_bytes, channels,
                bits);
  }
  return format;
}

// On the scale of 16-bit integers.
float decode_a_law(uint32_t code) {
  const uint32_t value = code ^ 0x55, exponent = value >> 4 & 7, mantissa = value & 15;
  const uint32_t size = exponent == 0 ? (mantissa << 4) + 8 : ((mantissa << 4) + 0x108) << (exponent - 1);
  return (value & 0x80) != 0 ? static_cast<float>(size) : -static_cast<float>(size);
}
float decode_mu_law(uint32_t code) {
  const uint32_t value = ~code, exponent = value >> 4 & 7, mantissa = value & 15;
  const uint32_t size = (((mantissa << 3) + 0x84) << exponent) - 0x84;
  return (value & 0x80) != 0 ? -static_cast<float>(size) : static_cast<float>(size);
}

float read_sample(std::span<const std::byte> data, size_t offset, const PcmFormat& format) {
  const uint32_t raw = read_le(data, offset, static_cast<size_t>(format.bits / 8));
  if (format.coding == PcmCoding::kFloat) return std::bit_cast<float>(raw);
  if (format.coding == PcmCoding::kALaw) return decode_a_law(raw) / 32768.0f;
  if (format.coding == PcmCoding::kMuLaw) return decode_mu_law(raw) / 32768.0f;
  if (format.bits == 8) return (static_cast<float>(raw) - 128.0f) / 128.0f;  // the only unsigned kind
  const auto value = static_cast<int32_t>(raw << (32 - format.bits));
  return static_cast<float>(static_cast<double>(value) * 0x1p-31);
}

// Where the samples are, and what they mean.
struct Content {
  PcmFormat format;
  std::span<const std::byte> data;
  Status status = {};  // kDataLoss: the data are cut off
  size_t frames() const { return data.size() / format.frame_bytes(); }
};

// A head that is not whole says where the chunk begins that is not there, or how far the file goes.
struct Scan {
  std::optional<WavHead> head;
  size_t at = 0;
};

bool has_chunk_name(std::span<const std::byte> bytes) {
  const auto is_printable = [](std::byte b) { return b >= std::byte{0x20} && b < std::byte{0x7F}; };
  return std::all_of(bytes.begin(), bytes.begin() + 4, is_printable);
}

// Whether all bytes are chunks, and not sound.
bool are_chunks(std::span<const std::byte> bytes) {
  while (bytes.size() >= 8) {
    const size_t size = read_le(bytes, 4, 4), left = bytes.size() - 8;
    if (!has_chunk_name(bytes) || size > left) return false;
    bytes = bytes.subspan(8 + std::min(size + (size & 1), left));
  }
  return bytes.empty();
}

// Whether the sizes leave open if there is sound at `body`: none, in a file that was closed behind it.
bool may_be_none(std::span<const std::byte> file, size_t body, uint32_t size) {
  const uint32_t all = read_le(file, 4, 4);
  return size == 0 && all != 0 && all < kLikelyUnknownSize && uint64_t{all} + 8 > body;
}

// Bytes of sound at `body` by the data chunk's size, if that tells.  `is_whole`: more does not come; else 8 bytes have.
std::optional<uint32_t> announced_bytes(std::span<const std::byte> file, size_t body, uint32_t size, bool is_whole) {
  if (size == kUnknownSize || (size >= kLikelyUnknownSize && size > file.size() - body)) return std::nullopt;
  if (size > 0) return size;
  if (!may_be_none(file, body, size)) return std::nullopt;
  const auto rest = file.subspan(body);
  if (is_whole) return are_chunks(rest) ? std::optional(0u) : std::nullopt;
  const bool fits = uint64_t{body} + 8 + read_le(rest, 4, 4) <= uint64_t{read_le(file, 4, 4)} + 8;
  return fits && has_chunk_name(rest) ? std::optional(0u) : std::nullopt;
}

Result<Scan> scan_head(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits,
                       bool is_whole) {
  if (file.size() < 12) return Scan{};
  if (!has_tag(file, 0, "RIFF") || !has_tag(file, 8, "WAVE"))
    return fail(Code::kDataLoss, "'{}' is not a WAV file", name);
  std::optional<PcmFormat> format;
  size_t at = 12;
  for (int chunk = 0; file.size() - at >= 8; ++chunk) {
    if (chunk == kMaxChunks) return fail(Code::kLimitExceeded, "'{}' has more than {} chunks", name, kMaxChunks);
    const uint32_t size = read_le(file, at + 4, 4);
    const size_t body = at + 8, left = file.size() - body;
    if (has_tag(file, at, "data")) {
      if (!format) return fail(Code::kDataLoss, "'{}' has its WAV data before their format", name);
      if (!is_whole && left < 8 && may_be_none(file, body, size)) return Scan{{}, at};
      return Scan{WavHead{*format, body, announced_bytes(file, body, size, is_whole)}, at};
    }
    if (size > left) return Scan{{}, at};
    if (has_tag(file, at, "fmt ") && !format) {
      SYRINX_TRY(format, read_format(file.subspan(body, size), name, limits));
    }
    at = body + std::min<size_t>(size + size_t{size & 1}, left);
  }
  return Scan{{}, at};
}

Result<Content> find_content(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits) {
  if (file.size() < 12) return fail(Code::kDataLoss, "'{}' is not a WAV file", name);
  SYRINX_TRY(const Scan scan, scan_head(file, name, limits, true));
  if (!scan.head && file.size() - scan.at < 8) return fail(Code::kDataLoss, "'{}' contains no audio", name);
  if (!scan.head)
    return fail(Code::kDataLoss, "'{}' is cut off inside a chunk of {} bytes", name, read_le(file, scan.at + 4, 4));
  const size_t left = file.size() - scan.head->bytes, announced = scan.head->announced.value_or(left);
  Content content{scan.head->format, file.subspan(scan.head->bytes, std::min(announced, left))};
  if (announced > left)
    content.status =
        fail(Code::kDataLoss, "'{}' is cut off: it announces {} bytes of sound and holds {}", name, announced, left);
  return content;
}

}  // namespace

std::array<std::byte, kWavHeaderBytes> wav_header(int rate_hz, std::optional<uint64_t> data_bytes) {
  constexpr uint64_t kAfterSize = kWavHeaderBytes - 8;  // what the outer size counts besides the data
  const bool known = data_bytes && *data_bytes <= std::numeric_limits<uint32_t>::max() - kAfterSize;
  const uint32_t data = known ? static_cast<uint32_t>(*data_bytes) : kUnknownSize;
  const uint32_t outer = known ? static_cast<uint32_t>(*data_bytes + kAfterSize) : kUnknownSize;
  std::array<std::byte, kWavHeaderBytes> header{};
  size_t at = 0;
  const auto tag = [&](std::string_view text) {
    for (char c : text) header[at++] = static_cast<std::byte>(c);
  };
  const auto number = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) header[at++] = static_cast<std::byte>(value >> (8 * i));
  };
  tag("RIFF");
  number(outer, 4);
  tag("WAVEfmt ");
  number(16, 4);
  number(kFormatPcm, 2);
  number(1, 2);
  number(static_cast<uint32_t>(rate_hz), 4);
  number(static_cast<uint32_t>(rate_hz) * 2, 4);
  number(2, 2);
  number(16, 2);
  tag("data");
  number(data, 4);
  return header;
}

Result<WavSound> read_wav(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits) {
  SYRINX_TRY(const Content content, find_content(file, name, limits));
  SYRINX_TRY_VOID(content.status);
  const PcmFormat& format = content.format;
  if (static_cast<double>(content.frames()) > limits.max_seconds * format.rate_hz) {
    return fail(Code::kLimitExceeded, "'{}' has {:.1f} s of sound; at most {:.0f} s are read", name,
                static_cast<double>(content.frames()) / format.rate_hz, limits.max_seconds);
  }
  WavSound sound;
  sound.rate_hz = format.rate_hz;
  sound.channels = format.channels;
  sound.samples.resize(content.frames() * static_cast<size_t>(format.channels));
  const size_t width = static_cast<size_t>(format.bits / 8);
  for (size_t i = 0; i < sound.samples.size(); ++i) {
    sound.samples[i] = read_sample(content.data, i * width, format);
    if (!std::isfinite(sound.samples[i])) return fail(Code::kDataLoss, "'{}' has a sample that is not a number", name);
  }
  return sound;
}

Result<std::optional<WavHead>> read_wav_head(std::span<const std::byte> bytes, const std::string& name,
                                             const SoundLimits& limits, bool is_whole) {
  SYRINX_TRY(const Scan scan, scan_head(bytes, name, limits, is_whole));
  return scan.head;
}

void decode_pcm(std::span<const std::byte> bytes, const PcmFormat& format, std::vector<float>& samples) {
  const size_t width = static_cast<size_t>(format.bits / 8);
  samples.resize(bytes.size() / width);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = read_sample(bytes, i * width, format);
}

Status decode_wav(std::span<const std::byte> file, const std::string& name, const SoundLimits& limits,
                  MonoMixer& mixer) {
  SYRINX_TRY(const Content content, find_content(file, name, limits));
  if (!mixer.takes_parts()) SYRINX_TRY_VOID(content.status);
  const PcmFormat& format = content.format;
  SYRINX_TRY_VOID(mixer.begin(format.channels, format.rate_hz, content.frames()));
  std::vector<float> block;
  const auto decode_at = [&](size_t frame) {
    const size_t count = std::min(kBlockFrames, content.frames() - frame);
    decode_pcm(content.data.subspan(frame * format.frame_bytes(), count * format.frame_bytes()), format, block);
  };
  if (format.coding == PcmCoding::kFloat) {
    FloatRange range;
    for (size_t frame = 0; frame < content.frames(); frame += kBlockFrames) {
      decode_at(frame);
      range.add(block);
      SYRINX_TRY_VOID(mixer.look(block));
    }
    SYRINX_TRY(const float scale, range.scale(name));
    mixer.scale_by(scale);
  }
  for (size_t frame = 0; frame < content.frames(); frame += kBlockFrames) {
    decode_at(frame);
    SYRINX_TRY_VOID(mixer.add(block));
  }
  return content.status;
}

}  // namespace syrinx
