#include "tasks/copying.h"

#include <algorithm>
#include <map>
#include <set>
#include "tests/check.h"

#include "tests/chi_square.h"
#include "tests/make_task.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(copying_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

constexpr TaskMaker make{copying};

/// Returns the texts of a sample's tokens before and after the mark, the token ⊥.
std::pair<std::vector<std::string>, std::vector<std::string>> parts_of(const Task& task,
                                                                       const Sample& sample) {
  std::pair<std::vector<std::string>, std::vector<std::string>> parts;
  bool after = false;
  for (const std::int32_t token : sample.tokens) {
    const std::string word = task.vocabulary().text(token);
    if (word == "⊥") {
      BOOST_REQUIRE(!after);
      after = true;
    } else {
      (after ? parts.second : parts.first).push_back(word);
    }
  }
  BOOST_REQUIRE(after);
  return parts;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_answer_lists_the_symbols_in_order) {
  const auto task = make();
  BOOST_TEST(task->vocabulary().size() == 18);  // 16 symbols, the noise token and the mark ⊥
  for (std::uint32_t index = 0; index < 50; ++index) {
    const Sample sample = draw(*task, index);
    auto [given, said] = parts_of(*task, sample);
    BOOST_TEST((given.size() >= 64 && given.size() <= 256));
    std::vector<std::int32_t> asked;
    for (std::size_t i = 0; i < said.size(); ++i) {
      asked.push_back(static_cast<std::int32_t>(given.size() + i));
    }
    BOOST_TEST(sample.asked == asked);
    BOOST_TEST(std::ranges::count(sample.targets, Sample::not_counted) ==
               std::ssize(sample.targets) - 16);
    std::erase(given, ".");
    BOOST_TEST(given.size() == 16u);
    BOOST_TEST(given == said);
  }
}

BOOST_AUTO_TEST_CASE(places_are_uniform_and_symbols_are_independent) {
  const auto task = make({{"data", "2"}, {"noise", "6"}, {"symbols", "4"}});
  std::map<std::vector<std::size_t>, double> places;
  std::map<std::vector<std::string>, double> symbols;
  // For samples whose first symbol is at place 0, counts how often the second symbol has each place
  // and value.
  std::map<std::pair<std::size_t, std::string>, double> first;
  for (std::uint32_t index = 0; index < 6000; ++index) {
    const auto [given, said] = parts_of(*task, draw(*task, index));
    BOOST_REQUIRE_EQUAL(given.size(), 6u);
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i] != ".") at.push_back(i);
    }
    ++places[at];
    ++symbols[said];
    if (at[0] == 0) ++first[{at[1], said[1]}];
  }
  const auto fair = [](const auto& counted, std::size_t cells) {
    std::vector<double> counts;
    for (const auto& [key, count] : counted) counts.push_back(count);
    BOOST_TEST(counts.size() == cells);
    BOOST_TEST(chi_square_p(counts) > 1e-3);
  };
  fair(places, 15);
  fair(symbols, 16);
  fair(first, 20);
}

BOOST_AUTO_TEST_CASE(lengths_are_uniform) {
  const auto task = make({{"data", "2"}, {"noise", "3-10"}});
  std::vector<double> lengths(8);
  for (std::uint32_t index = 0; index < 2000; ++index) {
    ++lengths.at(parts_of(*task, draw(*task, index)).first.size() - 3);
  }
  BOOST_TEST(chi_square_p(lengths) > 1e-3);
  BOOST_TEST(task->longest() == 13);
}

