#include "apps/run/reference_scores.h"

#include <map>
#include "tests/check.h"

#include "apps/run/inspection.h"
#include "nn/mixer_core/head_weights.h"
#include "tests/make_task.h"

BOOST_AUTO_TEST_SUITE(reference_scores_test)

using namespace longhand;
using namespace longhand::app;

namespace {

std::unique_ptr<tasks::Task> reversal() { return make_task("reversal", {{"length", "1-6"}}); }

/// A model with softmax, FAL and ChaCAL heads. The two softmax heads share their keys and have a
/// window. The ChaCAL head has a temperature.
nn::Decoder mixed_model(Backend& backend, const tasks::Task& task, DType type = DType::f64) {
  return {backend,
          {.vocabulary = task.vocabulary().size(),
           .width = 24,
           .layers = 2,
           .mixers =
               nn::parse_layers("softmax:2/1x6{window=5},fal:2x4,chacal:1x6{temper=position}", 24),
           .inner = 16,
           .deviation = 0.8},
          5,
          {type}};
}

}  // namespace

// Computes the weights of one head and one sequence at a time. They must equal the weights that are
// computed for all heads and sequences together.
BOOST_AUTO_TEST_CASE(the_weights_of_a_head_are_its_part_of_all_weights) {
  const auto backend = make_reference_backend();
  const auto task = reversal();
  nn::Decoder model = mixed_model(*backend, *task);
  const std::vector<std::int32_t> tokens{4, 9, 1, 62, 1, 9, 7, 62, 7, 3}, lengths{6, 4};
  const nn::Input input = nn::make_input(*backend, tokens, lengths);
  const auto layers = model.look(input);
  for (const nn::MixerView& view : layers[1]) {
    if (!view.scores) continue;
    const std::vector<double> all = view.all_weights().to_doubles();
    std::size_t at = 0;
    for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
      for (std::int64_t head = 0; head < view.scores->q.heads; ++head) {
        const auto one = nn::head_weights(view, input.segments, sequence, head).to_doubles();
        BOOST_TEST(one == std::vector<double>(all.begin() + at, all.begin() + at + one.size()),
                   boost::test_tools::per_element());
        at += one.size();
      }
    }
    BOOST_TEST(at == all.size());
    // This view contains the weights, so they are not computed from queries and keys.
    const nn::MixerView shown{.weights = view.all_weights()};
    BOOST_TEST(nn::head_weights(shown, input.segments, 1, 0).to_doubles() ==
                   nn::head_weights(view, input.segments, 1, 0).to_doubles(),
               boost::test_tools::per_element());
  }
  const nn::MixerView& fal = layers[1][1];
  const std::vector<std::int32_t> selected = fal.selected.to_ints();
  const auto rows = nn::head_weights(fal, input.segments, 1, 1, DType::f64).to_doubles();
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int32_t key = selected[static_cast<std::size_t>((6 + i) * 2 + 1)];
    for (std::int64_t j = 0; j < 4; ++j) {
      BOOST_TEST(rows[static_cast<std::size_t>(i * 4 + j)] == (key >= 0 && j == key + 1));
    }
  }
  BOOST_TEST(!nn::head_weights({}, input.segments, 0, 0));
}

// In the sample dh1=1hd of the task reversal, three rows predict 1, h and d. The reference of each
// of these rows is one column, the token that the answer copies. The row that predicts the end has
// no reference.
BOOST_AUTO_TEST_CASE(a_reference_becomes_a_matrix) {
  const auto backend = make_reference_backend();
  const auto task = reversal();
  const ReferenceMask mask =
      reference_mask(*task, task->sample_of("dh1=1hd"), *backend, DType::f64);
  BOOST_TEST(mask.first == 3);
  BOOST_TEST(mask.rows == 3);
  BOOST_TEST((mask.counted == std::vector<std::int32_t>{3, 4, 5}));
  BOOST_TEST((mask.entries.to_doubles() == std::vector<double>{0, 0, 1, 0, 0, 0, 0, 0,  //
                                                               0, 1, 0, 0, 0, 0, 0, 0,  //
                                                               1, 0, 0, 0, 0, 0, 0, 0}));
  std::vector<double> matrix(24);
  for (std::size_t i = 0; i < 24; ++i) matrix[i] = static_cast<double>(i);
  const auto sums = reference_sums(Tensor::from(*backend, {3, 8}, DType::f64, matrix), mask);
  BOOST_TEST((sums == std::vector<double>{2, 9, 16}));
}

// Computes the score of each head from the weights that look_inside() returns for each sample.
BOOST_AUTO_TEST_CASE(scores_are_sums_of_weights_on_the_reference) {
  const auto backend = make_reference_backend();
  const auto task = reversal();
  nn::Decoder model = mixed_model(*backend, *task);
  const EvaluationOptions options{.samples = 7, .tokens_at_once = 30, .seed = 4};
  std::map<std::pair<std::int64_t, std::int64_t>, double> sums;
  std::int64_t rows = 0;
  for_samples(*task, options, [&](std::span<const tasks::Sample> samples) {
    for (const tasks::Sample& sample : samples) {
      const auto tokens = static_cast<std::int64_t>(sample.tokens.size());
      const auto reference = task->reference(sample);
      rows += std::ssize(reference);
      for (const HeadView& view :
           look_inside(model, nn::make_input(model.backend(), sample.tokens))) {
        double& sum = sums[{view.layer, view.head}];
        for (const tasks::ReferenceRow& row : reference) {
          for (const std::int32_t column : row.columns) {
            sum +=
                view.weights.empty()
                    ? view.selected[static_cast<std::size_t>(row.row)] + 1 == column && column > 0
                    : view.weights[static_cast<std::size_t>(row.row * tokens + column)];
          }
        }
      }
    }
  });
  const std::vector<HeadScore> heads = rank_heads(model, *task, options);
  BOOST_TEST(heads.size() == 10u);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const HeadScore& head = heads[i];
    BOOST_TEST(head.rows.count == rows);
    BOOST_TEST(std::abs(head.sum() - sums.at({head.layer, head.head})) < 1e-12);
    if (i > 0) BOOST_TEST(head.score() <= heads[i - 1].score());
  }
  BOOST_TEST(heads.front().score() > heads.back().score());
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_gives_the_same_scores) {
  const auto task = reversal();
  std::vector<HeadScore> first;
  for (const int threads : {1, 2, 3}) {
    const auto backend = make_cpu_backend({.threads = threads});
    nn::Decoder model = mixed_model(*backend, *task, DType::f32);
    const auto heads = rank_heads(model, *task, {.samples = 20});
    if (first.empty()) first = heads;
    for (std::size_t i = 0; i < heads.size(); ++i) {
      BOOST_TEST(heads[i].layer == first[i].layer);
      BOOST_TEST(heads[i].head == first[i].head);
      BOOST_TEST(heads[i].sum() == first[i].sum());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
