#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace longhand {

/// SHA-256 (FIPS 180-4) of bytes that are added in pieces. If the processor has the SHA
/// instructions of x86-64, they are used.
class Sha256 {
 public:
  Sha256();
  /// Like the default constructor, but computes with plain code on every processor.
  static Sha256 by_loops();

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  /// The hash of all added bytes, as 64 hexadecimal digits. Nothing can be added afterwards.
  std::string finish();

 private:
  using State = std::array<std::uint32_t, 8>;
  /// Updates the state with `count` blocks of 64 bytes.
  using Compress = void (*)(State& state, const std::byte* blocks, std::size_t count);
  explicit Sha256(Compress compress) : compress_(compress) {}
  static void compress_by_loops(State& state, const std::byte* blocks, std::size_t count);
#if defined(__x86_64__)
  static void compress_by_instructions(State& state, const std::byte* blocks, std::size_t count);
#endif
  static Compress fastest();

  Compress compress_;
  // The first 32 bits of the fractional parts of the square roots of the first 8 primes.
  State state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};  // the bytes that do not fill a block yet
  std::uint64_t size_ = 0;             // number of added bytes
};

/// The SHA-256 of a text, as 64 hexadecimal digits.
std::string sha256(std::string_view text);

}  // namespace longhand
