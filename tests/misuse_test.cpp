// Tests that wrong calls of the C++ interface throw a clear error instead of computing wrong
// numbers or accessing memory out of bounds. scripts/sanitize.sh runs this suite with the
// undefined-behaviour sanitizer. This also finds integer overflow in the code that checks the
// arguments.
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include "autograd/attention.h"
#include "autograd/convolution.h"
#include "autograd/elementwise.h"
#include "autograd/rearrange.h"
#include "core/backend.h"
#include "core/forwarding.h"
#include "nn/layers/dropout.h"
#include "nn/models/sampling.h"
#include "nn/training/optimizer.h"
#include "nn/training/schedule.h"
#include "tests/head_problem.h"
#include "tests/random_tensor.h"
#include "tests/refusal.h"

namespace misuse_test {

using namespace longhand;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// A backend that calls a given function instead of executing operations.
struct Calling : Backend {
  explicit Calling(std::function<void()> body)
      : Backend("calling", {}, host_memory()), called(std::move(body)) {}
  void require_dtype(DType) const override {}
  void upload(void*, const void*, std::size_t) override {}
  void download(void*, const void*, std::size_t) override {}
  void synchronize() override {}

  std::function<void()> called;
};

template <class Op>
void dispatch(Calling& backend, const Op&) {
  backend.called();
}

}  // namespace misuse_test

BOOST_AUTO_TEST_SUITE(misuse_test)

using namespace longhand;
using namespace ::misuse_test;

BOOST_AUTO_TEST_CASE(an_operation_is_refused_while_another_thread_runs_one) {
  std::atomic<bool> runs = false, ends = false;
  const auto backend = std::make_shared<Forwarding<Calling>>([&] {
    runs = true;
    while (!ends) std::this_thread::yield();
  });
  const Tensor y(*backend, {2}, DType::f32);
  std::thread other([&] { (*backend)(Fill{.value = 1, .y = y}); });
  while (!runs) std::this_thread::yield();
  const std::string said =
      refusal([&] { (*backend)(longhand::Scale{.x = y, .alpha = 1, .y = y}); });
  ends = true;
  other.join();
  BOOST_TEST(said ==
             "scale: another thread is using this calling backend; only one thread at a time may "
             "use a backend");
  // After the other thread's operation has ended, the backend can be used again.
  BOOST_CHECK_NO_THROW((*backend)(Fill{.value = 1, .y = y}));
}

BOOST_AUTO_TEST_CASE(nested_operations_are_accepted_and_a_failed_one_releases_the_backend) {
  int depth = 0;
  std::shared_ptr<Backend> backend;
  std::optional<Tensor> y;
  backend = std::make_shared<Forwarding<Calling>>([&] {
    if (++depth == 1) (*backend)(Fill{.value = 1, .y = *y});
    fail("the operation failed");
  });
  y.emplace(*backend, Shape{2}, DType::f32);
  BOOST_TEST(refusal([&] { (*backend)(Fill{.value = 1, .y = *y}); }) == "the operation failed");
  BOOST_TEST(depth == 2);
  std::string said;
  std::thread([&] { said = refusal([&] { (*backend)(Fill{.value = 1, .y = *y}); }); }).join();
  BOOST_TEST(said == "the operation failed");
}

BOOST_AUTO_TEST_CASE(two_threads_that_multiply_on_one_backend_get_an_error_and_no_wrong_product) {
  const auto backend = make_cpu_backend({.threads = 1});
  const Tensor a = random_tensor(*backend, {96, 96}, DType::f32, 1);
  const Tensor right(*backend, a.shape(), a.dtype());
  const auto multiply = [&](const Tensor& y) { (*backend)(Matmul{.a = a, .b = a, .c = y}); };
  multiply(right);
  const std::vector<double> expected = right.to_doubles();
  std::atomic<bool> refused = false, wrong = false;
  const auto work = [&] {
    const Tensor y(*backend, a.shape(), a.dtype());
    for (int i = 0; i < 1'000'000 && !refused && !wrong; ++i) {
      try {
        multiply(y);
        if (y.to_doubles() != expected) wrong = true;
      } catch (const Error&) {
        refused = true;
      }
    }
  };
  std::thread other(work);
  work();
  other.join();
  BOOST_TEST(refused);
  BOOST_TEST(!wrong);
}

