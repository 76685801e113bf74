#include "tasks/sorting.h"

#include <map>
#include "tests/check.h"

#include "core/error.h"
#include "tests/chi_square.h"
#include "tests/make_task.h"

BOOST_AUTO_TEST_SUITE(sorting_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

using Numbers = std::vector<std::int32_t>;

constexpr TaskMaker make{sorting};

/// The numbers of a sample before its first ⊥.
Numbers input_of(const Task& task, const Sample& sample) {
  const auto mark = std::ranges::find(sample.tokens, task.vocabulary().at("⊥"));
  return {sample.tokens.begin(), mark};
}

/// Draws samples until one has this text, and returns its mask: 1 where the loss is scored.
std::string mask_of(const Task& task, int head, const std::string& text) {
  for (std::uint32_t index = 0; index < 200'000; ++index) {
    const Sample sample = draw(task, index, head);
    if (task.vocabulary().decode(sample.tokens) != text) continue;
    std::string mask;
    for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
      mask += sample.targets[i] == Sample::not_counted ? '0' : '1';
      if (sample.targets[i] != Sample::not_counted) {
        BOOST_TEST(sample.targets[i] == sample.tokens.at(i + 1));
      }
    }
    return mask;
  }
  return "never made";
}

std::map<std::int32_t, std::int64_t> times(const Numbers& numbers) {
  std::map<std::int32_t, std::int64_t> count;
  for (const std::int32_t number : numbers) ++count[number];
  return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_printed_examples_are_made_with_their_masks) {
  const auto of_length = [](const char* length, const char* hint) {
    return make({{"numbers", "5"}, {"length", length}, {"hint", hint}});
  };
  const auto five = of_length("5", "successor");
  BOOST_TEST(mask_of(*five, 0, "5 3 1 4 2 ⊥ 1 2 3 4 5") == "00000111110");
  BOOST_TEST(mask_of(*five, 1, "5 3 1 4 2 ⊥ 4 5") == "00000010");
  BOOST_TEST(mask_of(*of_length("8", "count"), 1, "5 5 5 4 5 ⊥ 4") == "0000010");
  // The paper's mask also includes two padding tokens, which are never scored.
  BOOST_TEST(mask_of(*of_length("6", "fill"), 1, "5 5 5 ⊥ 5 ⊥ 5 5") == "00000110");
}

BOOST_AUTO_TEST_CASE(tokens_are_numbered_as_in_the_paper) {
  const auto task = make();
  BOOST_TEST(task->vocabulary().size() == 103);
  BOOST_TEST(task->vocabulary().encode("5 5 5 4 5 ⊥ 4") == (Numbers{5, 5, 5, 4, 5, 101, 4}));
  BOOST_TEST(task->vocabulary().encode("1 100") == (Numbers{1, 100}));
}

BOOST_AUTO_TEST_CASE(output_heads_depend_on_the_hint) {
  const auto names = [](const char* hint) {
    const auto task = make({{"hint", hint}});
    std::string all;
    for (int head = 0; head < task->heads(); ++head) all += text(' ', task->head_name(head));
    return all;
  };
  BOOST_TEST(names("none") == " sort");
  BOOST_TEST(names("successor") == " sort successor");
  BOOST_TEST(names("count") == " sort count");
  BOOST_TEST(names("fill") == " sort fill");
  BOOST_TEST(names("all") == " sort successor count fill");
  for (int head = 0; head < 4; ++head) {
    BOOST_TEST(draw(*make({{"hint", "all"}}), 0, head).head == head);
  }
}

