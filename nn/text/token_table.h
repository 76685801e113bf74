#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/text/hash.h"

namespace longhand::nn {

using TokenId = std::uint32_t;

/// The tokens of a vocabulary. Finds the bytes that belong to an id, and the id that belongs to
/// bytes.
class TokenTable {
 public:
  /// All ids must be less than `ids`. There may be ids without a token.
  explicit TokenTable(std::size_t ids = 0);

  enum class Found { yes, no };
  /// Adds a token. A token with Found::no can be decoded, but find() never returns it. Throws an
  /// Error if the id already has a token, or if another token with Found::yes has the same bytes.
  void add(TokenId id, std::string_view bytes, Found found);

  /// Starts to fetch the memory that add() or find() will read for the same bytes.
  void prefetch(std::string_view bytes) const {
    __builtin_prefetch(&slots_[hash_of(bytes) & mask_]);
  }

  /// Upper bound of the ids: every id is less than size().
  std::size_t size() const { return entries_.size(); }
  bool has(TokenId id) const { return id < entries_.size() && entries_[id].begin != absent; }
  /// The bytes of a token; empty if there is no such token.
  std::string_view bytes(TokenId id) const;
  std::optional<TokenId> find(std::string_view bytes) const;
  /// True if a token has this id and was added with Found::yes, so that find() can return the id.
  bool findable(TokenId id) const { return id < findable_.size() && findable_[id]; }
  /// Finds many tokens at once. A missing token has the id `none`. One call is much faster than
  /// many calls of find(): the table exceeds the CPU's caches, and in one call several fetches
  /// overlap.
  void find_all(std::span<const std::string_view> wanted, std::span<TokenId> ids) const;
  static constexpr TokenId none = 0xffffffff;

 private:
  struct Entry {
    std::uint32_t begin, length;
  };
  /// A slot of the hash table: the id of a token (or `free`), and the upper half of the hash of the
  /// token's bytes.
  struct Slot {
    TokenId id;
    std::uint32_t tag;
  };
  std::optional<TokenId> find(std::string_view bytes, std::uint64_t hash) const;

  static constexpr std::uint32_t absent = 0xffffffff, free = 0xffffffff;

  std::vector<Entry> entries_;
  std::vector<bool> findable_;
  std::string pool_;  // bytes of all tokens
  std::vector<Slot> slots_;
  std::size_t mask_;
};

}  // namespace longhand::nn
