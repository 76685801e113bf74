#include "core/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace longhand {
namespace {

constexpr std::size_t block_bytes = 64;

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian_word(const std::byte* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return word;
}

#if defined(__x86_64__)
bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool sha = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
  return sha && __builtin_cpu_supports("sse4.1") != 0;
}
#endif

}  // namespace

/// The hash computation of FIPS 180-4, section 6.2.2. The variables a to h, t, t1, t2 and w have
/// the names of the standard.
void Sha256::compress_by_loops(State& state, const std::byte* blocks, std::size_t count) {
  for (; count > 0; --count, blocks += block_bytes) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian_word(blocks + 4 * t);
    for (std::size_t t = 16; t < 64; ++t) {
      const std::uint32_t x = w[t - 15], y = w[t - 2];
      const std::uint32_t sigma0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
      const std::uint32_t sigma1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
      w[t] = sigma1 + w[t - 7] + sigma0 + w[t - 16];
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t t = 0; t < 64; ++t) {
      const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t choice = (e & f) ^ (~e & g);
      const std::uint32_t t1 = h + sum1 + choice + constants[t] + w[t];
      const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
      const std::uint32_t t2 = sum0 + majority;
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    const State rounds{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state[i] += rounds[i];
  }
}

#if defined(__x86_64__)
/// Uses the SHA instructions of x86-64. The instruction sha256rnds2 computes two rounds and
/// requires the state as the vectors {f, e, b, a} and {h, g, d, c}, lowest element first.
__attribute__((target("sha,sse4.1"))) void Sha256::compress_by_instructions(State& state,
                                                                            const std::byte* blocks,
                                                                            std::size_t count) {
  const auto vector = [](std::uint32_t x0, std::uint32_t x1, std::uint32_t x2, std::uint32_t x3) {
    return std::array<std::uint32_t, 4>{x0, x1, x2, x3};
  };
  const auto& s = state;
  const auto first = vector(s[5], s[4], s[1], s[0]), second = vector(s[7], s[6], s[3], s[2]);
  const auto load = [](const void* at) __attribute__((target("sha,sse4.1"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(at));
  };
  __m128i feba = load(first.data()), hgdc = load(second.data());
  const __m128i swap_bytes = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (; count > 0; --count, blocks += block_bytes) {
    const __m128i feba_before = feba, hgdc_before = hgdc;
    // The last 16 words of the message schedule: word t is in w[t / 4 % 4].
    __m128i w[4];  // NOLINT: std::array ignores the attributes of a vector type
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) {
      __m128i& now = w[i % 4];
      if (i < 4) {
        now = _mm_shuffle_epi8(load(blocks + 16 * i), swap_bytes);
      } else {
        const __m128i before = w[(i + 3) % 4];
        const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]),
                                          _mm_alignr_epi8(before, w[(i + 2) % 4], 4));
        now = _mm_sha256msg2_epu32(sum, before);
      }
      const __m128i words = _mm_add_epi32(now, load(constants.data() + 4 * i));
      hgdc = _mm_sha256rnds2_epu32(hgdc, feba, words);
      feba = _mm_sha256rnds2_epu32(feba, hgdc, _mm_shuffle_epi32(words, 0x0e));
    }
    feba = _mm_add_epi32(feba, feba_before);
    hgdc = _mm_add_epi32(hgdc, hgdc_before);
  }
  std::array<std::uint32_t, 4> low{}, high{};
  std::memcpy(low.data(), &feba, sizeof low);
  std::memcpy(high.data(), &hgdc, sizeof high);
  state = {low[3], low[2], high[3], high[2], low[1], low[0], high[1], high[0]};
}
#endif

Sha256::Compress Sha256::fastest() {
#if defined(__x86_64__)
  static const bool instructions = has_sha_instructions();
  if (instructions) return compress_by_instructions;
#endif
  return compress_by_loops;
}

Sha256::Sha256() : Sha256(fastest()) {}

Sha256 Sha256::by_loops() { return Sha256(compress_by_loops); }

void Sha256::add(std::span<const std::byte> bytes) {
  const auto held = static_cast<std::size_t>(size_ % block_bytes);
  size_ += bytes.size();
  if (held > 0) {
    const std::size_t more = std::min(block_bytes - held, bytes.size());
    std::copy_n(bytes.begin(), more, block_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(more);
    if (held + more < block_bytes) return;
    compress_(state_, block_.data(), 1);
  }
  compress_(state_, bytes.data(), bytes.size() / block_bytes);
  const auto rest = bytes.last(bytes.size() % block_bytes);
  std::copy(rest.begin(), rest.end(), block_.begin());
}

std::string Sha256::finish() {
  const std::uint64_t bits = 8 * size_;
  // The padding: a bit 1, then zeros until 8 bytes of a block are left, then the length of the
  // message in bits.
  std::array<std::byte, 2 * block_bytes> end{std::byte{0x80}};
  const auto held = static_cast<std::size_t>(size_ % block_bytes);
  const std::size_t zeros_end = (held < 56 ? 56 : 120) - held;
  for (std::size_t i = 0; i < 8; ++i) {
    end[zeros_end + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  }
  add(std::span(end).first(zeros_end + 8));
  std::string digits;
  for (const std::uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[word >> shift & 15];
  }
  return digits;
}

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.finish();
}

}  // namespace longhand
