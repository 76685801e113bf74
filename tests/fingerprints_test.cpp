#include "nn/training/fingerprints.h"

#include <functional>
#include <set>
#include "tests/check.h"

#include "nn/training/checkpoint.h"
#include "tests/temporary_folder.h"
#include "tests/training.h"

BOOST_AUTO_TEST_SUITE(fingerprints_test)

using namespace longhand;

BOOST_AUTO_TEST_CASE(every_member_of_a_batch_changes_its_hash) {
  nn::Batch batch{.tokens = {1, 2, 3}, .lengths = {2, 1}, .targets = {4, 5, 6}};
  std::vector<std::function<void()>> changes{
      [] {},
      [&] { batch.tokens[2] = 9; },
      [&] {
        batch.lengths = {1, 2};
      },
      [&] {
        batch.positions = {0, 1, 0};
      },
      [&] {
        batch.reference = {{1, 0}};
      },
      [&] {
        batch.features = {{1, 2}, {0.5, 1}};
      },
      [&] {
        batch.features.shape = {2, 1};
      },
      [&] {
        batch.named_features["x"] = {{1}, {2}};
      },
      [&] { batch.named_tokens["y"].append(std::vector<std::int32_t>{7}); },
      [&] { batch.targets[0] = -1; },
      [&] {
        batch.values = {{1}, {3}};
      },
      [&] {
        batch.weights = {1, 0, 1};
      },
      [&] { batch.groups = 2; },
      [&] { batch.head = 1; }};
  std::set<std::string> hashes;
  for (const auto& change : changes) {
    change();
    hashes.insert(nn::hash_of(std::span(&batch, 1), nn::single_rank()));
  }
  const std::vector<nn::Batch> two{batch, batch};
  hashes.insert(nn::hash_of(two, nn::single_rank()));
  BOOST_TEST(hashes.size() == changes.size() + 1);
}

BOOST_AUTO_TEST_SUITE_END()
