#include "apps/recipes/sorting_construction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include "tests/check.h"

#include "apps/recipes/sorting_probe.h"
#include "apps/run/evaluation.h"
#include "apps/run/run_folder.h"
#include "core/error.h"
#include "core/rng.h"
#include "nn/models/decode.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(sorting_construction_test)

using namespace longhand;
using namespace longhand::app;

namespace {

struct Sorter {
  std::shared_ptr<Backend> backend;
  SortingConstruction construction;
  std::unique_ptr<nn::Decoder> model;

  Sorter(std::shared_ptr<Backend> on, const SortingConstruction& c, DType type)
      : backend(std::move(on)), construction(c), model(make_sorting_decoder(*backend, c, type)) {}

  std::vector<Tokens> sort(const std::vector<Tokens>& inputs) const {
    std::vector<Tokens> prompts = inputs;
    nn::GenerateOptions options;
    for (Tokens& prompt : prompts) {
      options.most_each.push_back(static_cast<std::int64_t>(prompt.size()));
      prompt.push_back(construction.delimiter());
    }
    return generate(*model, prompts, options);
  }

  void sorts(const std::vector<Tokens>& inputs) const {
    const std::vector<Tokens> said = sort(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tokens sorted = inputs[i];
      std::ranges::sort(sorted);
      BOOST_TEST_CONTEXT("an input of " << sorted.size() << " from " << sorted.front() << " to "
                                        << sorted.back()) {
        BOOST_TEST(said[i] == sorted);
      }
    }
  }
};

Sorter in_f64(const SortingConstruction& construction) {
  return {make_reference_backend(), construction, DType::f64};
}

Sorter in_f32(const SortingConstruction& construction) {
  return {make_cpu_backend({.threads = 2, .math = Math::exact}), construction, DType::f32};
}

/// All sequences of 1 to `longest` numbers from 1 to q.
std::vector<Tokens> every_input(std::int32_t q, std::size_t longest) {
  std::vector<Tokens> all{{}};
  for (std::size_t begin = 0, length = 1; length <= longest; ++length) {
    const std::size_t end = all.size();
    for (; begin < end; ++begin) {
      for (std::int32_t a = 1; a <= q; ++a) {
        all.push_back(all[begin]);
        all.back().push_back(a);
      }
    }
  }
  all.erase(all.begin());
  return all;
}

Tokens copies(std::initializer_list<std::pair<std::int32_t, std::size_t>> counts,
              std::uint32_t seed) {
  Tokens input;
  for (const auto& [number, count] : counts) input.insert(input.end(), count, number);
  Rng rng(1, Purpose::test, 0, seed);
  rng.shuffle(input.begin(), input.end());
  return input;
}

/// The coordinates, in f64, of the residual stream of a sequence after each part of the model.
struct States {
  std::map<std::string, Tensor> seen;
  std::int64_t directions;

  States(const Sorter& sorter, const Tokens& tokens)
      : directions(sorter.construction.directions()) {
    sorter.model->watch = [this](const std::string& name, const Tensor& x) { seen[name] = x; };
    const std::vector<std::int32_t> length{static_cast<std::int32_t>(tokens.size())};
    sorter.model->features(nn::make_input(*sorter.backend, tokens, length));
    sorter.model->watch = nullptr;
  }