BOOST_AUTO_TEST_CASE(answers_from_a_file_are_checked) {
  const auto task = make({{"hint", "all"}});
  const auto reason = [&](int head, std::string_view prompt, std::string_view answer) {
    return task->check(prompt, answer, head).value_or("right");
  };
  BOOST_TEST(task->answer("5 3 1 4 2 ⊥") == " 1 2 3 4 5");
  BOOST_TEST(reason(0, "5 3 1 4 2 ⊥", "1 2 3 4 5") == "right");
  BOOST_TEST(reason(0, "7 7 3 ⊥", "3 7 7") == "right");
  BOOST_TEST(reason(0, "7 7 3 ⊥", "3 7") == "expected 3 numbers, got 2");
  BOOST_TEST(reason(0, "7 7 3 ⊥", "3 3 7") == "number 2: expected 7, got 3");
  BOOST_TEST(reason(0, "7 7 3 ⊥", "3 7 7 7") == "expected 3 numbers, got 4");
  BOOST_TEST(reason(0, "7 7 3 ⊥", "3 7 ⊥") == "number 3: expected 7, got ⊥");
  BOOST_TEST(reason(0, "7 7 3", "3 7 7") == "expected numbers in the form a b c ⊥, got \"7 7 3\"");
  BOOST_TEST(reason(0, "7 ⊥ 3", "3 7") == "expected numbers in the form a b c ⊥, got \"7 ⊥ 3\"");
  BOOST_TEST(reason(0, "⊥", "") == "expected numbers before ⊥, got none");
  BOOST_TEST(reason(0, "0 3 ⊥", "0 3") == "expected numbers from 1 to 100, got \"0\"");
  BOOST_TEST(reason(0, "101 ⊥", "101") ==
             "text: no token of the vocabulary matches at character 1: \"101 ⊥\"");
  BOOST_TEST(reason(0, "", "") == "expected numbers in the form a b c ⊥, got \"\"");

  BOOST_TEST(task->answer("5 3 1 4 2 ⊥ 4", 1) == " 5");
  BOOST_TEST(reason(1, "5 3 3 ⊥ 3", "5") == "right");
  BOOST_TEST(reason(1, "5 3 3 ⊥ 3", "3") == "number 1: expected 5, got 3");
  BOOST_TEST(reason(1, "5 3 3 ⊥ 5", "5") == "5 has no successor");
  BOOST_TEST(reason(1, "5 3 3 ⊥ 4", "5") == "expected a number of the input after ⊥, got 4");
  BOOST_TEST(reason(1, "5 3 ⊥ 3 3", "5") == "expected one number after ⊥, got 2");
  BOOST_TEST(reason(1, "5 3 ⊥", "5") == "expected numbers in the form a b c ⊥ a, got \"5 3 ⊥\"");

  BOOST_TEST(task->answer("5 5 5 4 5 ⊥", 2) == " 4");
  BOOST_TEST(task->answer("4 4 5 ⊥", 2) == " 5");
  // Both numbers occur equally often, so the smaller one is the answer.
  BOOST_TEST(task->answer("5 4 ⊥", 2) == " 4");
  BOOST_TEST(reason(2, "5 4 3 ⊥", "3") == "expected two different numbers to count, got 3");
  BOOST_TEST(reason(2, "5 5 ⊥", "5") == "expected two different numbers to count, got 1");

  BOOST_TEST(task->answer("5 5 5 ⊥ 5 ⊥", 3) == " 5 5");
  BOOST_TEST(task->answer("5 ⊥ ⊥", 3) == " 5");
  BOOST_TEST(reason(3, "5 5 5 ⊥ 5 ⊥", "5 5 5") == "expected 2 numbers, got 3");
  BOOST_TEST(reason(3, "5 5 4 ⊥ 5 ⊥", "5 4") == "expected one number to repeat, got 2");
  const std::string beginning =
      "expected only the same number between the two ⊥, fewer times than before the first ⊥";
  BOOST_TEST(reason(3, "5 5 ⊥ 5 5 ⊥", "") == beginning);
  BOOST_TEST(reason(3, "5 5 ⊥ 4 ⊥", "5") == beginning);
  BOOST_CHECK_THROW(task->answer("5 5", 3), Error);
}

