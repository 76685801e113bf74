#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/text/merge_table.h"

namespace longhand::nn {

/// A token of a word: it begins at byte `begin` of what was encoded.
struct Symbol {
  TokenId id;
  std::uint32_t begin;
};

/// Byte-pair encoding of one word: of all neighbours that merge the pair of lowest rank, the
/// leftmost among equals, becomes one token, until no two neighbours merge. Short words by looking
/// through them for each merge, O(n²); long ones with a heap, O(n log n).
class Merger {
 public:
  /// `symbols` are the word's tokens of one character or byte each; what remains is left there.
  /// `next[i]` is what merges of i and i + 1 say; it is overwritten.
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
  struct Candidate {  // the symbol at `place` with the one after it, when its rank was `rank`
    std::uint32_t rank, place;
    friend bool operator>(const Candidate& a, const Candidate& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
    }
  };
  std::vector<Link> links_;
  std::vector<Candidate> heap_;
};

}  // namespace longhand::nn
