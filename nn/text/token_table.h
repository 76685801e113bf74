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

/// The tokens of a vocabulary: the bytes of each id, and the id of given bytes.
class TokenTable {
 public:
  /// For ids below `ids`, of which there may be gaps.
  explicit TokenTable(std::size_t ids = 0);

  enum class Found { yes, no };
  /// A token; Found::no: it has bytes to be decoded to, but no text is encoded as it. Adding an id
  /// or findable bytes twice is an Error.
  void add(TokenId id, std::string_view bytes, Found found);

  /// Begins to fetch from memory what add() of the same bytes, or find(), will read.
  void prefetch(std::string_view bytes) const {
    __builtin_prefetch(&slots_[hash_of(bytes) & mask_]);
  }

  /// Ids are below this.
  std::size_t size() const { return entries_.size(); }
  bool has(TokenId id) const { return id < entries_.size() && entries_[id].begin != absent; }
  /// Empty where there is no such token.
  std::string_view bytes(TokenId id) const;
  std::optional<TokenId> find(std::string_view bytes) const;
  /// Whether find() of its bytes gives this id.
  bool findable(TokenId id) const { return id < findable_.size() && findable_[id]; }
  /// The same for many, `none` where there is no such token. Much faster than one by one: the
  /// table is larger than a CPU's caches, and what several look for is fetched at once.
  void find_all(std::span<const std::string_view> wanted, std::span<TokenId> ids) const;
  static constexpr TokenId none = 0xffffffff;

 private:
  struct Entry {
    std::uint32_t begin, length;
  };
  /// A place of the index: an id and the upper half of its hash, or `free`.
  struct Slot {
    TokenId id;
    std::uint32_t tag;
  };
  std::optional<TokenId> find(std::string_view bytes, std::uint64_t hash) const;

  static constexpr std::uint32_t absent = 0xffffffff, free = 0xffffffff;

  std::vector<Entry> entries_;
  std::vector<bool> findable_;
  std::string pool_;  // the bytes of all
  std::vector<Slot> slots_;
  std::size_t mask_;
};

}  // namespace longhand::nn