BOOST_AUTO_TEST_CASE(with_option_copy_the_successor_of_a_repeated_number_is_its_copy) {
  const auto copy = make({{"hint", "successor"}, {"successor", "copy"}});
  const auto reason = [&](std::string_view prompt, std::string_view answer) {
    return copy->check(prompt, answer, 1).value_or("right");
  };
  BOOST_TEST(copy->answer("5 3 3 ⊥ 3", 1) == " 3");
  BOOST_TEST(copy->answer("5 3 1 ⊥ 3", 1) == " 5");
  BOOST_TEST(copy->answer("5 3 5 ⊥ 5", 1) == " 5");
  BOOST_TEST(reason("5 3 3 ⊥ 3", "5") == "number 1: expected 3, got 5");
  BOOST_TEST(reason("5 3 3 ⊥ 5", "5") == "5 has no successor");

  // If all numbers are equal, none of them has a successor, unless the option `successor` is
  // `copy`.
  BOOST_CHECK_NO_THROW(
      draw(*make({{"hint", "successor"}, {"successor", "copy"}, {"length", "4"}, {"repeat", "4"}}),
           0, 1));
  BOOST_CHECK_THROW(draw(*make({{"hint", "successor"}, {"length", "4"}, {"repeat", "4"}}), 0, 1),
                    Error);

  // The same inputs are drawn for both values of the option `successor`. The answers are equal if
  // the given number occurs only once in the input.
  const auto greater = make({{"hint", "successor"}, {"repetition", "0.1"}});
  const auto other = make({{"hint", "successor"}, {"successor", "copy"}, {"repetition", "0.1"}});
  std::int64_t copies = 0;
  for (std::uint32_t index = 0; index < 5000; ++index) {
    const Sample a = draw(*greater, index, 1), b = draw(*other, index, 1);
    const Numbers input = input_of(*other, b);
    const std::int32_t number = b.tokens.at(b.tokens.size() - 2), answer = b.tokens.back();
    if (std::ranges::count(input, number) > 1) {
      BOOST_TEST(answer == number);
      ++copies;
    } else {
      BOOST_TEST(answer > number);
    }
    if (a.tokens.size() == b.tokens.size() && a.tokens.at(a.tokens.size() - 2) == number &&
        std::ranges::count(input, number) == 1) {
      BOOST_TEST((a.tokens == b.tokens));
    }
  }
  BOOST_TEST(copies > 200);
}

BOOST_AUTO_TEST_CASE(lengths_follow_the_training_mix_on_every_head) {
  const auto task = make({{"hint", "successor"}});
  std::vector<double> weights(19, 0.2 / 15);
  std::fill_n(weights.begin(), 4, 0.2);
  for (const int head : {0, 1}) {
    std::vector<double> lengths(19);
    for (std::uint32_t index = 0; index < 20'000; ++index) {
      lengths.at(input_of(*task, draw(*task, index, head)).size() - 2) += 1;
    }
    BOOST_TEST(chi_square_p(lengths, weights) > 1e-3);
  }
}

BOOST_AUTO_TEST_CASE(numbers_are_uniform_with_replacement) {
  const auto task = make();
  std::vector<double> numbers(100);
  double equal = 0;
  double pairs = 0;
  for (std::uint32_t index = 0; index < 20'000; ++index) {
    const Numbers input = input_of(*task, draw(*task, index));
    for (const std::int32_t number : input) numbers.at(static_cast<std::size_t>(number) - 1) += 1;
    equal += input[0] == input[1];
    pairs += 1;
  }
  BOOST_TEST(chi_square_p(numbers) > 1e-3);
  const std::vector<double> repeats{equal, pairs - equal};
  const std::vector<double> expected{1, 99};
  BOOST_TEST(chi_square_p(repeats, expected) > 1e-3);
}

BOOST_AUTO_TEST_CASE(the_specified_share_of_inputs_has_few_distinct_numbers) {
  const auto always = make({{"repetition", "1"}});
  // few[d - 1] counts the inputs of length 4 with d distinct numbers.
  std::vector<double> few(2);
  for (std::uint32_t index = 0; index < 20'000; ++index) {
    const Numbers input = input_of(*always, draw(*always, index));
    const std::size_t distinct = times(input).size();
    BOOST_REQUIRE(distinct <= std::max<std::size_t>(1, input.size() / 2));
    if (input.size() == 4) few.at(distinct - 1) += 1;
  }
  // With two numbers, 16 inputs of length 4 are possible. 2 of them have only one distinct number,
  // 14 have two.
  const std::vector<double> expected{1, 7};
  BOOST_TEST(chi_square_p(few, expected) > 1e-3);

  // A tenth of the inputs has few distinct numbers. With length 2, this means that both numbers are
  // equal. In other inputs, two numbers from 1 to 100 are equal with the probability 1/100.
  const auto tenth = make({{"repetition", "0.1"}});
  std::vector<double> same(2);
  for (std::uint32_t index = 0; index < 20'000; ++index) {
    const Numbers input = input_of(*tenth, draw(*tenth, index));
    if (input.size() == 2) same.at(input[0] == input[1]) += 1;
  }
  const double share = 0.1 + 0.9 / 100;
  BOOST_TEST(chi_square_p(same, std::vector<double>{1 - share, share}) > 1e-3);
  BOOST_TEST(times(input_of(*tenth, draw(*make({{"repetition", "1"}}, "length-100"), 0))).size() >
             // The option `repetition` does not apply to test inputs of a single length. Their 100
             // numbers are drawn uniformly from 1 to 100, so more than 50 of them are different.
             50u);
}

