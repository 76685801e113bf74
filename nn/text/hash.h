#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

/// Hashes for tables that hold what a file from outside says. They depend on secrets drawn when
/// the program starts, so that no file can be made whose entries all fall on one place; nothing
/// that leaves the program depends on them.
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

inline std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  while (bytes.size() > 16) {
    std::uint64_t words[2];
    std::memcpy(words, bytes.data(), sizeof words);
    hash = hash_of(words[0] ^ hash, words[1]);
    bytes.remove_prefix(sizeof words);
  }
  std::uint64_t rest[2] = {};
  std::memcpy(rest, bytes.data(), bytes.size());
  return hash_of(rest[0] ^ hash, rest[1] + bytes.size());
}

}  // namespace longhand::nn
