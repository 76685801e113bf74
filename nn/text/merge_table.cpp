#include "nn/text/merge_table.h"

#include <algorithm>
#include <bit>

namespace longhand::nn {

MergeTable::MergeTable(std::size_t count)
    : slots_(std::bit_ceil(count + count / 2 + 2), {free, none}), mask_(slots_.size() - 1) {}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  const std::uint64_t pair = std::uint64_t{left} << 32 | right;
  std::size_t at = place(left, right);
  while (slots_[at].pair != free && slots_[at].pair != pair) at = (at + 1) & mask_;
  slots_[at] = {pair, merge};
}

std::vector<MergeTable::Pair> MergeTable::sorted() const {
  std::vector<Pair> all;
  for (const Slot& slot : slots_) {
    if (slot.pair == free) continue;
    all.push_back(
        {static_cast<TokenId>(slot.pair >> 32), static_cast<TokenId>(slot.pair), slot.merge});
  }
  std::ranges::sort(all, {}, [](const Pair& pair) { return pair.merge.rank; });
  return all;
}

}  // namespace longhand::nn