BOOST_AUTO_TEST_CASE(the_option_repeat_repeats_distinct_numbers) {
  for (const auto& [length, repeat] :
       {std::pair<std::int64_t, std::int64_t>{100, 3}, {100, 2}, {20, 5}, {7, 7}, {11, 4}}) {
    const auto task = make({{"length", text(length)}, {"repeat", text(repeat)}});
    for (std::uint32_t index = 0; index < 50; ++index) {
      const Numbers input = input_of(*task, draw(*task, index));
      BOOST_REQUIRE(std::ssize(input) == length);
      // With n = length / repeat, rounded down, n different numbers occur at least `repeat` times
      // in each input. Fewer than `repeat` other places remain.
      std::int64_t repeated = 0;
      for (const auto& [number, count] : times(input)) repeated += count >= repeat;
      BOOST_REQUIRE(repeated == length / repeat);
    }
  }
  // The choice of numbers and of their places is uniform.
  const auto task = make({{"length", "4"}, {"repeat", "2"}});
  std::vector<double> numbers(100), orders(3);
  for (std::uint32_t index = 0; index < 10'000; ++index) {
    const Numbers input = input_of(*task, draw(*task, index));
    numbers.at(static_cast<std::size_t>(input[0]) - 1) += 1;
    orders.at(input[0] == input[1] ? 0 : input[0] == input[2] ? 1 : 2) += 1;
  }
  BOOST_TEST(chi_square_p(numbers) > 1e-3);
  BOOST_TEST(chi_square_p(orders) > 1e-3);
}

BOOST_AUTO_TEST_CASE(the_given_number_of_the_successor_hint_is_picked_by_position) {
  const auto task = make({{"hint", "successor"}, {"length", "3"}, {"numbers", "2"}});
  const auto three = make({{"hint", "successor"}, {"length", "4"}, {"numbers", "3"}});
  // Counts how often 1 and 2 are picked from the input 1 1 2 3. The number 1 must be picked twice
  // as often as 2.
  std::vector<double> picked(2);
  for (std::uint32_t index = 0; index < 40'000; ++index) {
    const Sample small = draw(*task, index, 1);
    BOOST_REQUIRE(times(input_of(*task, small)).size() == 2u);
    BOOST_REQUIRE(task->vocabulary().decode(std::span(small.tokens).subspan(3)) == "⊥ 1 2");

    const Sample sample = draw(*three, index, 1);
    if (times(input_of(*three, sample)) ==
        std::map<std::int32_t, std::int64_t>{{1, 2}, {2, 1}, {3, 1}}) {
      picked.at(static_cast<std::size_t>(sample.tokens[5]) - 1) += 1;
    }
  }
  BOOST_TEST(chi_square_p(picked, std::vector<double>{2, 1}) > 1e-3);
  const auto equal = make({{"hint", "successor"}, {"length", "4"}, {"repeat", "4"}});
  BOOST_CHECK_THROW(draw(*equal, 0, 1), Error);
}

BOOST_AUTO_TEST_CASE(counts_differ_by_up_to_five) {
  const auto task = make({{"hint", "count"}, {"length", "15"}});
  std::vector<double> fewer(6), smaller(2);
  for (std::uint32_t index = 0; index < 10'000; ++index) {
    const Sample sample = draw(*task, index, 1);
    const auto counts = times(input_of(*task, sample));
    BOOST_REQUIRE(counts.size() == 2u);
    const auto [low, often_low] = *counts.begin();
    const auto [high, often_high] = *counts.rbegin();
    BOOST_REQUIRE(std::max(often_low, often_high) == 7);
    const std::int64_t difference = std::abs(often_low - often_high);
    fewer.at(static_cast<std::size_t>(difference)) += 1;
    const std::int32_t rarer = often_high < often_low ? high : low;
    BOOST_REQUIRE(sample.tokens.back() == rarer);
    if (difference > 0) smaller.at(rarer == low) += 1;
  }
  BOOST_TEST(chi_square_p(fewer, std::vector<double>{5, 1, 1, 1, 1, 1}) > 1e-3);
  BOOST_TEST(chi_square_p(smaller) > 1e-3);
  const auto tiny = make({{"hint", "count"}, {"length", "3"}});
  // The task asks for the less frequent of two numbers. In an input of length 3, each number
  // occurs 3 / 2 = 1 time, rounded down. Such a tie is allowed.
  BOOST_TEST(input_of(*tiny, draw(*tiny, 0, 1)).size() == 2u);
}

