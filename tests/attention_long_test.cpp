#include <cmath>
#include <vector>
#include "tests/check.h"

#include "core/backend.h"
#include "core/contract/attention.h"
#include "core/contract/chacal.h"
#include "core/contract/fal.h"
#include "core/rng.h"

BOOST_AUTO_TEST_SUITE(attention_long_test)

using namespace longhand;

// Tests the forward and backward pass of one head over 65,536 tokens, each of which sees all
// earlier keys. Memory must grow only linearly with the tokens. Some rows are compared with the
// formulas in f64.

namespace {

constexpr std::int32_t length = 65536;
constexpr int width = 4;
constexpr double gamma_value = 0.9;
using Doubles = std::vector<double>;

struct Data {
  explicit Data(Backend& backend)
      : segments(backend, std::vector{length}),
        q(draw(backend)),
        k(draw(backend)),
        v(draw(backend)),
        dy(draw(backend)) {
    scores = {q, k, segments, segments, 0.5};
  }
  Heads draw(Backend& backend) {
    Doubles values(static_cast<std::size_t>(length) * width);
    for (double& x : values) x = static_cast<double>(rng.normal());
    return {Tensor::from(backend, {length, width}, DType::f32, values), 0, 1, width};
  }
  Heads fresh() const {
    return {Tensor(q.data.backend(), {length, width}, DType::f32), 0, 1, width};
  }

  Rng rng{5, Purpose::test};
  Segments segments;
  Heads q, k, v, dy;
  Scores scores;
};

/// The peak of a backend's memory in use, minus the memory that was in use at construction.
class Peak {
 public:
  explicit Peak(Backend& backend) : memory_(backend.memory()) {
    memory_.drop_cached();
    memory_.reset_peak();
    before_ = memory_.use().live;
  }
  std::size_t bytes() const { return memory_.use().peak - before_; }

 private:
  CachingAllocator& memory_;
  std::size_t before_;
};

double dot(const Doubles& a, std::int64_t i, const Doubles& b, std::int64_t j) {
  double sum = 0;
  for (int c = 0; c < width; ++c) sum += a[i * width + c] * b[j * width + c];
  return sum;
}

/// Returns the maximum difference between row i of `ours` and the expected row, relative to the
/// largest entry of the expected row.
double difference(const Doubles& ours, std::int64_t i, const Doubles& row) {
  double most = 0, largest = 0;
  for (int c = 0; c < width; ++c) {
    most = std::max(most, std::abs(ours[i * width + c] - row[c]));
    largest = std::max(largest, std::abs(row[c]));
  }
  return most / largest;
}

constexpr std::int64_t rows[] = {0, 1, 63, 64, 4095, 32768, 50001, length - 1};

/// Compares some rows of y and of the gradients with the formulas in core/contract/chacal.h, in
/// which g is ChaCAL's parameter gamma. For g = 0 they are the formulas of softmax attention.
void check_rows(const Data& d, const Heads& y_heads, const Tensor& log_sum, const Heads& dq_heads,
                const Heads& dk_heads, const Heads& dv_heads, double g, double tolerance) {
  const Doubles q = d.q.data.to_doubles(), k = d.k.data.to_doubles(), v = d.v.data.to_doubles(),
                dy = d.dy.data.to_doubles(), y = y_heads.data.to_doubles(),
                dq = dq_heads.data.to_doubles(), dk = dk_heads.data.to_doubles(),
                dv = dv_heads.data.to_doubles(), logs = log_sum.to_doubles();
  const auto score = [&](std::int64_t i, std::int64_t j) { return 0.5 * dot(q, i, k, j); };
  const auto p = [&](std::int64_t i, std::int64_t j) { return std::exp(score(i, j) - logs[i]); };
  // The operation does not return W, the solution of ChaCAL's backward system, so W is computed
  // from dv here. With B_j = sum_(i>j) P_ij W_i, the formulas are
  //   W_j = dy_j + g B_j;  dv_j = (1 - g) (B_j + P_jj W_j).
  Doubles w = dy;
  for (std::int64_t j = 0; g > 0 && j < length; ++j) {
    for (int c = 0; c < width; ++c) {
      double& x = w[j * width + c];
      x = (x + g / (1 - g) * dv[j * width + c]) / (1 + g * p(j, j));
    }
  }
  for (const std::int64_t i : rows) {
    Doubles y_row(width, 0), dq_row(width, 0), dk_row(width, 0), dv_row(width, 0);
    double sum = 0;
    for (std::int64_t j = 0; j <= i; ++j) sum += std::exp(score(i, j));
    BOOST_TEST(std::abs(logs[i] - std::log(sum)) < 1e-5);
    const double own = dot(w, i, y, i);
    const auto score_gradient = [&](std::int64_t query, std::int64_t key, double row_sum) {
      const double past = query == key ? 0 : g * dot(w, query, y, key);
      return p(query, key) * ((1 - g) * dot(w, query, v, key) + past - row_sum);
    };
    for (std::int64_t j = 0; j <= i; ++j) {
      const double ds = score_gradient(i, j, own);
      for (int c = 0; c < width; ++c) {
        const double past = j == i ? 0 : g * y[j * width + c];
        y_row[c] += p(i, j) * ((1 - g) * v[j * width + c] + past);
        dq_row[c] += 0.5 * ds * k[j * width + c];
      }
    }
    for (std::int64_t t = i; t < length; ++t) {
      const double ds = score_gradient(t, i, dot(w, t, y, t));
      for (int c = 0; c < width; ++c) {
        dk_row[c] += 0.5 * ds * q[t * width + c];
        dv_row[c] += (1 - g) * p(t, i) * w[t * width + c];
      }
    }
    BOOST_TEST_CONTEXT("row " << i) {
      BOOST_TEST(difference(y, i, y_row) < tolerance);
      if (i > 0) {
        BOOST_TEST(difference(dq, i, dq_row) < tolerance);
      } else {  // row 0 sees only one key, whose P is always 1, so dq is 0
        for (int c = 0; c < width; ++c) BOOST_TEST(dq[c] == 0);
      }
      BOOST_TEST(difference(dk, i, dk_row) < tolerance);
      BOOST_TEST(difference(dv, i, dv_row) < tolerance);
    }
  }
}

/// Upper bound for the memory of a test in bytes, 256 per row. y, dq, dk, dv and log_sum take 17
/// floats per row. ChaCAL's gradient of the values and the sums of dq take more floats, because
/// their rows are padded to whole SIMD vectors. If a kernel stored the attention weights as a
/// matrix, it would need 131,072 bytes per row on average and exceed the bound.
constexpr std::size_t bound = std::size_t{length} * 256;

}  // namespace

