#include "tasks/flip_flop.h"

#include <cmath>

#include "tests/check.h"

#include "core/error.h"
#include "tests/chi_square.h"
#include "tests/make_task.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(flip_flop_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

constexpr TaskMaker make{flip_flop};

/// Counts over many flip-flop samples. An instruction is a letter and a bit. `first` counts the
/// bits of the first instruction; all other members omit it. `letters` counts w, r and i. `written`
/// counts the bits 0 and 1 after w, and `ignored` those after i.
struct Counts {
  std::vector<double> letters = std::vector<double>(3);
  std::vector<double> written = std::vector<double>(2);
  std::vector<double> ignored = std::vector<double>(2);
  std::vector<double> first = std::vector<double>(2);
  std::vector<double> pairs = std::vector<double>(9);  // counts of pairs of successive letters
};

Counts count(const Task& task, std::uint32_t samples) {
  Counts counts;
  for (std::uint32_t index = 0; index < samples; ++index) {
    const std::string text = task.vocabulary().decode(draw(task, index).tokens);
    const auto letter = [&](std::size_t i) { return std::string_view("wri").find(text[i]); };
    BOOST_REQUIRE(text[0] == 'w');
    counts.first[text[1] == '1'] += 1;
    for (std::size_t i = 2; i < text.size(); i += 2) {
      counts.letters.at(letter(i)) += 1;
      if (text[i] == 'w') counts.written[text[i + 1] == '1'] += 1;
      if (text[i] == 'i') counts.ignored[text[i + 1] == '1'] += 1;
      if (i > 2) counts.pairs.at(letter(i - 2) * 3 + letter(i)) += 1;
    }
  }
  return counts;
}

}  // namespace

// The example in the paper writes 1, overwrites it with 0, ignores an instruction and reads 0.
BOOST_AUTO_TEST_CASE(the_printed_example_is_right) {
  const auto task = make({});
  BOOST_TEST(task->answer("w1w0i0r") == "0");
  BOOST_TEST(!task->check("w1w0i0r", "0").has_value());
  BOOST_TEST(task->check("w1w0i0r", "1").value() == "instruction 4: expected r0, got r1");
  BOOST_TEST(!task->check("", "w1w0i0r0").has_value());
}

BOOST_AUTO_TEST_CASE(each_invalid_flip_flop_text_has_its_own_error) {
  const auto task = make({});
  BOOST_TEST(task->check("i0r", "0").value() ==
             "instruction 2: expected a write (w) before the first read (r)");
  BOOST_TEST(task->check("w1i0r", "").value() ==
             "instruction 3: expected the bit 0 or 1, got \"\"");
  BOOST_TEST(task->check("w2r", "2").value() ==
             "instruction 1: expected the bit 0 or 1, got \"2\"");
  BOOST_TEST(task->check("w1x0r", "1").value() ==
             "instruction 2: expected \"w\", \"r\" or \"i\", got \"x\"");
  BOOST_TEST(task->check("w1r0r", "0").value() == "instruction 2: expected r1, got r0");
  BOOST_CHECK_THROW(task->answer("w1i0"), Error);
  BOOST_CHECK_THROW(task->answer("i0r"), Error);
  BOOST_CHECK_THROW(task->answer("wr"), Error);
  BOOST_CHECK_THROW(task->answer(""), Error);
}

BOOST_AUTO_TEST_CASE(instructions_have_the_specified_frequencies) {
  for (const auto& [ignore, distribution] :
       {std::pair{0.6, ""}, {0.98, "sparse"}, {0.6, "2x"}, {0.0, ""}}) {
    const auto task = make({{"instructions", "128"}, {"ignore", text(ignore)}}, distribution);
    const Counts counts = count(*task, 400);
    const std::vector<double> shares{(1 - ignore) / 2, (1 - ignore) / 2, ignore};
    const bool has_ignore = ignore > 0;
    const std::size_t kinds = has_ignore ? 3 : 2;
    BOOST_TEST(chi_square_p(std::span(counts.letters).first(kinds),
                            std::span(shares).first(kinds)) > 1e-3);
    BOOST_TEST(chi_square_p(counts.written) > 1e-3);
    BOOST_TEST(chi_square_p(counts.first) > 1e-3);
    if (has_ignore) BOOST_TEST(chi_square_p(counts.ignored) > 1e-3);
    if (!has_ignore) BOOST_TEST(counts.letters[2] == 0);
  }
}

