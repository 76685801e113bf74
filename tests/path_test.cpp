#include "tests/check.h"

#include <cmath>

#include "autograd/composed_attention.h"
#include "tests/head_problem.h"
#include "tests/random_tensor.h"

using namespace longhand;

// Compares PaTH attention with its definition, which applies one reflection after another to each
// key. Tests of all ops and all mixers check its gradients, its parity between backends and its
// decoding.
BOOST_AUTO_TEST_SUITE(path_test)

BOOST_AUTO_TEST_CASE(a_key_is_reflected_by_every_token_between_key_and_query) {
  const auto backend = make_reference_backend();
  constexpr std::int64_t heads = 2, width = 3, n = 6;
  const HeadProblem p(*backend, DType::f64, {n, 1}, heads, heads, width, width);
  const Tensor w = random_tensor(*backend, {n + 1, heads * width}, DType::f64, 5);
  const Tensor beta = random_tensor(*backend, {n + 1, heads}, DType::f64, 6);
  const auto values = composed_path({.q = p.scores().q,
                                     .k = p.scores().k,
                                     .v = p.values(),
                                     .w = all_columns(w, heads),
                                     .beta = beta,
                                     .queries = p.segments})
                          .value()
                          .to_doubles();
  const auto q = p.q.to_doubles(), k = p.k.to_doubles(), v = p.v.to_doubles();
  const auto along = w.to_doubles(), part = beta.to_doubles();
  const auto at = [](const std::vector<double>& x, std::int64_t i, std::int64_t h, std::int64_t e) {
    return x[static_cast<std::size_t>((i * heads + h) * width + e)];
  };
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<double> weights;
      double sum = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        std::vector<double> key;
        for (std::int64_t e = 0; e < width; ++e) key.push_back(at(k, j, h, e));
        for (std::int64_t t = j + 1; t <= i; ++t) {
          double product = 0;
          for (std::int64_t e = 0; e < width; ++e) product += at(along, t, h, e) * key[e];
          for (std::int64_t e = 0; e < width; ++e) {
            key[e] -= part[static_cast<std::size_t>(t * heads + h)] * product * at(along, t, h, e);
          }
        }
        double score = 0;
        for (std::int64_t e = 0; e < width; ++e) score += at(q, i, h, e) * key[e];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
        sum += weights.back();
      }
      for (std::int64_t e = 0; e < width; ++e) {
        double y = 0;
        for (std::int64_t j = 0; j <= i; ++j) y += weights[j] / sum * at(v, j, h, e);
        BOOST_TEST(std::abs(at(values, i, h, e) - y) < 1e-12);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
