#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/text/merge_table.h"

namespace longhand::nn {

/// A token of a word. `begin` is the index of its first byte in the text that is being merged.
struct Symbol {
  TokenId id;
  std::uint32_t begin;
};

/// Byte-pair encoding of one word. The merge with the lowest rank is applied repeatedly until no
/// two neighbouring tokens have a merge. If several merges have the lowest rank, the leftmost one
/// is applied. In a short word, each next merge is found by a search through the word. For n
/// tokens, this takes O(n²). In a long word, a heap is used, which takes O(n log n).
class Merger {
 public:
  /// On input, `symbols` contains one token per character or byte of the word, and next[i] is the
  /// merge of symbols i and i + 1. On output, `symbols` contains the tokens of the word, and `next`
  /// is undefined.
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
  /// An entry of the heap: the merge of the symbol at index `place` with the next symbol. The entry
  /// is outdated if these two symbols have changed, so that their current merge has another rank.
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
