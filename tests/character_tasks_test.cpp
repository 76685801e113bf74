// Tests the character tasks: reversal, addition, multiplication, ffml, value-assignment and
// successor. task_test.cpp tests the properties that all tasks share.
#include "tasks/character_task.h"

#include <array>
#include <map>
#include <set>
#include <sstream>
#include "tests/check.h"

#include "core/error.h"
#include "tests/chi_square.h"
#include "tests/make_task.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(character_tasks_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

// Pairs of indices: a predicted character, and a character on which the prediction depends.
using Pairs = std::vector<std::pair<int, int>>;

std::pair<std::string, std::string> drawn_text(const Task& task, std::uint32_t index) {
  auto [prompt, answer] = task.as_text(draw(task, index));
  if (answer.ends_with('\n')) answer.pop_back();
  return {prompt, answer};
}

Pairs mask(const Task& task, std::string_view sample) {
  Pairs pairs;
  for (const ReferenceRow& row : task.reference(task.sample_of(sample))) {
    for (const std::int32_t column : row.columns) pairs.emplace_back(row.row + 1, column);
  }
  return pairs;
}

/// Returns the number with these decimal digits. The first of them is the ones digit.
std::int64_t number_of(std::string_view digits) {
  std::int64_t number = 0;
  for (auto c = digits.rbegin(); c != digits.rend(); ++c) number = 10 * number + (*c - '0');
  return number;
}

std::vector<std::string> parts(std::string_view text, char sign) {
  return digits::split(text, sign, 100);
}

}  // namespace

// The examples are those of Table 1 and of the samples in the AttentionSpan paper.
BOOST_AUTO_TEST_CASE(the_printed_examples_are_right) {
  const std::vector<std::array<std::string, 3>> printed{
      {"reversal", "dh13h82hj283j23H=", "H32j382jh28h31hd"},
      {"reversal", "dh13=", "31hd"},
      {"addition", "1240+4335+3440=", "8916"},
      {"multiplication", "9900*9900=", "1980+0198+0000+0000=1089"},
      {"ffml", "w11i11f10r10f10r1", "1"},
      {"value-assignment", "B1E0D1A1C0 ABBEDACABCD=", "11101101101"},
      {"successor", "234 ", "235 236 "}};
  for (const auto& [name, prompt, answer] : printed) {
    const auto task = make_task(name);
    BOOST_TEST(!task->check(prompt, answer).has_value(), name);
    BOOST_TEST(task->answer(prompt).substr(0, 4) == (answer + "\n").substr(0, 4), name);
    // check() must reject an answer with a replaced character, with an additional one at the end,
    // and without its last one.
    for (std::size_t i = 0; i < answer.size(); ++i) {
      for (const char other : {'0', '1', '7', 'h'}) {
        std::string changed = answer;
        changed[i] = other;
        if (changed == answer) continue;
        BOOST_TEST(task->check(prompt, changed).has_value(), name << ' ' << changed);
      }
    }
    BOOST_TEST(task->check(prompt, answer + "1").has_value(), name);
    BOOST_TEST(task->check(prompt, answer.substr(0, answer.size() - 1)).has_value(), name);
  }
}

