#include "tasks/cycle_tracing.h"

#include <set>
#include <sstream>
#include "tests/check.h"

#include "core/error.h"
#include "tests/chi_square.h"
#include "tests/make_task.h"

BOOST_AUTO_TEST_SUITE(cycle_tracing_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

constexpr std::string_view printed_prompt = "E 984,456 345,984 456,345 C 345";

constexpr TaskMaker make{cycle_tracing};

std::string text_of(const Task& task, std::uint32_t index) {
  return task.vocabulary().decode(draw(task, index).tokens);
}

/// The parts of a sample, parsed from its text.
struct Parts {
  std::vector<std::pair<int, int>> edges;
  int start = 0;
  std::vector<int> walk;
};

Parts parts_of(const std::string& text) {
  Parts parts;
  std::istringstream in(text);
  std::string word;
  in >> word;
  BOOST_REQUIRE(word == "E");
  while (in >> word && word != "C") {
    parts.edges.emplace_back(std::stoi(word.substr(0, 3)), std::stoi(word.substr(4)));
  }
  in >> parts.start;
  for (int node = 0; in >> node;) parts.walk.push_back(node);
  return parts;
}

/// A sample with this text, in which everything after the prompt is scored.
Sample sample_of(const Task& task, std::string_view prompt, const std::string& answer) {
  Sample sample{.tokens = task.vocabulary().encode(std::string(prompt) + answer), .targets = {}};
  const std::size_t given = task.vocabulary().encode(prompt).size();
  sample.targets.assign(sample.tokens.size(), Sample::not_counted);
  for (std::size_t i = given - 1; i + 1 < sample.tokens.size(); ++i) {
    sample.asked.push_back(static_cast<std::int32_t>(i));
    sample.targets[i] = sample.tokens[i + 1];
  }
  return sample;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_printed_example_is_right) {
  for (const char* tokenization : {"characters", "numbers"}) {
    const auto task = make({{"tokenization", tokenization}});
    BOOST_TEST(task->answer(printed_prompt) == " 984 456 345");
    BOOST_TEST(!task->check(printed_prompt, "984 456 345 984 456").has_value());
    BOOST_TEST(!task->check(printed_prompt, " 984").has_value());
    BOOST_TEST(task->check(printed_prompt, "984 345").value() ==
               "node 2: expected 456, got \"345\"");
    BOOST_TEST(task->check(printed_prompt, "345 984").value() ==
               "node 1: expected 984, got \"345\"");
  }
}

BOOST_AUTO_TEST_CASE(both_tokenizations_split_the_same_text) {
  const auto characters = make();
  const auto numbers = make({{"tokenization", "numbers"}});
  BOOST_TEST(characters->vocabulary().size() == 14);
  BOOST_TEST(numbers->vocabulary().size() == 1004);
  BOOST_TEST(characters->vocabulary().encode(printed_prompt).size() == printed_prompt.size());
  // The 17 tokens are the letters E and C, 7 node numbers of three digits each, 3 commas and
  // 5 blanks.
  BOOST_TEST(numbers->vocabulary().encode(printed_prompt).size() == 17u);
  BOOST_TEST(numbers->vocabulary().text(numbers->vocabulary().encode("007")[0]) == "007");
  const std::string a = text_of(*characters, 0);
  const std::string b = text_of(*numbers, 0);
  BOOST_TEST(a.substr(0, a.find('C') + 5) == b.substr(0, b.find('C') + 5));
}

BOOST_AUTO_TEST_CASE(broken_prompts_and_answers_have_different_errors) {
  const auto task = make();
  const auto reason = [&](std::string_view prompt, std::string_view answer) {
    return task->check(prompt, answer).value_or("right");
  };
  BOOST_TEST(reason("E 001,002 002,001 C 001", "002") == "right");
  BOOST_TEST(reason("E 001,001 C 001", "001 001") == "right");
  BOOST_TEST(reason("001,002 002,001 C 001", "002") ==
             "expected a prompt E a,b b,c ... C a, got \"001,002 002,001 C 001\"");
  BOOST_TEST(reason("E C 001", "001") == "expected a prompt E a,b b,c ... C a, got \"E C 001\"");
  BOOST_TEST(reason("E 1,2 2,1 C 001", "002") ==
             "edge 1: expected two numbers of three digits, got \"1,2\"");
  BOOST_TEST(reason("E 001,002  002,001 C 001", "002") ==
             "edge 2: expected two numbers of three digits, got \"\"");
  BOOST_TEST(reason("E 001,002 001,003 C 001", "002") ==
             "edge 2: expected only one edge from 001, got a second one");
  BOOST_TEST(reason("E 001,002 002,003 C 001", "002") == "the edges are not one cycle through 001");
  BOOST_TEST(reason("E 001,002 002,001 C 003", "002") == "the edges are not one cycle through 003");
  BOOST_TEST(reason("E 001,002 002,001 003,003 C 001", "002") ==
             "the edges are not one cycle through 001");
  BOOST_TEST(reason("E 001,002 002,002 C 001", "002") == "the edges are not one cycle through 001");
  BOOST_TEST(reason("E 001,002 002,001 C 001", "") == "node 1: expected 002, got \"\"");
  BOOST_TEST(reason("E 001,002 002,001 C 001", "002 ") == "node 2: expected 001, got \"\"");
  BOOST_TEST(reason("E 001,002 002,001 C 001", "002  001") == "node 2: expected 001, got \"\"");
  BOOST_CHECK_THROW(task->answer("E 001,002 C 001"), Error);
}

BOOST_AUTO_TEST_CASE(a_sample_is_one_cycle_and_its_walk) {
  for (const char* distribution : {"train", "4x", "8x"}) {
    const auto task = make({}, distribution);
    for (std::uint32_t index = 0; index < 20; ++index) {
      const Parts parts = parts_of(text_of(*task, index));
      const std::map<int, int> next(parts.edges.begin(), parts.edges.end());
      BOOST_TEST(next.size() == parts.edges.size());
      int node = parts.start;
      for (const int walked : parts.walk) {
        node = next.at(node);
        BOOST_REQUIRE(walked == node);
      }
      BOOST_TEST(parts.walk.size() > parts.edges.size());  // the walk goes around more than once
      const std::set<int> visited(parts.walk.begin(), parts.walk.end());
      BOOST_TEST(visited.size() == parts.edges.size());
    }
  }
}

BOOST_AUTO_TEST_CASE(the_budget_of_tokens_is_filled_with_whole_nodes) {
  for (const auto& [tokenization, step] : {std::pair{"characters", 4}, {"numbers", 2}}) {
    for (const char* tokens : {"0", "1000", "1001", "1002", "1003"}) {
      const auto task = make({{"tokenization", tokenization}, {"tokens", tokens}});
      for (std::uint32_t index = 0; index < 20; ++index) {
        const auto length = static_cast<std::int64_t>(draw(*task, index).tokens.size());
        BOOST_REQUIRE(length <= task->longest());
        BOOST_REQUIRE(length + step > task->longest());
      }
    }
  }
  BOOST_TEST(make()->longest() == 659);
  BOOST_CHECK_THROW(make({{"tokens", "410"}}), Error);
  BOOST_TEST(make({{"tokens", "411"}})->longest() == 411);
  BOOST_TEST(make({{"tokens", "411"}}, "4x")->longest() == 1644);
}

BOOST_AUTO_TEST_CASE(sizes_start_numbers_and_edge_order_are_uniform) {
  const auto task = make({{"min-nodes", "4"}, {"max-nodes", "8"}, {"tokens", "100"}});
  std::vector<double> sizes(5);
  std::vector<double> hundreds(10);
  // Counts how often the walk's first edge has each position in the prompt's list of 4 edges.
  std::vector<double> start_edge(4);
  // Counts the pairs of positions that the walk's first and second edge have in the list of 4
  // edges.
  std::vector<double> next_edge(12);
  for (std::uint32_t index = 0; index < 6000; ++index) {
    const Parts parts = parts_of(text_of(*task, index));
    sizes.at(parts.edges.size() - 4) += 1;
    for (const auto& edge : parts.edges)
      hundreds.at(static_cast<std::size_t>(edge.first) / 100) += 1;
    if (parts.edges.size() != 4) continue;
    const auto place = [&](int node) {
      std::size_t i = 0;
      while (parts.edges[i].first != node) ++i;
      return i;
    };
    const std::size_t first = place(parts.start);
    const std::size_t second = place(parts.edges[first].second);
    start_edge[first] += 1;
    next_edge[first * 3 + second - (second > first)] += 1;
  }
  BOOST_TEST(chi_square_p(sizes) > 1e-3);
  BOOST_TEST(chi_square_p(hundreds) > 1e-3);
  BOOST_TEST(chi_square_p(start_edge) > 1e-3);
  BOOST_TEST(chi_square_p(next_edge) > 1e-3);
}

BOOST_AUTO_TEST_CASE(longer_distributions_have_exactly_their_size) {
  BOOST_TEST(parts_of(text_of(*make({}, "4x"), 0)).edges.size() == 200u);
  BOOST_TEST(parts_of(text_of(*make({}, "8x"), 0)).edges.size() == 400u);
  BOOST_CHECK_THROW(make({{"max-nodes", "126"}}, "8x"), Error);
  BOOST_TEST(parts_of(text_of(*make({{"max-nodes", "125"}}, "8x"), 0)).edges.size() == 1000u);
}

BOOST_AUTO_TEST_CASE(transitions_count_up_to_the_first_mistake) {
  for (const char* tokenization : {"characters", "numbers"}) {
    const auto task = make({{"tokenization", tokenization}});
    const Sample sample = sample_of(*task, printed_prompt, " 984 456 345 984 456");
    const auto score = [&](const std::string& said) {
      Tally tally;
      task->score(sample, task->vocabulary().encode(said), tally);
      return tally;
    };
    const Tally right = score(" 984 456 345 984 456");
    BOOST_TEST(right.at("transitions").sum == 5);
    BOOST_TEST(right.at("transitions").count == 5);
    BOOST_TEST(right.at("sequences").sum == 1);

    const Tally third_wrong = score(" 984 456 344 984 456");
    BOOST_TEST(third_wrong.at("transitions").sum == 2);
    BOOST_TEST(third_wrong.at("transitions").count == 3);
    BOOST_TEST(third_wrong.at("nodes").sum == 4);
    BOOST_TEST(third_wrong.at("nodes").count == 5);
    BOOST_TEST(third_wrong.at("sequences").sum == 0);

    const Tally first_wrong = score(",984 456 345 984 456");
    BOOST_TEST(first_wrong.at("transitions").sum == 0);
    BOOST_TEST(first_wrong.at("transitions").count == 1);
  }
}

BOOST_AUTO_TEST_CASE(the_reference_of_a_digit_is_its_edge) {
  const auto task = make();
  const Sample sample = sample_of(*task, "E 984,456 345,984 456,345 C 345", " 984 456");
  const auto rows = task->reference(sample);
  BOOST_TEST(rows.size() == 6u);
  for (std::int32_t digit = 0; digit < 3; ++digit) {
    const auto& first = rows.at(static_cast<std::size_t>(digit));
    BOOST_TEST(first.row == 31 + digit);  // row 31, a space, predicts the first digit
    BOOST_TEST(first.columns == std::vector<std::int32_t>{14 + digit});
    const auto& second = rows.at(static_cast<std::size_t>(digit) + 3);
    BOOST_TEST(second.row == 35 + digit);
    BOOST_TEST(second.columns == std::vector<std::int32_t>{6 + digit});
  }
}

BOOST_AUTO_TEST_CASE(the_option_loss_selects_the_targets) {
  Rng rng(1, Purpose::test);
  const Sample answer = make()->sample(rng, 0);
  Rng again(1, Purpose::test);
  const Sample all = make({{"loss", "all"}})->sample(again, 0);
  BOOST_TEST(answer.asked == all.asked);
  BOOST_TEST(static_cast<std::size_t>(std::ranges::count(answer.targets, -1)) ==
             answer.tokens.size() - answer.asked.size());
  BOOST_TEST(std::ranges::count(all.targets, -1) == 1);
}

BOOST_AUTO_TEST_SUITE_END()
