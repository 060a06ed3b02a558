#include "base/sha256.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace syrinx {
namespace {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t load_big_endian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

void compress_plain(uint32_t* state, const uint8_t* data, size_t blocks) {
  using std::rotr;
  for (; blocks > 0; --blocks, data += 64) {
    uint32_t w[64];
    for (int t = 0; t < 16; ++t) w[t] = load_big_endian(data + 4 * t);
    for (int t = 16; t < 64; ++t) {
      const uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
      const uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
      w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; ++t) {
      const uint32_t t1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
      const uint32_t t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1;
      d = c, c = b, b = a, a = t1 + t2;
    }
    const uint32_t worked[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state[i] += worked[i];
  }
}

#if defined(__x86_64__)
// The instructions keep the state as two vectors, {a, b, e, f} and {c, d, g, h} with a and c in the highest lane, and
// do two rounds at a time.  w[] is a ring of the last sixteen words of the message schedule, four to a vector.
__attribute__((target("sha,sse4.1,ssse3"))) void compress_sha_ni(uint32_t* state, const uint8_t* data, size_t blocks) {
  const __m128i swap_bytes = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i abef = _mm_set_epi32(static_cast<int>(state[0]), static_cast<int>(state[1]), static_cast<int>(state[4]),
                               static_cast<int>(state[5]));
  __m128i cdgh = _mm_set_epi32(static_cast<int>(state[2]), static_cast<int>(state[3]), static_cast<int>(state[6]),
                               static_cast<int>(state[7]));
  for (; blocks > 0; --blocks, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i)), swap_bytes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const __m128i current = w[i & 3];
      const __m128i keyed = _mm_add_epi32(current, _mm_load_si128(reinterpret_cast<const __m128i*>(kRound + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, keyed);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(keyed, 0x0e));
      if (i < 12) {  // the words of round group i + 4 replace those of group i
        const __m128i last = w[(i + 3) & 3];
        __m128i next = _mm_sha256msg1_epu32(current, w[(i + 1) & 3]);
        next = _mm_add_epi32(next, _mm_alignr_epi8(last, w[(i + 2) & 3], 4));
        w[i & 3] = _mm_sha256msg2_epu32(next, last);
      }
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  state[0] = static_cast<uint32_t>(_mm_extract_epi32(abef, 3));
  state[1] = static_cast<uint32_t>(_mm_extract_epi32(abef, 2));
  state[4] = static_cast<uint32_t>(_mm_extract_epi32(abef, 1));
  state[5] = static_cast<uint32_t>(_mm_extract_epi32(abef, 0));
  state[2] = static_cast<uint32_t>(_mm_extract_epi32(cdgh, 3));
  state[3] = static_cast<uint32_t>(_mm_extract_epi32(cdgh, 2));
  state[6] = static_cast<uint32_t>(_mm_extract_epi32(cdgh, 1));
  state[7] = static_cast<uint32_t>(_mm_extract_epi32(cdgh, 0));
}

bool has_sha_ni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (1u << 19)) == 0 || (c & (1u << 9)) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29)) != 0;
}
#endif

}  // namespace

Sha256::Sha256([[maybe_unused]] Path path)
    : compress_(compress_plain), state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {
#if defined(__x86_64__)
  static const bool sha_ni = has_sha_ni();
  if (sha_ni && path == Path::kFastest) compress_ = compress_sha_ni;
#endif
}

void Sha256::update(const void* data, size_t size_bytes) {
  const auto* next = static_cast<const uint8_t*>(data);
  const size_t used = total_bytes_ % 64;
  total_bytes_ += size_bytes;
  if (used > 0) {
    const size_t taken = std::min(size_bytes, 64 - used);
    std::copy_n(next, taken, pending_.begin() + static_cast<ptrdiff_t>(used));
    next += taken;
    size_bytes -= taken;
    if (used + taken < 64) return;
    compress_(state_.data(), pending_.data(), 1);
  }
  compress_(state_.data(), next, size_bytes / 64);
  std::copy_n(next + size_bytes / 64 * 64, size_bytes % 64, pending_.begin());
}

void Sha256::update(std::span<const std::byte> bytes) { update(bytes.data(), bytes.size()); }

std::string Sha256::hex() const {
  std::array<uint8_t, 128> tail{};  // what is pending, a one bit, zeros, the length in bits
  const size_t used = total_bytes_ % 64;
  std::copy_n(pending_.begin(), used, tail.begin());
  tail[used] = 0x80;
  const size_t blocks = used < 56 ? 1 : 2;
  for (size_t i = 0; i < 8; ++i) tail[64 * blocks - 1 - i] = static_cast<uint8_t>((total_bytes_ * 8) >> (8 * i));
  std::array<uint32_t, 8> state = state_;
  compress_(state.data(), tail.data(), blocks);
  std::string digits;
  digits.reserve(64);
  for (const uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(word >> shift) & 15];
  }
  return digits;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

}  // namespace syrinx