BOOST_AUTO_TEST_CASE(softmax_attention) {
  const auto backend = make_cpu_backend();
  const Data d(*backend);
  const Peak peak(*backend);
  const Heads y = d.fresh(), dq = d.fresh(), dk = d.fresh(), dv = d.fresh();
  const Tensor log_sum(*backend, {length, 1}, DType::f32);
  (*backend)(Attention{d.scores, SoftmaxRule{{}, log_sum}, d.v, y});
  (*backend)(
      AttentionBackward{d.scores, SoftmaxGradient{{}, y, log_sum}, d.v, d.dy, {dq}, {dk}, {dv}});
  BOOST_TEST(peak.bytes() < bound);
  check_rows(d, y, log_sum, dq, dk, dv, 0, 1e-4);
}

BOOST_AUTO_TEST_CASE(chacal) {
  const auto backend = make_cpu_backend();
  const Data d(*backend);
  const Tensor gamma = Tensor::from(*backend, {1}, DType::f32, Doubles{gamma_value});
  const Peak peak(*backend);
  const Heads y = d.fresh(), dq = d.fresh(), dk = d.fresh(), dv = d.fresh();
  const Tensor log_sum(*backend, {length, 1}, DType::f32);
  (*backend)(Chacal{d.scores, {}, d.v, gamma, {}, y, log_sum});
  (*backend)(ChacalBackward{d.scores, {}, d.v, y, d.dy, gamma, log_sum, {dq}, {dk}, {dv}});
  BOOST_TEST(peak.bytes() < bound);
  check_rows(d, y, log_sum, dq, dk, dv, static_cast<double>(static_cast<float>(gamma_value)), 1e-3);
}

BOOST_AUTO_TEST_CASE(first_after_last_without_a_match) {
  const auto backend = make_cpu_backend();
  Data d(*backend);
  // Only the key of token 5 has a positive score with any query, so FAL (first after last) selects
  // it for all later queries.
  Doubles q(d.q.data.to_doubles()), k(d.k.data.to_doubles());
  for (double& x : q) x = std::abs(x);
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = i / width == 5 ? 1.0 : -std::abs(k[i]);
  d.q.data = Tensor::from(*backend, d.q.data.shape(), DType::f32, q);
  d.k.data = Tensor::from(*backend, d.k.data.shape(), DType::f32, k);
  const Peak peak(*backend);
  const Heads y = d.fresh(), dq = d.fresh(), dk = d.fresh(), dv = d.fresh();
  const Tensor match(*backend, {length, 1}, DType::i32);
  (*backend)(Fal{d.q, d.k, d.v, d.segments, d.segments, y, match});
  (*backend)(FalBackward{d.q, d.k, d.v, d.segments, d.segments, match, d.dy, {dq}, {dk}, {dv}});
  BOOST_TEST(peak.bytes() < bound);
  const std::vector<std::int32_t> found = match.to_ints();
  const Doubles ys = y.data.to_doubles(), v = d.v.data.to_doubles(), dv_all = dv.data.to_doubles(),
                dy = d.dy.data.to_doubles();
  Doubles dv_row(width, 0);
  for (std::int64_t i = 0; i < length; ++i) {
    BOOST_REQUIRE_EQUAL(found[i], i > 5 ? 5 : -1);
    for (int c = 0; i > 5 && c < width; ++c) dv_row[c] += dot(q, i, k, 5) * dy[i * width + c];
  }
  for (const std::int64_t i : rows) {
    Doubles y_row(width, 0);
    for (int c = 0; i > 5 && c < width; ++c) y_row[c] = dot(q, i, k, 5) * v[6 * width + c];
    for (int c = 0; c < width; ++c) {
      BOOST_TEST(std::abs(ys[i * width + c] - y_row[c]) <= 1e-5 * std::abs(y_row[c]));
    }
  }
  BOOST_TEST(difference(dv_all, 6, dv_row) < 1e-4);
}

BOOST_AUTO_TEST_SUITE_END()
