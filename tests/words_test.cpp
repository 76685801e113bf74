#include "tasks/words.h"

#include <algorithm>
#include <numeric>
#include <set>
#include "tests/check.h"

#include "tests/chi_square.h"
#include "tests/make_task.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(words_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

constexpr TaskMaker make{words};

std::string verdict(const Task& task, const std::string& prompt, const std::string& answer) {
  return task.check(prompt, answer).value_or("right");
}

/// All permutations of n points in lexicographic order, written as digits. If even_alone, only the
/// even ones.
std::vector<std::string> permutations(int n, bool even_alone) {
  std::vector<std::string> all;
  std::string next = std::string("01234").substr(0, static_cast<std::size_t>(n));
  do {
    // Computes the parity of the permutation from its cycles. The task computes it from inversions.
    int odd = 0;
    std::set<char> seen;
    for (const char start : next) {
      if (!seen.insert(start).second) continue;
      for (char x = next[static_cast<std::size_t>(start - '0')]; x != start;
           x = next[static_cast<std::size_t>(x - '0')]) {
        seen.insert(x);
        odd ^= 1;
      }
    }
    if (odd == 0 || !even_alone) all.push_back(next);
  } while (std::ranges::next_permutation(next).found);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(tokens_and_classes_are_elements_for_any_moves) {
  for (const auto& [group, elements] : {std::pair{"s2", 2},
                                        {"s3", 6},
                                        {"a5", 60},
                                        {"s5", 120},
                                        {"z2", 2},
                                        {"z7", 7},
                                        {"z4096", 4096}}) {
    const auto task = make({{"group", group}});
    BOOST_TEST(task->vocabulary().size() == elements);
    BOOST_TEST(task->outputs().classes == elements);
    BOOST_TEST(task->outputs().groups == 1);
    BOOST_TEST(!task->outputs().says_next);
  }
  BOOST_TEST(make({{"moves", "swaps"}})->outputs().classes == 120);
}

// The products (a∘b)(x) = a(b(x)) of permutations were computed by hand.
BOOST_AUTO_TEST_CASE(the_later_element_is_the_inner_one_of_the_product) {
  // In S3, element 0 is the permutation 012, 1 is 021, 2 is 102, 3 is 120, 4 is 201, 5 is 210. Row
  // a of the table contains a∘b for each b.
  const std::vector<std::string> table{"0 1 2 3 4 5", "1 0 4 5 2 3", "2 3 0 1 5 4",
                                       "3 2 5 4 0 1", "4 5 1 0 3 2", "5 4 3 2 1 0"};
  const auto s3 = make({{"group", "s3"}});
  for (std::size_t a = 0; a < 6; ++a) {
    for (std::size_t b = 0; b < 6; ++b) {
      const std::string product(1, table[a][2 * b]);
      BOOST_TEST(s3->answer(text(a, ' ', b)) == text(a, ' ', product));
    }
  }
  // In S5, element 24 is the permutation 10234, and element 33 is 12340. So 24∘33 = 02341, and
  // 33∘24 = 21340.
  BOOST_TEST(make()->answer("24 33") == "24 9");
  BOOST_TEST(make()->answer("33 24") == "33 57");
  // In A5, element 1 is the permutation 01342, and element 2 is 01423. Each of these two is the
  // square and the inverse of the other. Element 59 is 43210.
  BOOST_TEST(make({{"group", "a5"}})->answer("1 1 1 59 59 1 2") == "1 2 0 59 0 1 0");
  BOOST_TEST(make({{"group", "s2"}})->answer("1 1 0 1") == "1 0 0 1");
  BOOST_TEST(make({{"group", "z5"}})->answer("3 4 4") == "3 2 1");
}

// A word is a sequence of permutations. The expected targets are computed from permutations that
// are written as text.
BOOST_AUTO_TEST_CASE(a_target_is_the_index_of_the_product_so_far) {
  for (const auto& [group, points] : {std::pair{"s2", 2}, {"s3", 3}, {"a5", 5}, {"s5", 5}}) {
    const auto all = permutations(points, group[0] == 'a');
    const auto task = make({{"group", group}});
    std::set<std::int32_t> moves, products;
    for (std::uint32_t index = 0; index < 40; ++index) {
      const Sample sample = draw(*task, index);
      BOOST_REQUIRE_EQUAL(sample.tokens.size(), 128u);
      BOOST_REQUIRE_EQUAL(sample.asked.size(), 128u);
      std::string product = all[0];
      for (std::size_t t = 0; t < sample.tokens.size(); ++t) {
        const std::string& move = all.at(static_cast<std::size_t>(sample.tokens[t]));
        std::string next = product;
        for (std::size_t x = 0; x < move.size(); ++x) {
          next[x] = product[static_cast<std::size_t>(move[x] - '0')];
        }
        product = next;
        BOOST_REQUIRE_EQUAL(all.at(static_cast<std::size_t>(sample.targets[t])), product);
        moves.insert(sample.tokens[t]);
        products.insert(sample.targets[t]);
      }
    }
    BOOST_TEST(moves.size() == all.size());
    BOOST_TEST(products.size() == all.size());
  }
  const Sample sums = draw(*make({{"group", "z60"}}), 1);
  std::int32_t sum = 0;
  for (std::size_t t = 0; t < sums.tokens.size(); ++t) {
    sum += sums.tokens[t];
    BOOST_TEST(sums.targets[t] == sum % 60);
  }
}

BOOST_AUTO_TEST_CASE(moves_are_uniform_and_independent) {
  const auto s3 = make({{"group", "s3"}});
  std::vector<double> moves(6), pairs(36);
  for (std::uint32_t index = 0; index < 200; ++index) {
    const Sample sample = draw(*s3, index);
    for (std::size_t t = 0; t < sample.tokens.size(); ++t) {
      const auto move = static_cast<std::size_t>(sample.tokens[t]);
      ++moves[move];
      if (t > 0) ++pairs[6 * static_cast<std::size_t>(sample.tokens[t - 1]) + move];
    }
  }
  BOOST_TEST(chi_square_p(moves) > 1e-3);
  BOOST_TEST(chi_square_p(pairs) > 1e-3);
}

BOOST_AUTO_TEST_CASE(swaps_are_the_ten_elements_that_exchange_two_points) {
  const auto all = permutations(5, false);
  const auto task = make({{"moves", "swaps"}});
  std::map<std::int32_t, double> counts;
  std::set<std::int32_t> products;
  for (std::uint32_t index = 0; index < 100; ++index) {
    const Sample sample = draw(*task, index);
    for (const std::int32_t move : sample.tokens) ++counts[move];
    products.insert(sample.targets.begin(), sample.targets.end());
  }
  BOOST_TEST(counts.size() == 10u);
  std::vector<double> cells;
  for (const auto& [move, count] : counts) {
    cells.push_back(count);
    const std::string& points = all.at(static_cast<std::size_t>(move));
    int moved = 0;
    for (std::size_t x = 0; x < 5; ++x) moved += points[x] != static_cast<char>('0' + x);
    BOOST_TEST(moved == 2);
  }
  BOOST_TEST(chi_square_p(cells) > 1e-3);
  BOOST_TEST(products.size() == 120u);
  for (const char* group : {"s2", "z2"}) {  // element 1 is the only swap of these groups
    const Sample ones = draw(*make({{"group", group}, {"moves", "swaps"}}), 0);
    BOOST_TEST(std::ranges::count(ones.tokens, 1) == 128);
  }
}

BOOST_AUTO_TEST_CASE(lengths_are_uniform_and_the_option_asked_selects_the_scored_places) {
  const TaskOptions parity{{"group", "s2"}, {"min", "3"}, {"max", "10"}, {"asked", "last"}};
  const auto task = make(parity);
  std::vector<double> lengths(8);
  for (std::uint32_t index = 0; index < 2000; ++index) {
    const Sample sample = draw(*task, index);
    ++lengths.at(sample.tokens.size() - 3);
    const auto last = static_cast<std::int32_t>(sample.tokens.size()) - 1;
    BOOST_REQUIRE(sample.asked == std::vector{last});
    BOOST_REQUIRE_EQUAL(std::ranges::count(sample.targets, Sample::not_counted), last);
    const auto ones = std::ranges::count(sample.tokens, 1);
    BOOST_REQUIRE_EQUAL(sample.targets.back(), ones % 2);
  }
  BOOST_TEST(chi_square_p(lengths) > 1e-3);
  BOOST_TEST(task->reference(draw(*task, 0)).empty());
}

BOOST_AUTO_TEST_CASE(other_distributions_have_longer_words) {
  BOOST_TEST(make()->longest() == 128);
  const TaskOptions parity{{"group", "s2"}, {"min", "3"}, {"max", "40"}, {"asked", "last"}};
  for (const auto& [name, shortest, longest] :
       {std::tuple{"train", 3u, 40u}, {"2x", 80u, 80u}, {"4x", 160u, 160u}, {"long", 40u, 256u}}) {
    const auto task = make(parity, name);
    BOOST_TEST(task->longest() == longest);
    std::set<std::size_t> seen;
    for (std::uint32_t index = 0; index < 3000; ++index) {
      seen.insert(draw(*task, index).tokens.size());
    }
    BOOST_TEST(*seen.begin() == shortest);
    BOOST_TEST(*seen.rbegin() == longest);
    BOOST_TEST(seen.size() == longest - shortest + 1);
  }
}

BOOST_AUTO_TEST_CASE(guessing_has_a_score_of_zero_above_chance) {
  const auto task = make({{"group", "s3"}});
  Tally right, guessed, some;
  Rng rng(3, Purpose::test);
  for (std::uint32_t index = 0; index < 100; ++index) {
    const Sample sample = draw(*task, index);
    task->score(sample, sample.targets, right);
    std::vector<std::int32_t> said = sample.targets;
    for (std::int32_t& one : said) one = static_cast<std::int32_t>(rng.below(6));
    task->score(sample, said, guessed);
  }
  BOOST_TEST(std::abs(right.at("above-chance").mean() - 1) < 1e-12);
  BOOST_TEST(std::abs(guessed.at("tokens").mean() - 1.0 / 6) < 0.02);
  BOOST_TEST(std::abs(guessed.at("above-chance").mean()) < 0.02);
  const Sample sample{.tokens = {1, 1, 1, 1}, .targets = {1, 0, 1, 0}, .asked = {0, 1, 2, 3}};
  task->score(sample, std::vector{1, 0, 1, 5}, some);
  BOOST_TEST(std::abs(some.at("above-chance").mean() - (0.75 - 1.0 / 6) / (5.0 / 6)) < 1e-12);
  BOOST_TEST(some.at("sequences").sum == 0);
  BOOST_TEST(some.at("tokens").sum == 3);
}

BOOST_AUTO_TEST_CASE(answers_from_a_file_are_checked_product_by_product) {
  const auto s3 = make({{"group", "s3"}});
  BOOST_TEST(verdict(*s3, "1 2 4", "1 4 3") == "right");
  BOOST_TEST(verdict(*s3, " 1  2 4 ", " 1 4  3") == "right");
  BOOST_TEST(verdict(*s3, "1 2 4", "1 3 3") == "product 2: expected 4, got 3");
  BOOST_TEST(verdict(*s3, "1 2 4", "1 4") == "expected 3 products, got 2");
  BOOST_TEST(verdict(*s3, "1 2 4", "1 4 3 0") == "expected 3 products, got 4");
  BOOST_TEST(verdict(*s3, "1 6", "1 0") ==
             "text: no token of the vocabulary matches at character 3: \"6\"");
  BOOST_TEST(verdict(*s3, "1 2", "1 x") ==
             "text: no token of the vocabulary matches at character 3: \"x\"");
  BOOST_TEST(verdict(*s3, "", "") == "expected elements of the group, got none");
  const auto last = make({{"group", "s3"}, {"asked", "last"}});
  BOOST_TEST(verdict(*last, "1 2 4", "3") == "right");
  BOOST_TEST(verdict(*last, "1 2 4", "4") == "product 1: expected 3, got 4");
  BOOST_TEST(verdict(*last, "1 2 4", "1 4 3") == "product 1: expected 3, got 1");
  // An element that is not a swap must be refused. For example, element 25 of S5 exchanges two
  // pairs of points.
  for (const auto& [group, other] :
       {std::pair{"s3", "3"}, {"s3", "0"}, {"z2", "0"}, {"s5", "25"}, {"s5", "0"}}) {
    const auto swaps = make({{"group", group}, {"moves", "swaps"}});
    BOOST_TEST(verdict(*swaps, "1 1", "1 0") == "right");
    BOOST_TEST(verdict(*swaps, text("1 ", other), "1 0") ==
               text("element 2: expected an element that exchanges two points, got ", other));
  }
  BOOST_CHECK_THROW(s3->answer(""), Error);
}

BOOST_AUTO_TEST_CASE(wrong_options_are_refused) {
  for (const char* group :
       {"s4", "S5", "", "z", "z1", "z0", "z07", "z-3", "z5x", "z4097", "z99999999999999999999"}) {
    BOOST_TEST(make.refusal({{"group", group}}) ==
               text("task words: option group: expected s2, s3, a5, s5 or z2 to z4096, got \"",
                    group, "\""));
  }
  BOOST_TEST(make.refusal({{"min", "9"}, {"max", "8"}}) ==
             "task words: option min: expected at most 8, the value of option \"max\", got 9");
  for (const char* group : {"a5", "z3"}) {
    BOOST_TEST(make.refusal({{"group", group}, {"moves", "swaps"}}) ==
               text("task words: option moves: expected \"all\", because no element of the group ",
                    group, " exchanges two points, got \"swaps\""));
  }
  BOOST_TEST(make.refusal({{"max", "0"}}) ==
             "task words: option max: expected a whole number from 1 to 1048576, got \"0\"");
  BOOST_TEST(make.refusal({{"asked", "first"}}) ==
             "task words: option asked: expected all or last, got \"first\"");
  BOOST_TEST(make.refusal({{"max", "600000"}}, "4x") ==
             "task words: option max: expected a whole number from 1 to 262144, got \"600000\" "
             "(distribution 4x)");
}

BOOST_AUTO_TEST_SUITE_END()
