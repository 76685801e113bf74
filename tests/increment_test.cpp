#include "tasks/increment.h"

#include "tests/check.h"

#include "core/error.h"
#include "tests/chi_square.h"
#include "tests/make_task.h"

BOOST_AUTO_TEST_SUITE(increment_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

constexpr TaskMaker make{increment};

/// The digits of the number that a sample increments, in the order of the tokens.
std::vector<std::int32_t> digits_of(const Sample& sample) {
  return {sample.tokens.begin(), sample.tokens.begin() + sample.asked.front()};
}

/// Draws samples until one increments `number`. Returns its answer for the output head with index
/// `head`.
std::string made_of(const Task& task, int head, const std::string& number) {
  for (std::uint32_t index = 0; index < 200'000; ++index) {
    const Sample sample = draw(task, index, head);
    const std::string text = task.vocabulary().decode(sample.tokens);
    if (text.starts_with(number + " ⊥ ")) return text.substr(number.size() + 5);
  }
  return "never made";
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_printed_examples_are_made) {
  const auto task = make({{"length", "3"}, {"hint", "carry"}});
  BOOST_TEST(made_of(*task, 0, "1 2 3") == "4 2 1");
  BOOST_TEST(made_of(*task, 1, "1 2 3") == "4 ↑ 0 2 ↑ 0 1 ↑ 0");
  BOOST_TEST(made_of(*task, 1, "1 2 9") == "0 ↑ 1 3 ↑ 0 1 ↑ 0");
  BOOST_TEST(task->vocabulary().size() == 14);
}

BOOST_AUTO_TEST_CASE(incrementing_all_nines_adds_a_digit) {
  const auto task = make({{"nines", "1"}, {"hint", "carry"}});
  BOOST_TEST(made_of(*task, 0, "9 9") == "0 0 1");
  BOOST_TEST(made_of(*task, 1, "9 9") == "0 ↑ 1 0 ↑ 1 1 ↑ 0");
  BOOST_TEST(task->answer("9 9 9 ⊥") == " 0 0 0 1");
  BOOST_TEST(task->check("9 9 9 ⊥", "0 0 0").value() == "expected 4 tokens, got 3");
  BOOST_TEST(!task->check("9 9 9 ⊥", "0 0 0 1").has_value());
  bool longest = false;
  for (std::uint32_t index = 0; index < 2000; ++index) {
    const Sample sample = draw(*task, index, 1);
    BOOST_REQUIRE(static_cast<std::int64_t>(sample.tokens.size()) <= task->longest());
    longest = longest || static_cast<std::int64_t>(sample.tokens.size()) == task->longest();
    BOOST_REQUIRE(sample.asked.size() + sample.asked.front() + 1 == sample.tokens.size());
  }
  BOOST_TEST(longest);
}

BOOST_AUTO_TEST_CASE(the_answer_is_the_next_number) {
  const auto task = make({{"hint", "carry"}});
  const auto value = [](auto first, auto last) {
    std::int64_t number = 0;
    for (; first != last; ++first) number = 10 * number + *first;
    return number;
  };
  for (std::uint32_t index = 0; index < 2000; ++index) {
    const Sample sample = draw(*task, index);
    const auto digits = digits_of(sample);
    const auto answer = std::span(sample.tokens).subspan(digits.size() + 1);
    BOOST_REQUIRE(value(answer.rbegin(), answer.rend()) == value(digits.begin(), digits.end()) + 1);
    BOOST_REQUIRE(answer.back() != 0);

    // The sample for output head 1 (the hint) is drawn with the same random numbers as the sample
    // for output head 0. The number to be incremented is therefore the same in both samples.
    const Sample hint = draw(*task, index, 1);
    std::vector<std::int32_t> without;
    const auto with = std::span(hint.tokens).subspan(digits.size() + 1);
    for (std::size_t i = 0; i < with.size(); i += 3) {
      without.push_back(with[i]);
      BOOST_REQUIRE(with[i + 1] == task->vocabulary().at("↑"));
      // The carry out of a place is 1 if and only if the digit of that place was 9 and became 0.
      BOOST_REQUIRE(with[i + 2] == (without.size() <= digits.size() && with[i] == 0 &&
                                    digits[digits.size() - without.size()] == 9));
    }
    BOOST_REQUIRE(std::ranges::equal(answer, without));
  }
}

BOOST_AUTO_TEST_CASE(answers_from_a_file_are_checked) {
  const auto task = make({{"hint", "carry"}});
  const auto reason = [&](int head, std::string_view prompt, std::string_view answer) {
    return task->check(prompt, answer, head).value_or("right");
  };
  BOOST_TEST(reason(0, "1 2 3 ⊥", "4 2 1") == "right");
  BOOST_TEST(reason(0, "1 2 3 ⊥", "1 2 4") == "token 1: expected 4, got 1");
  BOOST_TEST(reason(0, "1 9 9 ⊥", "0 0 2 1") == "expected 3 tokens, got 4");
  BOOST_TEST(reason(1, "1 2 3 ⊥", "4 ↑ 0 2 ↑ 0 1 ↑ 0") == "right");
  BOOST_TEST(reason(1, "1 2 3 ⊥", "4 ↑ 1 2 ↑ 0 1 ↑ 0") == "token 3: expected 0, got 1");
  BOOST_TEST(reason(1, "1 2 3 ⊥", "4 2 1") == "token 2: expected ↑, got 2");
  BOOST_TEST(reason(0, "0 1 ⊥", "2 0") == "expected a first digit from 1 to 9, got 0");
  BOOST_TEST(reason(0, "1 2", "2 2") == "expected digits and ⊥, got \"1 2\"");
  BOOST_TEST(reason(0, "⊥", "1") == "expected digits and ⊥, got \"⊥\"");
  BOOST_TEST(reason(0, "1 ↑ ⊥", "1") == "expected digits and ⊥, got \"1 ↑ ⊥\"");
  BOOST_TEST(reason(0, "12 ⊥", "3 1") ==
             "text: no token of the vocabulary matches at character 1: \"12 ⊥\"");
  BOOST_CHECK_THROW(task->answer("", 0), Error);
}

BOOST_AUTO_TEST_CASE(lengths_and_digits_follow_the_training_mix) {
  const auto task = make({{"nines", "0"}});
  std::vector<double> lengths(9), first(9), other(10);
  for (std::uint32_t index = 0; index < 20'000; ++index) {
    const auto digits = digits_of(draw(*task, index));
    lengths.at(digits.size() - 2) += 1;
    first.at(static_cast<std::size_t>(digits[0]) - 1) += 1;
    for (std::size_t i = 1; i < digits.size(); ++i) {
      other.at(static_cast<std::size_t>(digits[i])) += 1;
    }
  }
  std::vector<double> weights(9, 0.2 / 6);
  std::fill_n(weights.begin(), 3, 0.8 / 3);
  BOOST_TEST(chi_square_p(lengths, weights) > 1e-3);
  BOOST_TEST(chi_square_p(first) > 1e-3);
  BOOST_TEST(chi_square_p(other) > 1e-3);
}

BOOST_AUTO_TEST_CASE(the_specified_share_of_numbers_ends_with_nines) {
  const auto task = make();
  std::vector<double> nines(4), expected(4);
  double numbers = 0;
  for (std::uint32_t index = 0; index < 40'000; ++index) {
    const auto digits = digits_of(draw(*task, index));
    if (digits.size() != 3) continue;
    const auto end = std::find_if(digits.rbegin(), digits.rend(), [](int d) { return d != 9; });
    nines.at(static_cast<std::size_t>(end - digits.rbegin())) += 1;
    numbers += 1;
  }
  // Expected shares of the numbers with three digits that end in k nines. With probability 0.9, the
  // digits are drawn uniformly (`chance`). Otherwise the last 1, 2 or 3 digits are set to 9 as well
  // (`set`).
  const double chance[4] = {0.9, 0.09, 0.01 * 8 / 9, 0.01 / 9};
  const double set[4] = {0, 0.9, 0.1 * 8 / 9 + 8.0 / 9, 0.1 / 9 + 1.0 / 9 + 1};
  for (std::size_t k = 0; k < 4; ++k) expected[k] = numbers * (0.9 * chance[k] + 0.1 * set[k] / 3);
  BOOST_TEST(chi_square_p(nines, expected) > 1e-3);

  const auto test = make({{"nines", "1"}}, "length-15");
  int ends = 0;
  for (std::uint32_t index = 0; index < 1000; ++index) {
    const auto digits = digits_of(draw(*test, index));
    BOOST_REQUIRE(digits.size() == 15u);
    ends += digits.back() == 9;
  }
  // The test set length-15 draws all digits uniformly, so about a tenth of its numbers end in 9.
  BOOST_TEST(ends < 200);
}

BOOST_AUTO_TEST_CASE(the_reference_of_an_answer_is_its_digit) {
  const auto task = make({{"length", "3"}, {"hint", "carry"}});
  const Sample sample = draw(*task, 0);
  const auto rows = task->reference(sample);
  BOOST_TEST(rows.at(0).columns == (std::vector<std::int32_t>{2}));
  BOOST_TEST(rows.at(2).columns == (std::vector<std::int32_t>{0, 1, 2}));
  const auto hint = task->reference(draw(*task, 0, 1));
  // Positions 0 to 2 are the digits of the number, and position 3 is ⊥. Then three tokens follow
  // for each digit of the answer: the digit (position 4), ↑ (5) and the carry (6).
  BOOST_TEST(hint.at(0).row == 3);
  BOOST_TEST(hint.at(0).columns == (std::vector<std::int32_t>{2}));
  BOOST_TEST(hint.at(1).columns == (std::vector<std::int32_t>{4}));
  BOOST_TEST(hint.at(2).columns == (std::vector<std::int32_t>{2}));
  BOOST_TEST(hint.at(3).columns == (std::vector<std::int32_t>{1, 6}));
  BOOST_TEST(hint.at(5).columns == (std::vector<std::int32_t>{1, 6}));
}

BOOST_AUTO_TEST_SUITE_END()
