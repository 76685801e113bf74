#include "nn/text/merger.h"

#include <map>
#include "tests/check.h"

#include "core/rng.h"

BOOST_AUTO_TEST_SUITE(merger_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

using Pairs = std::map<std::pair<TokenId, TokenId>, MergeTable::Merge>;

/// Encodes according to the definition of byte-pair encoding: repeatedly merges the leftmost pair
/// with the lowest rank.
std::vector<TokenId> by_definition(const Pairs& pairs, std::vector<TokenId> ids) {
  while (true) {
    MergeTable::Merge best = MergeTable::none;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = pairs.find({ids[i], ids[i + 1]});
      if (found == pairs.end() || found->second.rank >= best.rank) continue;
      best = found->second;
      place = i;
    }
    if (best.rank == MergeTable::none.rank) return ids;
    ids[place] = best.whole;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(words_of_all_lengths_are_merged_as_defined) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    Rng rng(1, Purpose::test, seed);
    // The vocabulary begins with one to four letters, one token each. Each merge joins two existing
    // tokens to a new one.
    const std::uint32_t letters = 1 + rng.below(4), merges = rng.below(40);
    Pairs pairs;
    MergeTable table(merges);
    for (std::uint32_t rank = 0; rank < merges; ++rank) {
      const TokenId left = rng.below(letters + rank), right = rng.below(letters + rank);
      if (pairs.contains({left, right})) continue;
      pairs[{left, right}] = {rank, letters + rank};
      table.add(left, right, {rank, letters + rank});
    }
    const std::size_t length = rng.below(seed % 2 ? 48 : 200);
    std::vector<TokenId> ids;
    std::vector<Symbol> symbols;
    for (std::uint32_t i = 0; i < length; ++i) {
      ids.push_back(rng.below(letters));
      symbols.push_back({ids.back(), i});
    }
    std::vector<MergeTable::Merge> next(length, MergeTable::none);
    for (std::size_t i = 0; i + 1 < length; ++i) next[i] = table.find(ids[i], ids[i + 1]);
    Merger().merge(table, symbols, next);
    std::vector<TokenId> got;
    for (const Symbol& symbol : symbols) got.push_back(symbol.id);
    const std::vector<TokenId> expected = by_definition(pairs, ids);
    BOOST_TEST_CONTEXT("seed " << seed << ", length " << length) {
      BOOST_TEST(got == expected, boost::test_tools::per_element());
      for (std::size_t i = 1; i < symbols.size(); ++i) {
        BOOST_TEST(symbols[i - 1].begin < symbols[i].begin);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(of_two_merges_of_a_pair_the_later_one_counts) {
  MergeTable table(3);
  table.add(1, 2, {0, 7});
  table.add(1, 2, {1, 8});
  BOOST_TEST(table.find(1, 2).rank == 1u);
  BOOST_TEST(table.find(1, 2).whole == 8u);
  BOOST_TEST(table.find(2, 1).rank == MergeTable::none.rank);
}

BOOST_AUTO_TEST_SUITE_END()
