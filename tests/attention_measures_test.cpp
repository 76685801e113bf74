#include "apps/run/attention_measures.h"

#include <cmath>
#include <map>
#include "tests/check.h"

#include "apps/run/batches.h"
#include "apps/run/inspection.h"
#include "apps/run/rollout.h"
#include "core/rng.h"
#include "nn/models/decode.h"
#include "tests/make_task.h"

BOOST_AUTO_TEST_SUITE(attention_measures_test)

using namespace longhand;
using namespace longhand::app;

namespace {

using Matrix = std::vector<double>;  // an n x n matrix, row by row

Matrix product(const Matrix& a, const Matrix& b, std::size_t n) {
  Matrix c(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
  }
  return c;
}

/// Returns a + I, where I is the identity, with each row scaled to sum to 1.
Matrix with_residual(Matrix a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    a[i * n + i] += 1;
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += a[i * n + j];
    for (std::size_t j = 0; j < n; ++j) a[i * n + j] /= sum;
  }
  return a;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

nn::Decoder mixed_model(Backend& backend, const tasks::Task& task, DType type = DType::f64) {
  return {backend,
          {.vocabulary = task.vocabulary().size(),
           .width = 24,
           .layers = 3,
           .mixers = nn::parse_layers("softmax:2x6,fal:1x6,chacal:1x6", 24),
           .inner = 16,
           .deviation = 0.8},
          5,
          {type}};
}

/// Returns the matrix C of the weights with which ChaCAL adds the values v to its outputs, over
/// chains of any number of steps. P are the weights of a single step, and P' is P without its
/// diagonal. C is computed row by row from
///   C = (1 - gamma) P + gamma P' C.
Matrix along_chains(const Matrix& p, double gamma, std::size_t n) {
  Matrix c(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      c[i * n + j] += (1 - gamma) * p[i * n + j];
      if (j == i) break;
      for (std::size_t k = 0; k <= j; ++k) c[i * n + k] += gamma * p[i * n + j] * c[j * n + k];
    }
  }
  return c;
}

/// Returns, for each layer, the mean over its heads of the weights on the values v. look_inside()
/// returns the attention weights P of each head. For head 3, a ChaCAL head, they are first
/// converted to weights on the values.
std::vector<Matrix> mean_heads(nn::Decoder& model, std::span<const std::int32_t> tokens) {
  const std::size_t n = tokens.size();
  std::vector<Matrix> means(static_cast<std::size_t>(model.config().layers), Matrix(n * n));
  for (const HeadView& view : look_inside(model, nn::make_input(model.backend(), tokens))) {
    Matrix& mean = means[static_cast<std::size_t>(view.layer)];
    const Matrix read = view.head == 3 ? along_chains(view.weights, 0.9, n) : view.weights;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const double weight =
            view.weights.empty()
                ? view.selected[i] >= 0 && view.selected[i] + 1 == static_cast<std::int64_t>(j)
                : read[i * n + j];
        mean[i * n + j] += weight / 4;
      }
    }
  }
  return means;
}

Matrix rollout_by_hand(const std::vector<Matrix>& layers, std::size_t n) {
  Matrix r = with_residual(layers[0], n);
  for (std::size_t l = 1; l < layers.size(); ++l) r = product(with_residual(layers[l], n), r, n);
  return r;
}

struct Expected {
  // For each (layer, head), the sum of the entropies of all rows of attention weights.
  std::map<std::pair<std::int64_t, std::int64_t>, double> entropies;
  tasks::Moments attention_score, when_right, when_wrong;
  double tokens = 0;
};

/// Computes the expected measures from look_inside() and nn::predict(), one sample at a time.
Expected measures_by_hand(nn::Decoder& model, const tasks::Task& task,
                          const EvaluationOptions& options) {
  Expected expected;
  for_samples(task, options, [&](std::span<const tasks::Sample> samples) {
    for (const tasks::Sample& sample : samples) {
      const std::size_t n = sample.tokens.size();
      const Matrix r = rollout_by_hand(mean_heads(model, sample.tokens), n);
      BOOST_TEST(
          distance(rollout_of(model, nn::make_input(model.backend(), sample.tokens)).to_doubles(),
                   r) < 1e-12);
      const auto said = nn::predict(model, batch_of({&sample, 1}, task));
      tasks::Moments of_sample;
      for (const tasks::ReferenceRow& row : task.reference(sample)) {
        const auto at = static_cast<std::size_t>(row.row);
        double on_reference = 0;
        for (const std::int32_t column : row.columns) {
          on_reference += r[at * n + static_cast<std::size_t>(column)];
        }
        of_sample.add(on_reference);
        (said[at] == sample.targets[at] ? expected.when_right : expected.when_wrong)
            .add(on_reference);
      }
      expected.attention_score.add(of_sample.mean);
      for (const HeadView& view :
           look_inside(model, nn::make_input(model.backend(), sample.tokens))) {
        for (const double p : view.weights) {
          if (p > 0) expected.entropies[{view.layer, view.head}] -= p * std::log(p);
        }
      }
      expected.tokens += static_cast<double>(n);
    }
  });
  return expected;
}

}  // namespace

