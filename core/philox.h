#pragma once

#include <array>
#include <cstdint>

namespace longhand {

inline constexpr int philox_rounds = 10;

/// One round of the Philox generator: multiply, exchange and xor. Always inlined, because kernels
/// that are compiled for different instruction sets use it. The linker would keep only one
/// out-of-line copy for all of them, possibly with wide instructions (core/cpu/isa.h).
[[gnu::always_inline]] constexpr void philox_round(std::uint32_t& c0, std::uint32_t& c1,
                                                   std::uint32_t& c2, std::uint32_t& c3,
                                                   std::uint32_t k0, std::uint32_t k1) {
  const std::uint64_t p = std::uint64_t{0xD2511F53u} * c0;
  const std::uint64_t q = std::uint64_t{0xCD9E8D57u} * c2;
  c0 = static_cast<std::uint32_t>(q >> 32) ^ c1 ^ k0;
  c1 = static_cast<std::uint32_t>(q);
  c2 = static_cast<std::uint32_t>(p >> 32) ^ c3 ^ k1;
  c3 = static_cast<std::uint32_t>(p);
}

/// Computes the key of the next Philox round.
[[gnu::always_inline]] constexpr void raise_philox_key(std::uint32_t& k0, std::uint32_t& k1) {
  k0 += 0x9E3779B9u;
  k1 += 0xBB67AE85u;
}

/// Philox4x32-10 maps a 128-bit counter and a 64-bit key to four 32-bit words (Salmon et al. 2011).
/// The generator has no state. Word n of a random stream (core/rng.h) depends only on the stream's
/// name and on n, so it is the same on every backend and for any number of threads.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c,
                                              std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < philox_rounds; ++round) {
    philox_round(c[0], c[1], c[2], c[3], k[0], k[1]);
    raise_philox_key(k[0], k[1]);
  }
  return c;
}

}  // namespace longhand
