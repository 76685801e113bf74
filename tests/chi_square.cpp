#include "tests/chi_square.h"

#include <cmath>
#include <numeric>

#include "core/error.h"

namespace longhand {
namespace {

/// Q(a, x), the regularized upper incomplete gamma function. For x < a + 1, its complement is
/// computed by the series
///   P(a, x) = x^a e^-x sum_n x^n / Gamma(a + n + 1);
/// otherwise Q is computed by its continued fraction (modified Lentz).
double upper_gamma(double a, double x) {
  if (x <= 0) return 1;
  const double front = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (double n = 1; term > sum * 1e-15; ++n) sum += term *= x / (a + n);
    return 1 - front * sum;
  }
  const double tiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / tiny;
  double d = 1 / b;
  double value = d;
  for (double n = 1; n < 10'000; ++n) {
    const double factor = n * (a - n);
    b += 2;
    d = factor * d + b;
    d = 1 / (std::abs(d) < tiny ? tiny : d);
    c = b + factor / c;
    if (std::abs(c) < tiny) c = tiny;
    value *= c * d;
    if (std::abs(c * d - 1) < 1e-14) break;
  }
  return front * value;
}

}  // namespace

double chi_square_p(std::span<const double> counts, std::span<const double> weights) {
  LONGHAND_CHECK(counts.size() > 1 && (weights.empty() || weights.size() == counts.size()),
                 "chi_square_p: ", counts.size(), " counts and ", weights.size(), " weights");
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto cells = static_cast<double>(counts.size());
  double statistic = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * (weights.empty() ? 1 / cells : weights[i] / weight);
    LONGHAND_CHECK(expected >= 5, "chi_square_p: cell ", i, " expects only ", expected);
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return upper_gamma((cells - 1) / 2, statistic / 2);
}

}  // namespace longhand
