#include "nn/text/merge_table.h"

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

}  // namespace longhand::nn
