#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/text/hash.h"
#include "nn/text/token_table.h"

namespace longhand::nn {

/// The merges of a byte-pair encoding: which two tokens become which one, and how early.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank;  // the lower is done first
    TokenId whole;
  };
  static constexpr Merge none{0xffffffff, 0xffffffff};

  explicit MergeTable(std::size_t count = 0);

  /// At most `count` times. Of two merges of one pair the later counts.
  void add(TokenId left, TokenId right, Merge merge);

  /// none, if the two do not merge.
  Merge find(TokenId left, TokenId right) const {
    const std::uint64_t pair = std::uint64_t{left} << 32 | right;
    for (std::size_t at = place(left, right);; at = (at + 1) & mask_) {
      if (slots_[at].pair == pair) return slots_[at].merge;
      if (slots_[at].pair == free) return none;
    }
  }

  /// Begins to fetch from memory what find() of the same pair will read: large tables lie outside
  /// the CPU's caches, and several fetches at once take little longer than one.
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