  double at(const std::string& name, std::int64_t token, std::int64_t direction) const {
    const Tensor row = seen.at(name).slice(token, 1);
    const std::vector<double> x = row.to_doubles();
    const double above = x[static_cast<std::size_t>(direction)];
    const double below = x[static_cast<std::size_t>(directions + direction)];
    BOOST_TEST(std::abs(above + below) < 1e-12);
    return (above - below) / 2;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_short_input_of_a_small_alphabet_is_sorted) {
  const auto construction = SortingConstruction::for_inputs(3, 5);
  const std::vector<Tokens> all = every_input(3, 5);
  BOOST_TEST(all.size() == 363);
  in_f64(construction).sorts(all);
  in_f32(construction).sorts(all);
  in_f64(SortingConstruction::for_inputs(2, 7)).sorts(every_input(2, 7));
  in_f64(SortingConstruction::for_inputs(1, 4)).sorts(every_input(1, 4));
}

BOOST_AUTO_TEST_CASE(a_model_built_for_long_inputs_also_sorts_short_ones) {
  const auto construction = SortingConstruction::for_inputs(3, 100000);
  in_f64(construction).sorts(every_input(3, 4));
}

BOOST_AUTO_TEST_CASE(long_inputs_are_sorted_however_many_copies_there_are) {
  const Sorter sorter = in_f32(SortingConstruction::for_inputs(100, 1000));
  sorter.sorts({copies({{50, 1000}}, 1), copies({{7, 999}, {8, 1}}, 2),
                copies({{7, 1}, {8, 999}}, 3), copies({{1, 500}, {100, 500}}, 4),
                copies({{99, 333}, {100, 333}, {1, 334}}, 5)});
  std::vector<Tokens> random;
  for (std::uint32_t i = 0; i < 40; ++i) {
    Rng rng(2, Purpose::test, 0, i);
    random.emplace_back();
    const auto from = 1 + rng.below(100), length = 2 + rng.below(99);
    for (std::uint32_t n = 0; n < length; ++n) {
      random.back().push_back(1 + static_cast<std::int32_t>(rng.below(from)));
    }
  }
  sorter.sorts(random);
}

BOOST_AUTO_TEST_CASE(the_theorems_characteristics_hold_at_every_position) {
  const std::vector<Tokens> inputs{{5, 17, 43, 78, 92},
                                   {9, 9, 4, 9, 4, 1},
                                   {20, 20},
                                   copies({{3, 40}, {60, 1}, {99, 20}}, 7),
                                   {100, 1},
                                   copies({{10, 3}, {11, 3}, {12, 3}, {13, 3}}, 8)};
  const auto construction = SortingConstruction::for_inputs(100, 1000);
  for (const bool f64 : {true, false}) {
    const Sorter sorter = f64 ? in_f64(construction) : in_f32(construction);
    const auto all = characteristics(*sorter.model, inputs, construction.delimiter());
    BOOST_TEST(all.size() == 4);
    for (const Characteristic& c : all) {
      BOOST_TEST_CONTEXT(c.name) {
        BOOST_TEST(c.positions > 0);
        BOOST_TEST(c.held == c.positions);
      }
    }
    // For statements 1 (copy) and 2 (minimum) of the theorem, the projection onto the expected
    // number is 1, and all other projections are 0. The lead is their difference.
    BOOST_TEST(all[0].least_lead > 0.999);
    BOOST_TEST(all[1].least_lead > 0.999);
    // For statement 3 (identity and successor), the projection is 1 + c for the number at the
    // position and epsilon = 1/2 for the next greater number of the input. All other projections
    // are 0. Here c = (a - b) / (a + b), where a and b count the copies of the number before and
    // after the delimiter ⊥. The lead is epsilon / (1 + c), which is above 1/4 because c < 1.
    BOOST_TEST(all[2].least_lead > 0.24);
    BOOST_TEST(all[3].least_lead > 0.4);
  }
}

BOOST_AUTO_TEST_CASE(hidden_states_agree_with_the_derivation) {
  const auto construction = SortingConstruction::for_inputs(9, 50);
  const Sorter sorter = in_f64(construction);
  const SortingDirections at(9);
  const Tokens input{4, 7, 4, 2, 4};
  // The input of the model is 4 7 4 2 4, then 10 for the delimiter ⊥, then 2 4 4 4.
  const Tokens tokens = with_answer(input, construction.delimiter());
  const States states(sorter, tokens);
  const auto is = [&](const char* name, std::int64_t token, std::int64_t direction, double value) {
    BOOST_TEST_CONTEXT(name << " of token " << token << ", direction " << direction) {
      BOOST_TEST(std::abs(states.at(name, token, direction) - value) < 1e-4);
    }
  };
  // The directions e, tilde, hat and hat' are those of SortingDirections. After the first layer,
  // the state of a number before the delimiter ⊥ is the sum of its directions e, tilde and hat'.
  // The state of ⊥ is the sum of the directions e and tilde of ⊥ and hat' of the smallest number.
  is("blocks.0.feed_forward", 1, at.e(7), 1);
  is("blocks.0.feed_forward", 1, at.tilde(7), 1);
  is("blocks.0.feed_forward", 1, at.hat_prime(7), 1);
  is("blocks.0.feed_forward", 5, at.e(10), 1);
  is("blocks.0.feed_forward", 5, at.tilde(10), 1);
  is("blocks.0.feed_forward", 5, at.hat_prime(2), 1);
  // After the first layer, the state of a number after the delimiter ⊥ is e - tilde + hat' of this
  // number. Its coordinate in the direction tilde of ⊥ is 0.
  is("blocks.0.feed_forward", 8, at.e(4), 1);
  is("blocks.0.feed_forward", 8, at.tilde(4), -1);
  is("blocks.0.feed_forward", 8, at.tilde(10), 0);
  is("blocks.0.feed_forward", 8, at.hat_prime(4), 1);
  // In the direction `hat` of a number, the state has the coordinate (a - b) / (a + b), where a is
  // the number of its copies before the delimiter ⊥ and b the number of its copies after ⊥. The
  // number 4 has a = 3. At tokens 7, 8 and 9 it has b = 1, 2 and 3.
  is("blocks.1.mixing", 6, at.hat(2), 0);
  is("blocks.1.mixing", 7, at.hat(4), 2.0 / 4);
  is("blocks.1.mixing", 8, at.hat(4), 1.0 / 5);
  is("blocks.1.mixing", 9, at.hat(4), 0);
  is("blocks.1.mixing", 9, at.hat_prime(4), 1);
  is("blocks.1.mixing", 9, at.hat_prime(7), construction.successor);
  // The coordinate of a number in its direction hat' is set to 0 if and only if no copy of it is
  // left.
  is("blocks.1.feed_forward", 9, at.hat_prime(4), 0);
  is("blocks.1.feed_forward", 9, at.hat_prime(7), construction.successor);
  BOOST_TEST(states.at("blocks.1.feed_forward", 8, at.hat(4)) > 1 + construction.successor);
}

BOOST_AUTO_TEST_CASE(the_construction_printed_in_the_paper_moves_on_too_early) {
  const Sorter printed = in_f64(SortingConstruction::as_printed(6, 3));
  const Tokens said = printed.sort({{5, 5, 6}}).front();
  BOOST_TEST(said[0] == 5);
  // The output should be 5 5 6, but after the first 5 the model outputs 6. The reason is that
  // (a - b) / (a + b) = 1/3 is less than epsilon = 1/2. Here a = 2 is the number of fives in the
  // input, and b = 1 the number of fives in the output so far.
  BOOST_TEST(said[1] == 6);
}

BOOST_AUTO_TEST_CASE(more_copies_than_the_design_allows_are_lost) {
  const Sorter sorter = in_f64(SortingConstruction::for_inputs(2, 4));
  const Tokens few = copies({{1, 4}, {2, 1}}, 9), many = copies({{1, 40}, {2, 1}}, 9);
  sorter.sorts({few});
  Tokens sorted = many;
  std::ranges::sort(sorted);
  BOOST_TEST(sorter.sort({many}).front() != sorted);
}

BOOST_AUTO_TEST_CASE(a_saved_construction_can_be_loaded_and_sorts) {
  const TemporaryFolder folder;
  const Sorter sorter = in_f32(SortingConstruction::for_inputs(5, 20));
  const auto path = folder / "construction";
  save_as_run(*sorter.model, sorter.construction, path);
  save_as_run(*sorter.model, sorter.construction, path);  // this call replaces the first run
  LoadedRun run = load_run(path);
  BOOST_TEST(run.step == 0);
  const tasks::Tally tally =
      evaluate(*run.model, *run.task, {.samples = 50, .reading = Reading::decoded});
  BOOST_TEST(tally.at("sequences").mean() == 1);
  const Sorter other = in_f32(SortingConstruction::for_inputs(6, 20));
  BOOST_CHECK_THROW(save_as_run(*other.model, other.construction, path), Error);
}

BOOST_AUTO_TEST_CASE(sizes_out_of_range_are_refused) {
  const auto backend = make_reference_backend();
  for (const auto& [numbers, longest] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 5}, {5, 0}, {5000, 5}}) {
    BOOST_CHECK_THROW(
        make_sorting_decoder(*backend, SortingConstruction::for_inputs(numbers, longest)), Error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
