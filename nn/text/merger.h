#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/text/merge_table.h"

namespace longhand::nn {

/// A token of a word. It begins at byte `begin` of the encoded text.
struct Symbol {
  TokenId id;
  std::uint32_t begin;
};

/// Byte-pair encoding of one word. It repeatedly applies the merge with the lowest rank until no
/// neighbouring tokens merge. If several merges have the lowest rank, the leftmost one is applied.
/// A short word is searched for each merge, O(n²). A long word uses a heap, O(n log n).
class Merger {
 public:
  /// On input, `symbols` are the word's tokens of one character or byte each; on output, they are
  /// the result. On input, `next[i]` is the merge of symbols i and i + 1; it is overwritten.
  void merge(const MergeTable& merges, std::vector<Symbol>& symbols,
             std::vector<MergeTable::Merge>& next);

 private:
  static void merge_short(const MergeTable& merges, std::vector<Symbol>& symbols,
                          std::vector<MergeTable::Merge>& next);
  void merge_long(const MergeTable& merges, std::vector<Symbol>& symbols,
                  const std::vector<MergeTable::Merge>& next);

  static constexpr std::size_t short_length = 48;
  struct Link {
    std::uint32_t before, after;
  };
  /// A merge of the symbol at `place` with the next symbol. `rank` is the merge's rank at the time
  /// when it was found.
  struct Candidate {
    std::uint32_t rank, place;
    friend bool operator>(const Candidate& a, const Candidate& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
    }
  };
  std::vector<Link> links_;
  std::vector<Candidate> heap_;
};

}  // namespace longhand::nn
