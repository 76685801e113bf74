#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/text/merge_table.h"

namespace longhand::nn {

/// A token of a word; `begin` is the index of its first byte in the text being merged.
struct Symbol {
  TokenId id;
  std::uint32_t begin;
};

/// Byte-pair encoding of one word. It repeatedly applies the merge with the lowest rank until no
/// neighbouring tokens merge. If several merges have the lowest rank, the leftmost one is applied.
/// For a short word, each merge is found by a search over the word, O(n²). For a long word, a heap
/// is used, O(n log n).
class Merger {
 public:
  /// On input, `symbols` contains one token per character or byte of the word, and next[i] is the
  /// merge of symbols i and i + 1. On output, `symbols` contains the result, and `next` is
  /// undefined.
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
  /// A possible merge of the symbol at `place` with the next symbol. It is outdated if the current
  /// merge of these symbols has another rank.
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
