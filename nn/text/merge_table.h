#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/text/hash.h"
#include "nn/text/token_table.h"

namespace longhand::nn {

/// The merges of a byte-pair encoding. A merge replaces two neighbouring tokens by one token and
/// has a priority.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank;  // priority; the merge with the lowest rank is applied first
    TokenId whole;
  };
  static constexpr Merge none{0xffffffff, 0xffffffff};

  explicit MergeTable(std::size_t count = 0);

  /// Adds the merge of the tokens `left` and `right`. May be called at most `count` times, where
  /// `count` is the constructor's argument. If the same pair is added twice, the later merge
  /// replaces the earlier one.
  void add(TokenId left, TokenId right, Merge merge);

  /// The merge of two tokens, or `none`.
  Merge find(TokenId left, TokenId right) const {
    const std::uint64_t pair = std::uint64_t{left} << 32 | right;
    for (std::size_t at = place(left, right);; at = (at + 1) & mask_) {
      if (slots_[at].pair == pair) return slots_[at].merge;
      if (slots_[at].pair == free) return none;
    }
  }

  struct Pair {
    TokenId left, right;
    Merge merge;
  };
  /// All merges, sorted by rank.
  std::vector<Pair> sorted() const;

  /// Starts to fetch the memory that find() will read for the same pair. Large tables exceed the
  /// CPU's caches, and several fetches that overlap take little longer than one.
  void prefetch(TokenId left, TokenId right) const {
    __builtin_prefetch(&slots_[place(left, right)]);
  }

 private:
  struct Slot {
    std::uint64_t pair;
    Merge merge;
  };
  static constexpr std::uint64_t free = ~std::uint64_t{0};

  std::size_t place(TokenId left, TokenId right) const { return hash_of(left, right) & mask_; }

  std::vector<Slot> slots_;
  std::size_t mask_;
};

}  // namespace longhand::nn