// The attention weights A have the rows (1), (1/2 1/2), (1/4 1/4 1/2), and I is the identity.
// The rollout of one layer with these weights is (A + I) / 2.
// The rollout of two such layers is (A + I)^2 / 4.
BOOST_AUTO_TEST_CASE(rollout_of_a_small_example_is_right) {
  const auto backend = make_reference_backend();
  const Matrix a{1, 0, 0, 0.5, 0.5, 0, 0.25, 0.25, 0.5};
  const Tensor layer = Tensor::from(*backend, {3, 3}, DType::f64, a);
  Rollout rollout(*backend, DType::f64, 3, 0, 3);
  rollout.add_earlier_layer(layer);
  BOOST_TEST(rollout.matrix().to_doubles() == (Matrix{1, 0, 0, 0.25, 0.75, 0, 0.125, 0.125, 0.75}),
             boost::test_tools::per_element());
  rollout.add_earlier_layer(layer);
  BOOST_TEST(
      rollout.matrix().to_doubles() == (Matrix{1, 0, 0, 0.4375, 0.5625, 0, 0.25, 0.1875, 0.5625}),
      boost::test_tools::per_element());
  BOOST_CHECK_THROW(Rollout(*backend, DType::f64, 3, 2, 2), Error);
}

// Tests panels of any width and single rows of the rollout. The attention weights of a row may sum
// to less than 1 or to 0, as those of FAL do.
BOOST_AUTO_TEST_CASE(rollout_is_the_product_of_its_layers) {
  constexpr std::size_t n = 23;
  const auto backend = make_reference_backend();
  Rng rng(3, Purpose::test);
  std::vector<Matrix> layers(4, Matrix(n * n));
  for (Matrix& layer : layers) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j <= i && i % 5 != 2; ++j) layer[i * n + j] = rng.uniform() / n;
    }
  }
  const Matrix expected = rollout_by_hand(layers, n);
  for (const std::int64_t panel : {1, 4, 7, 23, 512}) {
    for (const auto& [first, rows] : {std::pair{0, 23}, {9, 5}, {22, 1}, {0, 1}}) {
      Rollout rollout(*backend, DType::f64, n, first, rows, panel);
      for (std::size_t l = layers.size(); l-- > 0;) {
        rollout.add_earlier_layer(Tensor::from(*backend, {n, n}, DType::f64, layers[l]));
      }
      const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(n) * first;
      const Matrix wanted(begin, begin + static_cast<std::ptrdiff_t>(n) * rows);
      BOOST_TEST_CONTEXT("panels of " << panel << ", rows from " << first) {
        BOOST_TEST(distance(rollout.matrix().to_doubles(), wanted) < 1e-14);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(measures_follow_from_their_definitions) {
  const auto backend = make_reference_backend();
  const auto task = make_task("reversal");
  nn::Decoder model = mixed_model(*backend, *task);
  const EvaluationOptions options{.samples = 12, .tokens_at_once = 60, .seed = 4};
  Expected expected = measures_by_hand(model, *task, options);
  const AttentionMeasures measures = measure_attention(model, *task, options);
  BOOST_TEST(measures.samples == 12);
  const auto close = [](const tasks::Moments& a, const tasks::Moments& b) {
    BOOST_TEST(a.count == b.count);
    BOOST_TEST(std::abs(a.mean - b.mean) < 1e-12);
    BOOST_TEST(std::abs(a.variance() - b.variance()) < 1e-12);
  };
  close(measures.attention_score, expected.attention_score);
  close(measures.when_right, expected.when_right);
  close(measures.when_wrong, expected.when_wrong);
  BOOST_TEST(measures.entropies.size() == 12u);
  double least = 1e9, greatest = 0;
  for (const HeadEntropy& head : measures.entropies) {
    const double entropy = expected.entropies[{head.layer, head.head}] / expected.tokens;
    BOOST_TEST(std::abs(head.entropy - entropy) < 1e-12);
    least = std::min(least, entropy);
    greatest = std::max(greatest, entropy);
  }
  // The minimum over all heads is 0, because a FAL head selects a single key.
  BOOST_TEST(std::abs(measures.entropy.least - least) < 1e-12);
  BOOST_TEST(std::abs(measures.entropy.greatest - greatest) < 1e-12);
  BOOST_TEST(measures.entropy.heads.count == 12);

  const auto ranked = rank_heads(model, *task, options);
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    BOOST_TEST(measures.heads[i].layer == ranked[i].layer);
    BOOST_TEST(measures.heads[i].head == ranked[i].head);
    BOOST_TEST(measures.heads[i].sum() == ranked[i].sum());
  }
}

BOOST_AUTO_TEST_CASE(counts_by_position_and_length_add_up_to_the_totals) {
  const auto backend = make_backend("cpu");
  const auto task = make_task("successor");
  nn::Decoder model = mixed_model(*backend, *task, DType::f32);
  const EvaluationOptions options{.samples = 150, .seed = 2};
  const AttentionMeasures measures = measure_attention(model, *task, options);
  const tasks::Tally tally = evaluate(model, *task, options);
  std::int64_t asked = 0, wrong = 0, samples = 0, exact = 0, outputs = 0, right = 0, before = 0;
  for (const PlaceErrors& place : measures.places) {
    BOOST_TEST(place.place == &place - measures.places.data());
    // Answers have different lengths. Place k exists only in answers with more than k scored
    // outputs, so no place has more predictions than the place before it.
    BOOST_TEST(place.count <= (before == 0 ? place.count : before));
    before = place.count;
    asked += place.count;
    wrong += place.wrong;
  }
  std::int64_t longest = 0;
  for (const LengthScores& at : measures.lengths) {
    BOOST_TEST(at.shortest > longest);
    BOOST_TEST(at.longest >= at.shortest);
    longest = at.longest;
    samples += at.samples;
    exact += at.exact;
    outputs += at.asked;
    right += at.right;
  }
  const tasks::Metric& tokens = tally.at("tokens");
  BOOST_TEST(measures.places[0].count == 150);
  BOOST_TEST(asked == tokens.count);
  BOOST_TEST(outputs == tokens.count);
  BOOST_TEST(static_cast<double>(asked - wrong) == tokens.sum);
  BOOST_TEST(static_cast<double>(right) == tokens.sum);
  BOOST_TEST(samples == 150);
  BOOST_TEST(static_cast<double>(exact) == tally.at("sequences").sum);
  BOOST_TEST(wrong > 0);
}

// In the task `chains`, the model predicts several classes for each token, one of each group of
// classes. Several of these predictions may be scored.
BOOST_AUTO_TEST_CASE(chains_are_measured_too) {
  const auto backend = make_backend("cpu");
  const auto task = make_task("chains", {{"blocks", "3"}, {"size", "4"}});
  nn::Decoder model(*backend,
                    {.vocabulary = task->vocabulary().size(),
                     .width = 16,
                     .layers = 2,
                     .mixers = nn::parse_layers("chacal:2", 16),
                     .inner = 16,
                     .outputs = {task->outputs().groups * task->outputs().classes}},
                    1);
  const AttentionMeasures measures = measure_attention(model, *task, {.samples = 20});
  BOOST_TEST(measures.when_right.count + measures.when_wrong.count == 20 * 8);
  BOOST_TEST(measures.attention_score.count == 20);
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_gives_the_same_measures) {
  const auto task = make_task("reversal");
  std::vector<AttentionMeasures> all;
  for (const int threads : {1, 2, 3}) {
    const auto backend = make_cpu_backend({.threads = threads});
    nn::Decoder model = mixed_model(*backend, *task, DType::f32);
    all.push_back(measure_attention(model, *task, {.samples = 30}));
    BOOST_TEST(all.back().attention_score.mean == all[0].attention_score.mean);
    BOOST_TEST(all.back().when_wrong.squares == all[0].when_wrong.squares);
    BOOST_TEST(all.back().entropy.heads.mean == all[0].entropy.heads.mean);
  }
  // The measures computed in f32 must be close to those computed in f64.
  const auto reference = make_reference_backend();
  nn::Decoder model = mixed_model(*reference, *task);
  const AttentionMeasures wide = measure_attention(model, *task, {.samples = 30});
  BOOST_TEST(std::abs(all[0].attention_score.mean / wide.attention_score.mean - 1) < 1e-3);
}

BOOST_AUTO_TEST_SUITE_END()
