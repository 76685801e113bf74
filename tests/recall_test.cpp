#include "tasks/recall.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include "tests/check.h"

#include "tests/chi_square.h"
#include "tests/make_task.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(recall_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

constexpr TaskMaker make{recall};

std::size_t place(std::int32_t output) { return static_cast<std::size_t>(output); }

/// The probability of drawing these slots in this order without replacement. Slots are the pairs of
/// tokens in which a key can be queried. Slot x = 0, 1, ... has the weight (x + 1)^-exponent.
double probability(const std::vector<std::size_t>& drawn, std::size_t slots, double exponent) {
  std::vector<double> weights;
  for (std::size_t x = 1; x <= slots; ++x) {
    weights.push_back(std::pow(static_cast<double>(x), -exponent));
  }
  double all = 1;
  for (const std::size_t x : drawn) {
    all *= weights[x] / std::accumulate(weights.begin(), weights.end(), 0.0);
    weights[x] = 0;
  }
  return all;
}

double fairness(const auto& counted, std::size_t cells) {
  std::vector<double> counts;
  for (const auto& [key, count] : counted) counts.push_back(count);
  BOOST_TEST(counts.size() == cells);
  return chi_square_p(counts);
}

}  // namespace

// Finds out from the tokens of each sample which keys are queried and which values they have.
BOOST_AUTO_TEST_CASE(each_key_is_queried_once_and_its_value_is_the_target) {
  struct Form {
    std::size_t tokens, keys, repeats, back;
    std::int32_t vocabulary;
  };
  for (const Form& form : {Form{64, 8, 1, 1, 8192},
                           {128, 32, 1, 1, 8192},
                           {40, 3, 1, 1, 9},
                           {96, 8, 4, 1, 128},
                           {96, 8, 4, 3, 128},
                           {768, 32, 4, 4, 8192}}) {
    const auto task = make({{"tokens", text(form.tokens)},
                            {"pairs", text(form.keys)},
                            {"repeats", text(form.repeats)},
                            {"back", text(form.back)},
                            {"vocabulary", text(form.vocabulary)}});
    for (std::uint32_t index = 0; index < 20; ++index) {
      const Sample sample = draw(*task, index);
      BOOST_REQUIRE_EQUAL(sample.tokens.size(), form.tokens);
      std::map<std::int32_t, std::vector<std::int32_t>> values;
      std::set<std::int32_t> distinct;
      const std::size_t table = 2 * form.keys * form.repeats;
      for (std::size_t i = 0; i < table; i += 2) {
        const std::int32_t key = sample.tokens[i], value = sample.tokens[i + 1];
        BOOST_REQUIRE((key >= 1 && key < form.vocabulary / 2));
        BOOST_REQUIRE((value >= form.vocabulary / 2 && value < form.vocabulary));
        BOOST_REQUIRE(distinct.insert(value).second);
        values[key].push_back(value);
      }
      BOOST_REQUIRE_EQUAL(values.size(), form.keys);
      BOOST_REQUIRE_EQUAL(sample.asked.size(), form.keys);
      std::set<std::int32_t> asked;
      for (const std::int32_t output : sample.asked) {
        BOOST_REQUIRE((place(output) >= table && output % 2 == 0));
        const std::int32_t key = sample.tokens[place(output)];
        BOOST_REQUIRE(asked.insert(key).second);
        const auto& given = values.at(key);
        BOOST_REQUIRE_EQUAL(given.size(), form.repeats);
        BOOST_REQUIRE_EQUAL(sample.targets[place(output)], given[form.repeats - form.back]);
      }
      BOOST_REQUIRE_EQUAL(std::ranges::count(sample.targets, Sample::not_counted),
                          std::ssize(sample.targets) - std::ssize(asked));
    }
  }
}

BOOST_AUTO_TEST_CASE(keys_values_and_other_tokens_are_uniform) {
  const auto task = make({{"tokens", "14"}, {"pairs", "2"}, {"vocabulary", "12"}});
  std::map<std::pair<std::int32_t, std::int32_t>, double> keys, values;
  std::map<std::int32_t, double> other, first_other;
  for (std::uint32_t index = 0; index < 6000; ++index) {
    const Sample sample = draw(*task, index);
    ++keys[{sample.tokens[0], sample.tokens[2]}];
    ++values[{sample.tokens[1], sample.tokens[3]}];
    for (std::int32_t i = 4; i < 14; ++i) {
      if (std::ranges::count(sample.asked, i) > 0) continue;
      ++(i % 2 == 0 ? first_other : other)[sample.tokens[place(i)]];
    }
  }
  BOOST_TEST(fairness(keys, 5 * 4) > 1e-3);
  BOOST_TEST(fairness(values, 6 * 5) > 1e-3);
  BOOST_TEST(fairness(other, 12) > 1e-3);
  BOOST_TEST(fairness(first_other, 12) > 1e-3);
}

