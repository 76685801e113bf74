#include "nn/text/merger.h"

#include <algorithm>
#include <functional>

#include "core/error.h"

namespace longhand::nn {

void Merger::merge(const MergeTable& merges, std::vector<Symbol>& symbols,
                   std::vector<MergeTable::Merge>& next) {
  if (symbols.size() < 2) return;
  if (symbols.size() <= short_length) {
    merge_short(merges, symbols, next);
  } else {
    merge_long(merges, symbols, next);
  }
}

void Merger::merge_short(const MergeTable& merges, std::vector<Symbol>& symbols,
                         std::vector<MergeTable::Merge>& next) {
  std::size_t count = symbols.size();
  const auto find = [&](std::size_t i) {
    next[i] = i + 1 < count ? merges.find(symbols[i].id, symbols[i + 1].id) : MergeTable::none;
  };
  while (true) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < count; ++i) {
      if (next[i].rank < next[best].rank) best = i;
    }
    if (next[best].rank == MergeTable::none.rank) break;
    symbols[best].id = next[best].whole;
    --count;
    for (std::size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      next[i] = next[i + 1];
    }
    if (best > 0) merges.prefetch(symbols[best - 1].id, symbols[best].id);
    find(best);
    if (best > 0) find(best - 1);
  }
  symbols.resize(count);
}

void Merger::merge_long(const MergeTable& merges, std::vector<Symbol>& symbols,
                        const std::vector<MergeTable::Merge>& next) {
  constexpr std::uint32_t none = 0xffffffff;
  LONGHAND_CHECK(symbols.size() < none, "expected words of fewer than 2^32 - 1 BPE symbols, got ",
                 symbols.size(), " symbols");
  const auto count = static_cast<std::uint32_t>(symbols.size());
  links_.resize(count);
  heap_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    links_[i] = {i == 0 ? none : i - 1, i + 1 == count ? none : i + 1};
    if (next[i].rank != MergeTable::none.rank) heap_.push_back({next[i].rank, i});
  }
  std::ranges::make_heap(heap_, std::greater<>());
  const auto push = [&](std::uint32_t left, std::uint32_t right) {
    const auto merge = merges.find(symbols[left].id, symbols[right].id);
    if (merge.rank == MergeTable::none.rank) return;
    heap_.push_back({merge.rank, left});
    std::ranges::push_heap(heap_, std::greater<>());
  };
  constexpr TokenId gone = 0xffffffff;  // id of a symbol that was merged into the symbol before it
  while (!heap_.empty()) {
    std::ranges::pop_heap(heap_, std::greater<>());
    const auto [rank, place] = heap_.back();
    heap_.pop_back();
    const std::uint32_t right = links_[place].after;
    if (symbols[place].id == gone || right == none) continue;
    const auto merge = merges.find(symbols[place].id, symbols[right].id);
    if (merge.rank != rank) continue;  // outdated: one of the two symbols has changed since
    symbols[place].id = merge.whole;
    symbols[right].id = gone;
    const std::uint32_t after = links_[right].after, before = links_[place].before;
    links_[place].after = after;
    if (after != none) {
      links_[after].before = place;
      push(place, after);
    }
    if (before != none) push(before, place);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.id == gone; });
}

}  // namespace longhand::nn