BOOST_AUTO_TEST_CASE(plain_copying_has_no_noise) {
  const auto of_range = make({{"data", "0"}, {"noise", "3-10"}});
  const auto fixed = make({{"data", "7"}, {"noise", "7"}});
  BOOST_TEST(of_range->longest() == 21);
  for (std::uint32_t index = 0; index < 50; ++index) {
    for (const auto* task : {&of_range, &fixed}) {
      const auto [given, said] = parts_of(**task, draw(**task, index));
      BOOST_TEST(std::ranges::count(given, ".") == 0);
      BOOST_TEST(given == said);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_reference_of_a_symbol_is_its_place_in_the_noise) {
  const auto task = make({{"data", "3"}, {"noise", "6"}});
  const auto tokens = task->vocabulary().encode(". 7 7 . . 3 ⊥ 7 7 3");
  const Sample sample{.tokens = tokens, .targets = {}, .asked = {6, 7, 8}};
  const auto rows = task->reference(sample);
  BOOST_REQUIRE_EQUAL(rows.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(rows[i].row == sample.asked[i]);
    BOOST_TEST(rows[i].columns == (std::vector<std::int32_t>{std::vector{1, 2, 5}[i]}));
  }
}

BOOST_AUTO_TEST_CASE(distributions_have_more_noise) {
  BOOST_TEST(make()->longest() == 256 + 1 + 16);
  for (const auto& [name, places] : {std::pair{"4x", 1024u}, {"16x", 4096u}}) {
    const auto task = make({}, name);
    const auto [given, said] = parts_of(*task, draw(*task, 0));
    BOOST_TEST(given.size() == places);
    BOOST_TEST(said.size() == 16u);
  }
}

BOOST_AUTO_TEST_CASE(answers_from_a_file_are_checked_symbol_by_symbol) {
  const auto task = make({{"data", "3"}, {"noise", "6"}});
  const auto verdict = [](const auto& of, const std::string& prompt, const std::string& answer) {
    return of->check(prompt, answer).value_or("right");
  };
  const std::string prompt = ". 7 7 . . 3 ⊥";
  BOOST_TEST(task->answer(prompt) == " 7 7 3");
  BOOST_TEST(verdict(task, prompt, "7 7 3") == "right");
  // Prompts of any length are accepted.
  BOOST_TEST(verdict(task, "7 . . . 7 . . . . 3 ⊥", " 7 7 3") == "right");
  BOOST_TEST(verdict(task, prompt, "7 3 7") == "symbol 2: expected 7, got 3");
  BOOST_TEST(verdict(task, prompt, "7 . 3") == "symbol 2: expected 7, got .");
  BOOST_TEST(verdict(task, prompt, "7 7") == "expected 3 symbols, got 2");
  BOOST_TEST(verdict(task, prompt, "7 7 3 3") == "expected 3 symbols, got 4");
  BOOST_TEST(verdict(task, prompt, "7 7 16") ==
             "text: no token of the vocabulary matches at character 5: \"16\"");
  BOOST_TEST(verdict(task, "7 . ⊥", "7") == "expected 3 symbols before ⊥, got 1");
  for (const char* none : {"", "7 7 3", "7 ⊥ 7 3 ⊥", "7 7 3 ⊥ 7"}) {
    BOOST_TEST(verdict(task, none, "7 7 3") ==
               text("expected symbols, noise and one ⊥ at the end, got \"", none, "\""));
  }
  const auto plain = make({{"data", "0"}});
  BOOST_TEST(verdict(plain, "7 7 ⊥", "7 7") == "right");
  BOOST_TEST(verdict(plain, "7 . 7 ⊥", "7 7") == "expected only symbols before ⊥, got noise");
  BOOST_TEST(verdict(plain, "⊥", "") == "expected some symbols before ⊥, got 0");
  BOOST_CHECK_THROW(task->answer("7"), Error);
}

BOOST_AUTO_TEST_CASE(wrong_options_are_refused) {
  BOOST_TEST(
      make.refusal({{"data", "65"}}) ==
      "task copying: option data: expected at most 64 (the minimum of option \"noise\"), got 65");
  BOOST_TEST(make.refusal({{"symbols", "1"}}) ==
             "task copying: option symbols: expected a whole number from 2 to 65536, got \"1\"");
  BOOST_TEST(make.refusal({{"noise", "9-3"}}) ==
             "task copying: option noise: expected a number from 1 to 1048576, or a range such as "
             "1-1048576, got \"9-3\"");
  BOOST_TEST(make.refusal({{"noise", "100000"}}, "16x") ==
             "task copying: option noise: expected a number from 1 to 65536, or a range such as "
             "1-65536, got \"100000\" (distribution 16x)");
}

BOOST_AUTO_TEST_SUITE_END()