// Counts in which slots (pairs of tokens after the table of keys and values) the three keys of a
// sample are queried. There are 60 ordered choices of 3 of the 5 slots.
BOOST_AUTO_TEST_CASE(slots_are_drawn_without_replacement_by_a_power_law) {
  const auto task = make({{"tokens", "16"}, {"pairs", "3"}, {"vocabulary", "32"}});
  std::map<std::vector<std::size_t>, double> counted;
  for (std::uint32_t index = 0; index < 20'000; ++index) {
    const Sample sample = draw(*task, index);
    std::vector<std::size_t> slots;
    for (const std::size_t key : {0u, 2u, 4u}) {
      const auto found = std::ranges::find_if(sample.asked, [&](std::int32_t output) {
        return sample.tokens[place(output)] == sample.tokens[key];
      });
      slots.push_back(place(*found - 6) / 2);
    }
    ++counted[slots];
  }
  std::vector<double> counts, expected, flatter;
  double all = 0;
  for (const auto& [slots, count] : counted) {
    counts.push_back(count);
    expected.push_back(probability(slots, 5, 0.99));
    flatter.push_back(probability(slots, 5, 0.9));
    all += expected.back();
  }
  BOOST_TEST(counts.size() == 60u);
  BOOST_TEST(std::abs(all - 1) < 1e-12);
  BOOST_TEST(chi_square_p(counts, expected) > 1e-3);
  // A power law with the similar exponent 0.9 must be rejected.
  BOOST_TEST(chi_square_p(counts, flatter) < 1e-6);
}

BOOST_AUTO_TEST_CASE(the_first_keys_slot_follows_the_power_law) {
  const auto task = make({{"tokens", "256"}, {"pairs", "32"}});
  std::vector<double> counts(96), expected;
  for (std::uint32_t index = 0; index < 6000; ++index) {
    const Sample sample = draw(*task, index);
    for (const std::int32_t output : sample.asked) {
      if (sample.tokens[place(output)] == sample.tokens[0]) ++counts[place(output - 64) / 2];
    }
  }
  for (std::size_t x = 0; x < counts.size(); ++x) expected.push_back(probability({x}, 96, 0.99));
  BOOST_TEST(chi_square_p(counts, expected) > 1e-3);
}

BOOST_AUTO_TEST_CASE(repeated_keys_are_in_any_order) {
  const auto task = make({{"tokens", "16"}, {"pairs", "2"}, {"repeats", "2"}, {"back", "2"}});
  std::map<std::string, double> orders;
  for (std::uint32_t index = 0; index < 3000; ++index) {
    const Sample sample = draw(*task, index);
    std::string order;
    for (const std::size_t i : {0u, 2u, 4u, 6u}) {
      order += sample.tokens[i] == sample.tokens[0] ? 'a' : 'b';
    }
    ++orders[order];
  }
  BOOST_TEST(fairness(orders, 3) > 1e-3);  // possible orders of the keys a and b: aabb, abab, abba
}