BOOST_AUTO_TEST_CASE(lengths_in_the_fill_hint_are_uniform) {
  const auto task = make({{"hint", "fill"}, {"length", "7"}});
  // A sample contains a number r times (1 to 3) before the first ⊥ and s < r times before the
  // second ⊥. The count of such samples is shapes[3 (r - 1) + s].
  std::vector<double> shapes(9);
  for (std::uint32_t index = 0; index < 10'000; ++index) {
    const Sample sample = draw(*task, index, 1);
    const std::size_t repeated = input_of(*task, sample).size();
    shapes.at((repeated - 1) * 3 + repeated - sample.asked.size()) += 1;
  }
  const std::vector<double> seen{shapes[0], shapes[3], shapes[4], shapes[6], shapes[7], shapes[8]};
  BOOST_TEST(chi_square_p(seen, std::vector<double>{6, 3, 3, 2, 2, 2}) > 1e-3);
}

BOOST_AUTO_TEST_CASE(edit_distance_is_the_minimum_number_of_changes) {
  const auto task = make({{"numbers", "9"}, {"length", "5"}});
  Sample sample{.tokens = task->vocabulary().encode("5 3 1 4 2 ⊥ 1 2 3 4 5"), .targets = {}};
  sample.targets = {-1, -1, -1, -1, -1, 1, 2, 3, 4, 5, -1};
  sample.asked = {5, 6, 7, 8, 9};
  const auto score = [&](std::string_view said) {
    Tally tally;
    task->score(sample, task->vocabulary().encode(said), tally);
    return tally;
  };
  BOOST_TEST(score("1 2 3 4 5").at("edit-distance").mean() == 0);
  BOOST_TEST(score("1 2 3 4 5").at("sequences").mean() == 1);
  BOOST_TEST(score("1 2 2 4 5").at("edit-distance").mean() == 1);
  // The distance is 2: 3 is removed and 5 is inserted.
  BOOST_TEST(score("1 2 4 5 5").at("edit-distance").mean() == 2);
  BOOST_TEST(score("2 3 4 5 9").at("edit-distance").mean() == 2);
  BOOST_TEST(score("9 9 9 9 9").at("edit-distance").mean() == 5);
  BOOST_TEST(score("1 2 4 5 5").at("tokens").mean() == 0.6);
  BOOST_TEST(score("1 2 4 5 5").at("sequences").mean() == 0);
}

BOOST_AUTO_TEST_CASE(the_reference_of_an_answer_is_the_place_of_its_number) {
  const auto task = make({{"hint", "all"}, {"length", "8"}, {"numbers", "5"}});
  for (std::uint32_t index = 0; index < 20; ++index) {
    const Sample sample = draw(*task, index);
    const Numbers input = input_of(*task, sample);
    for (const ReferenceRow& row : task->reference(sample)) {
      const std::int32_t number = sample.targets.at(static_cast<std::size_t>(row.row));
      BOOST_TEST(std::ranges::count(input, number) == std::ssize(row.columns));
    }
    const Sample count = draw(*task, index, 2);
    BOOST_TEST(task->reference(count).at(0).columns.size() == input_of(*task, count).size());
  }
}

BOOST_AUTO_TEST_CASE(options_that_do_not_fit_are_refused) {
  BOOST_CHECK_THROW(make({{"length", "1"}}), Error);
  BOOST_CHECK_THROW(make({{"repeat", "2"}}), Error);
  BOOST_CHECK_THROW(make({{"repeat", "5"}, {"length", "4"}}), Error);
  BOOST_CHECK_THROW(make({{"repeat", "1"}, {"length", "101"}}), Error);
  BOOST_CHECK_THROW(make({{"long", "5"}}), Error);
  BOOST_CHECK_THROW(make({{"hint", "both"}}), Error);
  BOOST_TEST(make()->longest() == 41);
  BOOST_TEST(make({}, "length-100")->longest() == 201);
}

BOOST_AUTO_TEST_SUITE_END()