BOOST_AUTO_TEST_CASE(rows_beyond_a_tensor_are_refused_whatever_their_sum) {
  const auto backend = make_reference_backend();
  const Tensor x = Tensor::zeros(*backend, {4, 3}, DType::f32);
  BOOST_TEST(refusal([&] { x.slice(largest, 1); }) ==
             "slice: expected rows within [4, 3], got 1 rows from row 9223372036854775807");
  for (const std::int64_t first : {largest, least, std::int64_t{-1}, std::int64_t{5}}) {
    for (const std::int64_t count : {largest, std::int64_t{1}}) {
      expect_refusal([&] { x.slice(first, count); }, "expected rows within [4, 3]");
      expect_refusal([&] { slice(Var(x), first, count); }, "expected rows within [4, 3]");
      expect_refusal([&] { narrow(Var(x), 1, first, count); },
                     "narrow: expected a range within the 3 entries of the axis");
      expect_refusal(
          [&] {
            split(Var(x), 1, {count, first});
          },
          "narrow: expected a range within the 3 entries of the axis");
    }
  }
  const Tensor none(*backend, {largest, 0}, DType::f32);
  expect_refusal([&] { concat({Var(none), Var(none)}, 0); }, "fewer than 2^63 entries");
}

BOOST_AUTO_TEST_CASE(steps_that_leave_a_tensor_are_refused_whatever_their_product) {
  const auto backend = make_reference_backend();
  const Tensor x = Tensor::zeros(*backend, {4, 3}, DType::f32);
  const Tensor y(*backend, {4, 3}, DType::f32);
  for (const Steps& from :
       {Steps{0, {largest, 1}}, Steps{largest, {3, 1}}, Steps{0, {largest / 2, largest / 2}},
        Steps{0, {3, 2}}, Steps{least, {3, 1}}, Steps{0, {-3, 1}}}) {
    expect_refusal(
        [&] {
          (*backend)(Rearrange{
              .shape = x.shape(), .x = x, .from = from, .y = y, .to = row_major(x.shape())});
        },
        "rearrange: from: expected an offset and strides that select only entries of x, whose "
        "shape is [4, 3]");
  }
}

BOOST_AUTO_TEST_CASE(heads_beyond_the_columns_are_refused_whatever_their_product) {
  const auto backend = make_reference_backend();
  const HeadProblem p(*backend, DType::f32, {3, 4}, 4, 2, 3, 2);
  struct Columns {
    std::int64_t first, heads, width;
  };
  for (const Columns& c :
       {Columns{0, std::int64_t{1} << 62, 4}, Columns{0, 4, std::int64_t{1} << 62},
        Columns{largest, 4, 3}, Columns{least, 4, 3}, Columns{0, -4, 3}, Columns{0, 4, -3},
        Columns{0, largest, largest}}) {
    ScoreVars s = p.scores();
    s.q = {s.q.data, c.first, c.heads, c.width};
    const std::string said = refusal([&] { attention(s, p.values()); });
    BOOST_TEST(said != "accepted");
    BOOST_TEST(said.find("heads") != said.npos, said);
    const Var weight(Tensor::zeros(*backend, {2, 12}, DType::f32));
    BOOST_TEST(refusal([&] { short_convolution(s.q, p.segments, weight); }) != "accepted");
    const Tensor& x = s.q.data.value();
    expect_refusal(
        [&] {
          (*backend)(Rotate{.x = x,
                            .angles = x,
                            .first_column = c.first,
                            .heads = c.heads,
                            .width = c.width,
                            .y = x});
        },
        "rotate: ");
  }
}

BOOST_AUTO_TEST_CASE(windows_and_diagonals_that_would_overflow_are_refused) {
  for (const auto& backend : {make_reference_backend(), make_cpu_backend({.threads = 1})}) {
    const HeadProblem p(*backend, DType::f32, {3, 4}, 4, 2, 3, 2);
    const auto attend = [&](std::int64_t window) {
      ScoreVars s = p.scores();
      s.window = window;
      return attention(s, p.values()).value().to_doubles();
    };
    expect_refusal([&] { attend(largest); }, "window: expected 0 to 2^40, got 9223372036854775807");
    expect_refusal([&] { attend(-1); }, "window: expected 0 to 2^40, got -1");
    BOOST_TEST((attend(std::int64_t{1} << 40) == attend(0)));
    const Tensor x = Tensor::zeros(*backend, {3, 3}, DType::f32);
    const Tensor y(*backend, {3, 3}, DType::f32);
    for (const std::int64_t diagonal : {largest, least}) {
      expect_refusal([&] { (*backend)(Triangle{.x = x, .diagonal = diagonal, .y = y}); },
                     "triangle: diagonal: expected -2^40 to 2^40");
    }
  }
}

