#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/text/hash.h"
#include "nn/text/token_table.h"

namespace longhand::nn {

/// The merges of a byte-pair encoding: the two tokens, the token they become, and their priority.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank;  // the lowest rank is merged first
    TokenId whole;
  };
  static constexpr Merge none{0xffffffff, 0xffffffff};

  explicit MergeTable(std::size_t count = 0);

  /// Call at most `count` times. If a pair is added twice, the later merge replaces the earlier
  /// one.
  void add(TokenId left, TokenId right, Merge merge);

  /// Returns `none` if the two tokens do not merge.
  Merge find(TokenId left, TokenId right) const {
    const std::uint64_t pair = std::uint64_t{left} << 32 | right;
    for (std::size_t at = place(left, right);; at = (at + 1) & mask_) {
      if (slots_[at].pair == pair) return slots_[at].merge;
      if (slots_[at].pair == free) return none;
    }
  }

  /// Starts to fetch the memory that find() of the same pair will read. Large tables exceed the
  /// caches, and several fetches at once take little longer than one.
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