BOOST_AUTO_TEST_CASE(masks_point_at_the_tokens_that_an_answer_depends_on) {
  BOOST_TEST((mask(*make_task("reversal"), "dh13=31hd") == Pairs{{5, 3}, {6, 2}, {7, 1}, {8, 0}}));
  BOOST_TEST((mask(*make_task("addition"), "12+9=03") == Pairs{{5, 0}, {5, 3}, {6, 1}}));
  // The product 12 * 3, written with the ones digit first and padded with zeros. The four rows of
  // partial products begin at characters 10, 15, 20 and 25.
  const Pairs product = mask(*make_task("multiplication"), "2100*3000=6300+0000+0000+0000=6300");
  Pairs expected;
  for (int row = 0; row < 4; ++row) {
    for (int digit = 0; digit < 4; ++digit) {
      expected.emplace_back(10 + 5 * row + digit, digit);
      expected.emplace_back(10 + 5 * row + digit, 5 + row);
    }
  }
  BOOST_TEST((product == expected));
  // In the task ffml, the answer is the bit of the register that the last command reads. It depends
  // on the last command that writes this register (w), and on later commands that flip it (f). In
  // the first prompt, register 1 is written by the first command and flipped twice.
  BOOST_TEST((mask(*make_task("ffml"), "w11i11f10r10f10r11") ==
              Pairs{{17, 0}, {17, 1}, {17, 2}, {17, 6}, {17, 7}, {17, 12}, {17, 13}, {17, 16}}));
  BOOST_TEST((mask(*make_task("ffml"), "w11w01f11i00f00r00") ==
              Pairs{{17, 3}, {17, 4}, {17, 5}, {17, 12}, {17, 13}, {17, 16}}));
  BOOST_TEST(
      // No command writes register 0, so its bit is initially 0. The command f00 flips register 0,
      // and the command r01 reads the bit 1 from it.
      (mask(*make_task("ffml"), "f00r01") == Pairs{{5, 0}, {5, 1}, {5, 4}}));
  BOOST_TEST((mask(*make_task("ffml"), "r00") == Pairs{{2, 1}}));
  BOOST_TEST((mask(*make_task("value-assignment"), "B1A0 AB=01") ==
              Pairs{{8, 2}, {8, 3}, {8, 5}, {9, 0}, {9, 1}, {9, 6}}));
  // In the text of the task successor, characters 2 and 3 are the number 9 and a space, characters
  // 4 to 6 are the number 10 and a space, and characters 7 and 8 are the number 11. Each character
  // depends on the number before it, and on the earlier characters of its own number.
  BOOST_TEST(
      (mask(*make_task("successor"), "8 9 10 11 ") ==
       Pairs{{2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}, {4, 2}, {4, 3}, {5, 2}, {5, 3}, {5, 4}, {6, 2},
             {6, 3}, {6, 4}, {6, 5}, {7, 4}, {7, 5}, {7, 6}, {8, 4}, {8, 5}, {8, 6}, {8, 7}}));
}