BOOST_AUTO_TEST_CASE(more_positions_than_an_i32_can_count_are_refused) {
  const auto backend = make_reference_backend();
  const std::vector<double> frequencies{1.0};
  for (const std::int64_t longest : {std::int64_t{-1}, largest}) {
    expect_refusal([&] { rope_table(*backend, DType::f32, longest, frequencies); },
                   "rope: expected 0 to 2^31 positions");
  }
}

BOOST_AUTO_TEST_CASE(scores_with_a_scale_that_is_not_finite_are_refused) {
  const auto backend = make_reference_backend();
  const HeadProblem p(*backend, DType::f32, {3}, 1, 1, 2, 2);
  for (const double scale : {nan, infinity}) {
    ScoreVars s = p.scores();
    s.scale = scale;
    expect_refusal([&] { attention(s, p.values()); }, "scale: expected a finite number");
  }
}

BOOST_AUTO_TEST_CASE(sampling_with_settings_outside_their_range_is_refused) {
  const std::vector<float> logits{1, 2, 3};
  const auto refused = [&](const nn::Sampling& sampling, std::string_view message) {
    Rng rng(1, Purpose::test);
    expect_refusal([&] { nn::choose(logits, {}, sampling, rng); }, message);
  };
  refused({.temperature = nan}, "sampling: temperature: expected a number of at least 0, got nan");
  refused({.temperature = infinity}, "sampling: temperature");
  refused({.temperature = -1}, "sampling: temperature");
  refused({.repetition_penalty = nan}, "sampling: repetition_penalty");
  refused({.repetition_penalty = 0}, "sampling: repetition_penalty");
  refused({.top_k = -1}, "sampling: top_k: expected at least 0, got -1");
  refused({.top_p = nan}, "sampling: top_p: expected 0 to 1, got nan");
  refused({.min_p = nan}, "sampling: min_p: expected 0 to 1, got nan");

  Rng rng(1, Purpose::test);
  const nn::Sampling penalized{.repetition_penalty = 2};
  for (const std::int32_t token : {-1, 3}) {
    expect_refusal([&] { nn::choose(logits, std::vector{token}, penalized, rng); },
                   "sampling: expected tokens from 0 to 2");
  }
  for (const float wrong : {static_cast<float>(nan), static_cast<float>(infinity)}) {
    const std::vector<float> some{1, wrong, 3};
    expect_refusal([&] { nn::choose(some, {}, {}, rng); }, "sampling: expected finite logits");
  }
}

BOOST_AUTO_TEST_CASE(rates_that_are_nan_are_refused) {
  for (const double rate : {nan, infinity, -1.0}) {
    expect_refusal([&] { (void)nn::Schedule{.peak = rate, .steps = 8}.at(1); }, "schedule: linear");
    expect_refusal([&] { (void)nn::Schedule{.first = rate, .steps = 8}.at(1); }, "schedule");
    expect_refusal([&] { (void)nn::Schedule{.last = rate, .steps = 8}.at(1); }, "schedule");

    const auto backend = make_reference_backend();
    nn::Parameters parameters(*backend, {DType::f32}, 1);
    const nn::Parameter w = parameters.add("w", {2}, nn::constant(1), true);
    const auto refused = [&](const nn::OptimizerOptions& options,
                             std::vector<nn::ParameterGroup> groups, std::string_view message) {
      expect_refusal([&] { nn::make_optimizer(parameters, options, groups, nullptr); }, message);
    };
    refused(nn::AdamOptions{.decay = rate}, {}, "optimizer: decay");
    refused(nn::SgdOptions{.decay = rate}, {}, "optimizer: decay");
    refused(nn::AdamOptions{}, {{.parameters = {w}, .rate = rate}}, "optimizer: a group's rate");
    refused(nn::AdamOptions{}, {{.parameters = {w}, .decay = rate}}, "optimizer: a group's decay");
    const auto optimizer = nn::make_optimizer(parameters, nn::AdamOptions{}, {}, nullptr);
    expect_refusal([&] { optimizer->prepare(rate, 1); }, "optimizer: rate");
    expect_refusal([&] { nn::Dropout(parameters, rate); }, "dropout: expected 0 <= rate < 1");
  }
}

BOOST_AUTO_TEST_SUITE_END()
