#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

/// Hash functions for tables of untrusted data. They depend on random secrets that are drawn when
/// the program starts, so nobody can construct a file whose entries all collide. The program's
/// output does not depend on the secrets.
namespace longhand::nn {

struct HashSecrets {
  std::uint64_t first, second;
};
extern const HashSecrets hash_secrets;

inline std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t hash_of(std::uint64_t a, std::uint64_t b) {
  return fold_product(a ^ hash_secrets.first, b ^ hash_secrets.second);
}

/// Maps at most 16 bytes to two integers. Different texts of equal length give different integers.
/// For 8 to 16 bytes, the integers contain the first and the last eight bytes, which may overlap.
/// For 4 to 7 bytes, they contain the first and the last four bytes. For 1 to 3 bytes, the first
/// integer contains the first, a middle and the last byte.
inline std::array<std::uint64_t, 2> as_words(std::string_view bytes) {
  const auto read = [&]<class Word>(std::size_t place, Word word) -> std::uint64_t {
    std::memcpy(&word, bytes.data() + place, sizeof word);
    return word;
  };
  const std::size_t size = bytes.size();
  if (size >= 8) return {read(0, std::uint64_t{}), read(size - 8, std::uint64_t{})};
  if (size >= 4) return {read(0, std::uint32_t{}), read(size - 4, std::uint32_t{})};
  if (size == 0) return {0, 0};
  const auto byte = [&](std::size_t i) { return read(i, std::uint8_t{}); };
  return {byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16, 0};
}

inline std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  while (bytes.size() > 16) {
    std::uint64_t words[2];
    std::memcpy(words, bytes.data(), sizeof words);
    hash = hash_of(words[0] ^ hash, words[1]);
    bytes.remove_prefix(sizeof words);
  }
  const auto [low, high] = as_words(bytes);
  return hash_of(low ^ hash, high + bytes.size());
}

}  // namespace longhand::nn
