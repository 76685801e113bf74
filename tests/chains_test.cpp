#include "tasks/chains.h"

#include <map>
#include "tests/check.h"

#include "core/error.h"
#include "tests/chi_square.h"
#include "tests/make_task.h"

BOOST_AUTO_TEST_SUITE(chains_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

constexpr TaskMaker make{chains};

}  // namespace

BOOST_AUTO_TEST_CASE(the_paper_s_sizes_are_the_defaults) {
  const auto task = make();
  BOOST_TEST(task->longest() == 128);
  // The vocabulary has 128 tokens: 8 values and 120 positions to which a token may refer. Tokens
  // refer to the block before their own, so no token refers to the 8 positions of the last block.
  BOOST_TEST(task->vocabulary().size() == 128);
  BOOST_TEST(task->outputs().groups * task->outputs().classes == 128);
  BOOST_TEST(draw(*task, 0).asked.size() == 136u * 8);
}

// Computes every target by its definition: follows the references from each token to a value.
BOOST_AUTO_TEST_CASE(the_target_of_a_group_is_the_element_of_the_chain_in_its_block) {
  for (const auto& [blocks, size] : {std::pair(16, 8), {5, 3}, {1, 4}, {7, 1}}) {
    const auto task = make({{"blocks", std::to_string(blocks)}, {"size", std::to_string(size)}});
    for (std::uint32_t index = 0; index < 20; ++index) {
      const Sample sample = draw(*task, index);
      BOOST_REQUIRE_EQUAL(sample.tokens.size(), static_cast<std::size_t>(blocks * size));
      for (int i = 0; i < blocks * size; ++i) {
        std::map<int, int> expected;  // the expected class of each group
        int token = sample.tokens[static_cast<std::size_t>(i)];
        while (token >= size) {
          const int position = token - size;
          expected[position / size + 1] = position % size;
          token = sample.tokens[static_cast<std::size_t>(position)];
        }
        expected[0] = token;
        for (int group = 0; group < blocks; ++group) {
          const auto found = expected.find(group);
          BOOST_REQUIRE_EQUAL(sample.targets[static_cast<std::size_t>(i * blocks + group)],
                              found == expected.end() ? Sample::not_counted : found->second);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(values_and_orders_of_a_block_are_uniform) {
  const auto task = make({{"blocks", "3"}, {"size", "4"}});
  std::vector<double> values(4);
  std::map<std::vector<std::int32_t>, double> orders[2];
  // Counts the pairs (first token of block 1, first token of block 2), to check that the orders of
  // the two blocks are independent.
  std::map<std::vector<std::int32_t>, double> pairs;
  for (std::uint32_t index = 0; index < 6000; ++index) {
    const Sample sample = draw(*task, index);
    for (int i = 0; i < 4; ++i) ++values[static_cast<std::size_t>(sample.tokens[i])];
    for (int block = 1; block < 3; ++block) {
      ++orders[block - 1]
              [{sample.tokens.begin() + 4 * block, sample.tokens.begin() + 4 * block + 4}];
    }
    ++pairs[{sample.tokens[4], sample.tokens[8]}];
  }
  BOOST_TEST(chi_square_p(values) > 1e-3);
  const auto fair = [](const auto& counted, std::size_t cells) {
    std::vector<double> counts;
    for (const auto& [key, count] : counted) counts.push_back(count);
    BOOST_TEST(counts.size() == cells);
    BOOST_TEST(chi_square_p(counts) > 1e-3);
  };
  fair(orders[0], 24);
  fair(orders[1], 24);
  fair(pairs, 16);
}

BOOST_AUTO_TEST_CASE(guessing_is_right_one_time_in_eight_and_depths_add_up) {
  const auto task = make({{"score", "depths"}});
  Tally tally;
  Rng rng(5, Purpose::test);
  for (std::uint32_t index = 0; index < 20; ++index) {
    const Sample sample = draw(*task, index);
    std::vector<std::int32_t> said;
    for (const std::int32_t output : sample.asked) {
      const std::int32_t depth = output / 16 / 8 - output % 16;
      said.push_back(depth < 2 ? sample.targets[static_cast<std::size_t>(output)]
                               : static_cast<std::int32_t>(rng.below(8)));
    }
    task->score(sample, said, tally);
  }
  BOOST_TEST(tally.at("depth 0").mean() == 1);
  BOOST_TEST(tally.at("depth 1").mean() == 1);
  BOOST_TEST(tally.at("depth 1").count == 20 * 15 * 8);
  BOOST_TEST(std::abs(tally.at("depth 2").mean() - 0.125) < 0.03);
  BOOST_TEST(tally.at("depth 15").count == 20 * 8);
  std::int64_t all = 0;
  for (const Metric& metric : tally.metrics()) all += metric.name == "choices" ? 0 : metric.count;
  BOOST_TEST(all == tally.at("choices").count);
}

BOOST_AUTO_TEST_CASE(answers_from_a_file_are_checked_word_by_word) {
  const auto task = make({{"blocks", "3"}, {"size", "2"}});
  const std::string prompt = "v1 v0 1 0 3 2";
  const std::string answer = "v1; v0; 1 v0; 0 v1; 3 0 v1; 2 1 v0";
  BOOST_TEST(task->answer(prompt) == answer);
  const auto verdict = [&](const std::string& p, const std::string& a) {
    return task->check(p, a).value_or("right");
  };
  BOOST_TEST(verdict(prompt, answer) == "right");
  BOOST_TEST(verdict("  v1 v0  1 0 3 2 ", "v1;v0;1 v0;0 v1;3 0 v1;2 1 v0 ") == "right");
  BOOST_TEST(verdict(prompt, "v1; v0; 1 v0; 0 v1; 3 1 v1; 2 1 v0") ==
             "token 4: expected \"3 0 v1\", got \"3 1 v1\"");
  BOOST_TEST(verdict(prompt, "v1; v0; 1 v0; 0 v1; 3 0 v1") ==
             "expected the chains of 6 tokens, got 5");
  BOOST_TEST(verdict(prompt, answer + "; v0") ==
             "expected nothing after the last chain, got \" v0\"");
  BOOST_TEST(verdict("v1 v0 1 0 3", answer) == "expected a prompt of 6 tokens, got 5");
  BOOST_TEST(verdict("v1 v2 1 0 3 2", answer) ==
             "token 1: expected a value from v0 to v1, got \"v2\"");
  BOOST_TEST(verdict("v1 v0 1 2 3 2", answer) ==
             "token 3: expected a position from 0 to 1, got \"2\"");
  BOOST_TEST(verdict("v1 v0 1 1 3 2", answer) ==
             "token 3: expected different positions in a block, got position 1 twice");
  BOOST_TEST(verdict("v1 v0 1 00 3 2", answer) ==
             "token 3: expected a position from 0 to 1, got \"00\"");
  BOOST_CHECK_THROW(task->answer("v1"), Error);
}

// Changes one predicted class of a sample's answer at a time. The check must detect each change.
BOOST_AUTO_TEST_CASE(a_wrong_choice_fails_the_check) {
  const auto task = make({{"blocks", "4"}, {"size", "3"}});
  Sample sample = draw(*task, 1);
  const std::string prompt = task->as_text(sample).first;
  for (const std::int32_t output : sample.asked) {
    std::int32_t& target = sample.targets[static_cast<std::size_t>(output)];
    const std::int32_t kept = target;
    target = (kept + 1) % 3;
    BOOST_TEST(task->check(prompt, task->as_text(sample).second).has_value());
    target = kept;
  }
  BOOST_TEST(!task->check(prompt, task->as_text(sample).second).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