BOOST_AUTO_TEST_CASE(lengths_are_even_and_have_the_same_density_of_keys) {
  const auto task = make();
  std::map<std::size_t, double> lengths;
  for (std::uint32_t index = 0; index < 3000; ++index) {
    const Sample sample = draw(*task, index);
    ++lengths[sample.tokens.size()];
    BOOST_REQUIRE_EQUAL(sample.asked.size(), sample.tokens.size() / 8);
  }
  BOOST_TEST(lengths.begin()->first == 64u);
  BOOST_TEST(fairness(lengths, 97) > 1e-3);
  for (const auto& [name, tokens] : {std::pair{"2x", 512u}, {"4x", 1024u}, {"8x", 2048u}}) {
    const Sample sample = draw(*make({}, name), 0);
    BOOST_TEST(sample.tokens.size() == tokens);
    BOOST_TEST(sample.asked.size() == tokens / 8);
  }
  // Every sample contains at least one key.
  BOOST_TEST(draw(*make({{"tokens", "4-256"}, {"pairs", "1"}}), 0).asked.size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_reference_of_a_value_is_its_place_in_the_table) {
  const auto task = make({{"tokens", "96"},
                          {"pairs", "8"},
                          // In a small vocabulary, values also occur by chance after the table
                          // of keys and values.
                          {"vocabulary", "60"},
                          {"repeats", "3"},
                          {"back", "2"}});
  for (std::uint32_t index = 0; index < 20; ++index) {
    const Sample sample = draw(*task, index);
    const auto rows = task->reference(sample);
    BOOST_REQUIRE_EQUAL(rows.size(), sample.asked.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      BOOST_TEST(rows[i].row == sample.asked[i]);
      BOOST_REQUIRE_EQUAL(rows[i].columns.size(), 1u);
      const std::size_t at = place(rows[i].columns[0]);
      BOOST_TEST(at < 48u);
      BOOST_TEST(sample.tokens[at] == sample.targets[place(rows[i].row)]);
      BOOST_TEST(sample.tokens[at - 1] == sample.tokens[place(rows[i].row)]);
    }
  }
}

// In the prompt of this test, keys are 1 to 3 and values are 4 to 7. Key 1 has the value 6, key 3
// has the value 4. Key 3 is repeated at place 8, and by chance also at place 12.
BOOST_AUTO_TEST_CASE(answers_from_a_file_are_checked_place_by_place) {
  const auto task = make({{"tokens", "14"}, {"pairs", "2"}, {"vocabulary", "8"}});
  const std::string prompt = "1 6 3 4 2 2 1 0 3 7 0 1 3 3";
  const auto verdict = [&](const std::string& p, const std::string& a) {
    return task->check(p, a).value_or("right");
  };
  BOOST_TEST(task->answer(prompt) == "6:6 8:4 12:4");
  BOOST_TEST(verdict(prompt, "6:6 8:4 12:4") == "right");
  // Key 3 occurs twice after the table of keys and values. An answer at either place is accepted,
  // because the text does not show which place was meant.
  BOOST_TEST(verdict(prompt, " 6:6  8:4 ") == "right");
  BOOST_TEST(verdict(prompt, "6:6 12:4") == "right");
  BOOST_TEST(verdict(prompt, "6:6 8:6") == "place 8: expected 4, got 6");
  BOOST_TEST(verdict(prompt, "6:6 8:4 12:6") == "place 12: expected 4, got 6");
  BOOST_TEST(verdict(prompt, "6:6") == "place 8: expected the value of key 3, got nothing");
  BOOST_TEST(verdict(prompt, "") == "place 6: expected the value of key 1, got nothing");
  BOOST_TEST(verdict(prompt, "8:4 6:6") == "expected ascending places, got place 6 after place 8");
  BOOST_TEST(verdict(prompt, "6:6 6:6 8:4") ==
             "expected ascending places, got place 6 after place 6");
  for (const int other : {0, 4, 7, 10, 11, 13, 14, 100}) {
    BOOST_TEST(verdict(prompt, text("6:6 8:4 ", other, ":4")) ==
               text("place ", other, ": the prompt asks for no value at this place"));
  }
  for (const char* word : {"6", "6:", ":6", "6:x", "6:6:6", "6=6", "6 :6"}) {
    const std::string first = std::string(word).substr(0, std::string(word).find(' '));
    BOOST_TEST(verdict(prompt, word) ==
               text("expected places and values such as 64:5000, got \"", first, "\""));
  }

  const std::string answer = "6:6 8:4";
  BOOST_TEST(verdict("1 6 3 4 2 2 1 0 3 7 0 1", answer) ==
             "expected a prompt with an even number of tokens from 14 to 14, got 12");
  BOOST_TEST(verdict("0 6 3 4 2 2 1 0 3 7 0 1 3 3", answer) ==
             "place 0: expected a key from 1 to 3, got 0");
  BOOST_TEST(verdict("1 6 4 4 2 2 1 0 3 7 0 1 3 3", answer) ==
             "place 2: expected a key from 1 to 3, got 4");
  BOOST_TEST(verdict("1 3 3 4 2 2 1 0 3 7 0 1 3 3", answer) ==
             "place 1: expected a value from 4 to 7, got 3");
  BOOST_TEST(verdict("1 6 3 6 2 2 1 0 3 7 0 1 3 3", answer) ==
             "place 3: expected different values, but value 6 is also at place 1");
  BOOST_TEST(verdict("1 6 1 4 2 2 1 0 3 7 0 1 3 3", answer) == "key 1: expected 1 values, got 2");
  BOOST_TEST(verdict("1 6 3 4 2 2 2 1 3 7 0 1 3 3", answer) ==
             "key 1: expected a slot that begins with this key, but no slot does");
  BOOST_TEST(verdict("1 6 3 4 2 2 1 8 3 7 0 1 3 3", answer) ==
             "text: no token of the vocabulary matches at character 15: \"8 3 7 0 1 3 \"");
  BOOST_CHECK_THROW(task->answer("1 6"), Error);

  const auto repeated = make(
      {{"tokens", "12"}, {"pairs", "2"}, {"vocabulary", "8"}, {"repeats", "2"}, {"back", "2"}});
  BOOST_TEST(repeated->answer("1 6 3 4 1 7 3 5 3 3 1 0") == "8:4 10:6");
  BOOST_TEST(repeated->check("1 6 3 4 1 7 1 5 3 3 1 0", "8:4 10:6").value() ==
             "key 1: expected 2 values, got 3");
}

// In a small vocabulary, keys also occur by chance after the table of keys and values. The text
// form of the answer contains the values of such keys too, but the sample does not score them.
BOOST_AUTO_TEST_CASE(a_key_that_occurs_by_chance_is_not_scored) {
  const auto task = make({{"tokens", "40"}, {"pairs", "3"}, {"vocabulary", "8"}});
  std::size_t by_chance = 0;
  for (std::uint32_t index = 0; index < 50; ++index) {
    const Sample sample = draw(*task, index);
    BOOST_TEST(sample.asked.size() == 3u);
    const auto [prompt, answer] = task->as_text(sample);
    by_chance += static_cast<std::size_t>(std::ranges::count(answer, ':')) - 3;
    std::string asked;
    for (const std::int32_t output : sample.asked) {
      asked += text(output, ':', sample.targets[place(output)], ' ');
    }
    BOOST_TEST(!task->check(prompt, answer).has_value());
    BOOST_TEST(!task->check(prompt, asked).has_value());
    BOOST_TEST(task->answer(prompt) == answer);
  }
  BOOST_TEST(by_chance > 100u);
}

BOOST_AUTO_TEST_CASE(wrong_options_are_refused) {
  const std::string task = "task recall: option ";
  BOOST_TEST(make.refusal({{"pairs", "65"}}) ==
             task + "pairs: expected at most 64, because each key takes 4 of 256 tokens, got 65");
  BOOST_TEST(make.refusal({{"pairs", "64"}}) == "accepted");
  BOOST_TEST(make.refusal({{"pairs", "33"}, {"tokens", "256"}, {"repeats", "3"}}) ==
             task + "pairs: expected at most 32, because each key takes 8 of 256 tokens, got 33");
  BOOST_TEST(make.refusal({{"tokens", "63"}}) ==
             task + "tokens: expected even numbers, got \"63\"");
  BOOST_TEST(make.refusal({{"tokens", "64-255"}}) ==
             task + "tokens: expected even numbers, got \"64-255\"");
  BOOST_TEST(
      make.refusal({{"tokens", "4-256"}, {"repeats", "2"}}) ==
      task + "tokens: expected at least 6, the number of tokens for a key with 2 values, got 4");
  BOOST_TEST(make.refusal({{"vocabulary", "65"}}) ==
             task + "vocabulary: expected at least 66 for 32 keys and 32 values, got 65");
  BOOST_TEST(make.refusal({{"vocabulary", "66"}}) == "accepted");
  const TaskOptions thrice{{"tokens", "256"}, {"repeats", "3"}};
  TaskOptions small = thrice;
  small["vocabulary"] = "190";
  BOOST_TEST(make.refusal(small) ==
             task + "vocabulary: expected at least 191 for 32 keys and 96 values, got 190");
  small["vocabulary"] = "191";
  BOOST_TEST(make.refusal(small) == "accepted");
  BOOST_TEST(make.refusal({{"vocabulary", "100"}}, "2x") ==
             task +
                 "vocabulary: expected at least 130 for 64 keys and 64 values, got 100 "
                 "(distribution 2x)");
  BOOST_TEST(make.refusal({{"back", "2"}}) ==
             task + "back: expected a whole number from 1 to 1, got \"2\"");
  BOOST_TEST(make.refusal({{"back", "4"}, {"repeats", "3"}}) ==
             task + "back: expected a whole number from 1 to 3, got \"4\"");
  BOOST_TEST(make.refusal({{"tokens", "256-64"}}) ==
             task +
                 "tokens: expected a number from 4 to 1048576, or a range such as 4-1048576, got "
                 "\"256-64\"");
}

BOOST_AUTO_TEST_SUITE_END()
