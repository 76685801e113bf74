#include "autograd/gru.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "autograd/gather.h"
#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "core/error.h"

namespace longhand {
namespace {

/// The rows of all sequences, token by token: the first token of each sequence, then the second
/// token of each sequence that has one, and so on.
struct TokenOrder {
  std::vector<std::int32_t> rows;    // rows[i] is the row of x at place i of this order
  std::vector<std::int32_t> places;  // the inverse: places[rows[i]] = i
  std::vector<std::int64_t> counts;  // counts[t]: number of sequences with more than t tokens

  explicit TokenOrder(const Segments& segments) : places(segments.tokens()) {
    // Sequences are sorted from longest to shortest. For every number t, the sequences with more
    // than t tokens are then the first ones.
    std::vector<std::size_t> order(segments.lengths().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return segments.lengths()[a] > segments.lengths()[b];
    });
    for (std::int32_t t = 0; t < segments.longest(); ++t) {
      const std::size_t before = rows.size();
      for (const std::size_t s : order) {
        if (segments.lengths()[s] > t) rows.push_back(segments.begins()[s] + t);
      }
      counts.push_back(static_cast<std::int64_t>(rows.size() - before));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) places[rows[i]] = static_cast<std::int32_t>(i);
  }
};

void check_gru(const Var& x, const Segments& segments, const Var& u, const Var& bias) {
  const std::int64_t n = x.value().columns() / 3;
  LONGHAND_CHECK(
      x.shape().rank() == 2 && n > 0 && x.value().columns() == 3 * n,
      "gru: x: expected a matrix whose number of columns is a positive multiple of 3, got ",
      x.shape());
  LONGHAND_CHECK(u.shape() == Shape({3 * n, n}), "gru: u: expected ", Shape({3 * n, n}), ", got ",
                 u.shape());
  LONGHAND_CHECK(bias.shape() == Shape({n}), "gru: bias: expected ", Shape({n}), ", got ",
                 bias.shape());
  LONGHAND_CHECK(segments.tile() && segments.tokens() == x.value().rows(),
                 "gru: segments: expected consecutive segments that cover all ", x.value().rows(),
                 " rows of x, got segments of ", segments.tokens(), " rows in total");
}

}  // namespace

Var gru(const Var& x, const Segments& segments, const Var& u, const Var& bias) {
  check_gru(x, segments, u, bias);
  Backend& backend = x.backend();
  const DType type = x.value().dtype(), master = u.value().dtype();
  const std::int64_t n = bias.value().size(), tokens = x.value().rows();
  const TokenOrder order(segments);
  const Tensor rows = Tensor::from(backend, {tokens}, order.rows);
  const Var parts = embedding(cast(x, master), rows, master);
  Var h = Tensor::zeros(backend, {order.counts.empty() ? 0 : order.counts.front(), n}, master);
  std::vector<Var> all{Tensor(backend, {0, n}, master)};
  std::int64_t begin = 0;
  for (const std::int64_t count : order.counts) {
    if (count < h.value().rows()) h = slice(h, 0, count);  // the other sequences have ended
    const std::vector<Var> now = split(slice(parts, begin, count), -1, {2 * n, n});
    const Var a = matmul(h, u, {.transpose_b = true, .math = Math::exact});
    const std::vector<Var> of_h = split(a, -1, {2 * n, n});
    const Var gates = activate(Activation::sigmoid, now[0] + of_h[0]);
    const std::vector<Var> gate = split(gates, -1, {n, n});
    const Var &r = gate[0], &z = gate[1];
    const Var next = activate(Activation::tanh, now[1] + r * (of_h[1] + bias));
    h = next + z * (h - next);
    all.push_back(h);
    begin += count;
  }
  return cast(embedding(concat(all), Tensor::from(backend, {tokens}, order.places), master), type);
}

}  // namespace longhand