BOOST_AUTO_TEST_CASE(samples_follow_their_rules) {
  for (std::uint32_t i = 0; i < 300; ++i) {
    for (const std::string_view part : {"train", "ood"}) {
      const bool ood = part == "ood";
      {
        const auto [prompt, answer] = drawn_text(*make_task("reversal", {}, part), i);
        BOOST_REQUIRE((std::string(answer.rbegin(), answer.rend()) + "=" == prompt));
        BOOST_REQUIRE((ood ? answer.size() >= 11 && answer.size() <= 50 : answer.size() <= 10));
      }
      for (const char* pad : {"0", "1"}) {
        const auto [prompt, answer] = drawn_text(*make_task("addition", {{"pad", pad}}, part), i);
        const auto numbers = parts(prompt.substr(0, prompt.size() - 1), '+');
        BOOST_REQUIRE(numbers.size() == 2u);
        BOOST_REQUIRE(number_of(answer) == number_of(numbers[0]) + number_of(numbers[1]));
        if (*pad == '0') continue;
        const std::size_t width =
            1 + std::max(digits::trimmed(numbers[0]).size(), digits::trimmed(numbers[1]).size());
        for (const std::string& number : {numbers[0], numbers[1], answer}) {
          BOOST_REQUIRE(number.size() == width);
        }
      }
      for (const char* pad : {"0", "1"}) {
        const auto [prompt, answer] =
            drawn_text(*make_task("multiplication", {{"pad", pad}}, part), i);
        const auto numbers = parts(prompt.substr(0, prompt.size() - 1), '*');
        const std::int64_t a = number_of(numbers.at(0)), b = number_of(numbers.at(1));
        BOOST_REQUIRE(a >= b);
        const std::size_t sign = answer.find('=');
        BOOST_REQUIRE(number_of(answer.substr(sign + 1)) == a * b);
        std::int64_t sum = 0;
        const auto rows = parts(std::string_view(answer).substr(0, sign), '+');
        for (const std::string& row : rows) sum += number_of(row);
        BOOST_REQUIRE(sum == a * b);
        BOOST_REQUIRE(rows.size() == numbers[*pad == '1' ? 0 : 1].size());
      }
      {
        const auto [prompt, answer] = drawn_text(*make_task("successor", {}, part), i);
        std::istringstream words(prompt + answer);
        std::vector<int> numbers;
        for (int n = 0; words >> n;) numbers.push_back(n);
        BOOST_REQUIRE(numbers.size() >= (ood ? 5u : 2u));
        BOOST_REQUIRE(numbers.size() <= (ood ? 6u : 4u));
        for (std::size_t k = 1; k < numbers.size(); ++k) {
          BOOST_REQUIRE(numbers[k] == numbers[k - 1] + 1);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(options_and_characters_are_drawn_uniformly) {
  std::vector<double> lengths(10), letters(62), digits(9), starts(90), counts(3), commands(3),
      registers(2), reads(2), values(2), names(52);
  const std::string alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  const auto reversal = make_task("reversal"), addition = make_task("addition", {{"digits", "2"}}),
             successor = make_task("successor"), ffml = make_task("ffml"),
             table = make_task("value-assignment");
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const std::string string = drawn_text(*reversal, i).second;
    ++lengths.at(string.size() - 1);
    for (const char c : string) ++letters.at(alphabet.find(c));
    ++digits.at(
        // Numbers begin with the ones digit, so the second character of a number with two digits
        // is the leading digit.
        static_cast<std::size_t>(drawn_text(*addition, i).first[1] - '1'));
    const auto [start, others] = drawn_text(*successor, i);
    ++starts.at(static_cast<std::size_t>(std::stoi(start)) - 1);
    ++counts.at(static_cast<std::size_t>(std::ranges::count(others, ' ')) - 1);
    const auto [prompt, bit] = drawn_text(*ffml, i);
    BOOST_REQUIRE(prompt.size() == 29u);
    ++commands.at(std::string("wif").find(prompt[3 * (i % 9)]));
    ++registers.at(static_cast<std::size_t>(prompt.back() - '0'));
    ++reads.at(static_cast<std::size_t>(bit[0] - '0'));
    bool named = false;
    for (std::size_t k = 0; k < 9; ++k) named |= prompt[3 * k + 1] == prompt.back();
    BOOST_REQUIRE((named || bit == "0"));  // if no command names the register, its bit is 0
    const std::string pairs = drawn_text(*table, i).first;
    BOOST_REQUIRE(pairs.find(' ') == 10u);
    ++names.at(pairs[0] >= 'a' ? static_cast<std::size_t>(pairs[0] - 'a') + 26
                               : static_cast<std::size_t>(pairs[0] - 'A'));
    ++values.at(static_cast<std::size_t>(pairs[3] - '0'));
  }
  for (const auto* counted : {&lengths, &letters, &digits, &starts, &counts, &commands, &registers,
                              &reads, &values, &names}) {
    BOOST_TEST(chi_square_p(*counted) > 1e-4);
  }
}

// With the option `reads`, the task ffml also draws read commands (r) before the last command, as
// in the paper's example. The bit of a read command must be the bit of its register.
BOOST_AUTO_TEST_CASE(ffml_with_reads_draws_all_commands_and_reads_the_right_bits) {
  const auto task = make_task("ffml", {{"reads", "1"}});
  std::vector<double> commands(4);
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const auto [prompt, bit] = drawn_text(*task, i);
    ++commands.at(std::string("wifr").find(prompt[3 * (i % 9)]));
    BOOST_REQUIRE(task->check(prompt, bit).value_or("right") == "right");
  }
  BOOST_TEST(chi_square_p(commands) > 1e-4);
  const auto plain = make_task("ffml");
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::string prompt = drawn_text(*plain, i).first;
    BOOST_TEST(std::ranges::count(prompt, 'r') == 1);
  }
}

BOOST_AUTO_TEST_CASE(values_of_a_table_are_distinct_while_there_are_enough) {
  const auto few = make_task("value-assignment", {{"values", "0123456789"}, {"pairs", "10"}});
  for (std::uint32_t i = 0; i < 50; ++i) {
    const std::string prompt = drawn_text(*few, i).first;
    std::set<char> seen, names;
    for (std::size_t at = 0; at < 20; at += 2) {
      names.insert(prompt[at]);
      seen.insert(prompt[at + 1]);
    }
    BOOST_REQUIRE(names.size() == 10u);
    BOOST_REQUIRE(seen.size() == 10u);
  }
}

// The first sample was drawn by the generator of the AttentionSpan paper.
BOOST_AUTO_TEST_CASE(values_of_a_table_may_be_letters) {
  const auto task = make_task("value-assignment", {{"values", "u7d"}, {"pairs", "3"}});
  const Sample sample = task->sample_of("A3EuB3F2L3KdI5Gu BBBIE=3335u");
  BOOST_TEST(task->as_text(sample).second == "3335u\n");
  BOOST_TEST(contains(refusal([&] { task->sample_of("A3Eu E=3"); }), "expected \"u\", got \"3\""));
  const auto [prompt, answer] = drawn_text(*task, 1);
  BOOST_TEST(answer.find_first_not_of("u7d\n") == std::string::npos);
  BOOST_TEST(!task->check(prompt, answer).has_value());
}

BOOST_AUTO_TEST_CASE(an_invalid_sample_is_refused_in_one_line) {
  const auto says = [](std::string_view name, std::string_view sample, std::string_view what) {
    BOOST_TEST(contains(refusal([&] { make_task(name)->sample_of(sample); }), what));
  };
  says("reversal", "ab", "expected a prompt and its answer");
  says("reversal", "=", "expected letters or digits and =");
  says("reversal", "a-b=b-a", "expected letters or digits");
  says("reversal", "ab=bb", "character 2 of the answer: expected \"a\", got \"b\"");
  says("reversal", "ab=b", "expected \"a\", got the end");
  says("addition", "12=12", "separated by \"+\"");
  says("addition", "12++1=1", "separated by \"+\"");
  says("addition", "12+1=4", "character 1 of the answer");
  says("multiplication", "1*2=2=2", "the larger number first");
  says("multiplication", "10*1=1=1", "expected both numbers padded with zeros");
  says("multiplication", "2*3*4=", "expected two numbers");
  says("ffml", "w01r0", "three characters");
  says("ffml", "x01r01", "expected \"w\", \"r\", \"i\" or \"f\"");
  says("ffml", "w0", "three characters");
  says("ffml", "w01r00r01", "command 2: expected 1 to be read, got 0");
  says("ffml", "w01w01", "expected the last command to be a read");
  says("value-assignment", "A1A0 A=1", "expected different letters, got \"A\" twice");
  says("value-assignment", "A1 B=1", "letters of the table");
  says("value-assignment", "A1 =", "expected a table");
  says("successor", "7 9 ", "expected \"8 \", got \"9 \"");
  says("successor", "7 8", "expected \"8 \"");
  says("successor", "07 8 ", "expected a number");
  BOOST_CHECK_THROW(make_task("flip-flop")->sample_of("w1r1"), Error);
  for (const char* range : {"", "0", "3-2", "a", "1-", "1-2-3", "1-99999"}) {
    BOOST_CHECK_THROW(make_task("reversal", {{"length", range}}), Error);
  }
  for (const char* values : {"", "00", "0-"}) {
    BOOST_CHECK_THROW(make_task("value-assignment", {{"values", values}}), Error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