BOOST_AUTO_TEST_CASE(neighbouring_instructions_are_independent) {
  const auto task = make({});
  const Counts counts = count(*task, 100);
  const std::vector<double> shares{0.2, 0.2, 0.6};
  std::vector<double> expected;
  for (const double a : shares) {
    for (const double b : shares) expected.push_back(a * b);
  }
  BOOST_TEST(chi_square_p(counts.pairs, expected) > 1e-3);
}

// Compares the share of each letter (w, r, i) at each instruction with the expected share. A sample
// has a first, a middle and a last part with different shares. The first part has 1 to 16
// instructions, so instruction k < 16, counted from 0, is in it with probability (16 - k) / 16. The
// last part has 16 to 64 instructions.
BOOST_AUTO_TEST_CASE(drifting_letters_have_the_frequencies_of_each_part) {
  const auto task = make({}, "drift");
  BOOST_TEST(task->longest() == 512);
  constexpr std::size_t samples = 16'000, count = 256;
  // Row k of `counts` contains how often instruction k has the letter w, r and i.
  std::vector<std::vector<double>> counts(count, std::vector<double>(3));
  std::vector<double> bits(2);
  for (std::uint32_t index = 0; index < samples; ++index) {
    const std::string text = task->vocabulary().decode(draw(*task, index).tokens);
    BOOST_REQUIRE(text.size() == 2 * count && text[0] == 'w');
    for (std::size_t k = 0; k < count; ++k) {
      ++counts[k][std::string_view("wri").find(text[2 * k])];
      if (text[2 * k] != 'r') ++bits[text[2 * k + 1] == '1'];
    }
  }
  BOOST_TEST(chi_square_p(bits) > 1e-3);
  std::vector<double> middle_counts(3), middle_shares(3);
  // Two events are rare: reads among the first instructions of a sample, and writes among its last
  // ones. `rare` counts both.
  double rare = 0, rare_expected = 0;
  for (std::size_t k = 1; k < count; ++k) {
    const std::size_t from_end = count - k;
    const double first = k < 16 ? static_cast<double>(16 - k) / 16 : 0;
    const double last = from_end <= 16   ? 1
                        : from_end <= 64 ? static_cast<double>(65 - from_end) / 49
                                         : 0;
    const double middle = 1 - first - last;
    const std::vector<double> shares{first / 2 + middle * 0.0025, middle * 0.0025 + last * 0.9,
                                     first / 2 + middle * 0.995 + last * 0.1};
    if (middle == 1) {
      for (std::size_t letter = 0; letter < 3; ++letter) {
        middle_counts[letter] += counts[k][letter];
        middle_shares[letter] += shares[letter];
      }
      continue;
    }
    const std::size_t frequent = first > 0 ? 0 : 1;
    const double other = static_cast<double>(samples) - counts[k][frequent];
    BOOST_TEST(chi_square_p(std::vector{counts[k][frequent], other},
                            std::vector{shares[frequent], 1 - shares[frequent]}) > 1e-5);
    rare += counts[k][1 - frequent];
    rare_expected += shares[1 - frequent] * static_cast<double>(samples);
    if (last == 1) BOOST_TEST(counts[k][0] == 0);
  }
  BOOST_TEST(chi_square_p(middle_counts, middle_shares) > 1e-3);
  BOOST_TEST(rare_expected > 100);
  BOOST_TEST(std::abs(rare - rare_expected) < 4 * std::sqrt(rare_expected));
}

BOOST_AUTO_TEST_CASE(reads_are_scored_and_the_option_loss_selects_the_targets) {
  for (const bool all : {false, true}) {
    const auto task = make({{"instructions", "50"}, {"loss", all ? "all" : "reads"}});
    Rng rng(1, Purpose::test);
    const Sample sample = task->sample(rng, 0);
    BOOST_TEST(sample.tokens.size() == 100u);
    std::vector<std::int32_t> reads;
    for (std::int32_t i = 0; i < 100; i += 2) {
      const bool is_read =
          task->vocabulary().text(sample.tokens[static_cast<std::size_t>(i)]) == "r";
      if (is_read) reads.push_back(i);
      BOOST_TEST((sample.targets[static_cast<std::size_t>(i)] >= 0) == (is_read || all));
      BOOST_TEST((sample.targets[static_cast<std::size_t>(i) + 1] >= 0) == (all && i < 98));
    }
    BOOST_TEST(sample.asked == reads);
  }
}

BOOST_AUTO_TEST_CASE(a_sequence_is_right_if_all_its_reads_are_right) {
  const auto task = make({});
  const auto tokens = task->vocabulary().encode("w1r1i0r1w0r0");
  Sample sample{.tokens = tokens, .targets = std::vector<std::int32_t>(12, -1)};
  for (const std::int32_t read : {2, 6, 10}) {
    sample.asked.push_back(read);
    sample.targets[static_cast<std::size_t>(read)] = tokens[static_cast<std::size_t>(read) + 1];
  }
  const std::int32_t zero = task->vocabulary().at("0");
  const std::int32_t one = task->vocabulary().at("1");
  Tally tally;
  task->score(sample, std::vector{one, one, zero}, tally);
  task->score(sample, std::vector{one, zero, zero}, tally);
  const Sample silent{.tokens = task->vocabulary().encode("w1i0"), .targets = {-1, -1, -1, -1}};
  task->score(silent, {}, tally);
  BOOST_TEST(tally.at("reads").sum == 5);
  BOOST_TEST(tally.at("reads").count == 6);
  BOOST_TEST(tally.at("sequences").sum == 1);
  BOOST_TEST(tally.at("sequences").count == 2);
}

BOOST_AUTO_TEST_CASE(the_reference_of_a_read_is_the_last_write_or_read) {
  const auto task = make({});
  const Sample sample{.tokens = task->vocabulary().encode("w1i0r1i1i0r1w0r0"), .targets = {}};
  const auto rows = task->reference(sample);
  BOOST_TEST(rows.size() == 3u);
  const std::vector<std::pair<std::int32_t, std::vector<std::int32_t>>> expected{
      {4, {0, 1}}, {10, {4, 5}}, {14, {12, 13}}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    BOOST_TEST(rows.at(i).row == expected[i].first);
    BOOST_TEST(rows.at(i).columns == expected[i].second);
  }
}

BOOST_AUTO_TEST_CASE(distributions_change_their_named_options) {
  BOOST_TEST(make({})->longest() == 1024);
  BOOST_TEST(make({}, "2x")->longest() == 2048);
  BOOST_TEST(make({{"instructions", "64"}}, "4x")->longest() == 512);
  BOOST_TEST(make({}, "sparse")->longest() == 1024);
  BOOST_TEST(make({{"instructions", "8"}}, "drift")->longest() == 512);
}

BOOST_AUTO_TEST_CASE(options_can_be_set_as_typed_values) {
  const auto typed = FlipFlop{.instructions = 9, .ignore = 0.8, .every_token = true}.make();
  const auto named = make({{"instructions", "9"}, {"ignore", "0.8"}, {"loss", "all"}});
  Rng a(1, Purpose::test), b(1, Purpose::test);
  const Sample x = typed->sample(a, 0), y = named->sample(b, 0);
  BOOST_TEST(x.tokens == y.tokens);
  BOOST_TEST(x.targets == y.targets);
  BOOST_CHECK_THROW(FlipFlop{.instructions = 0}.make(), Error);
  BOOST_CHECK_THROW(FlipFlop{.ignore = 1.5}.make(), Error);
  const auto drift = FlipFlop{.instructions = 80, .drift = true}.make();
  BOOST_TEST(drift->longest() == 160);
  BOOST_TEST(refusal([] { FlipFlop{.instructions = 79, .drift = true}.make(); }) ==
             "flip-flop: expected at least 80 instructions, because option \"letters\" is "
             "\"drift\", got 79");
}

BOOST_AUTO_TEST_SUITE_END()
