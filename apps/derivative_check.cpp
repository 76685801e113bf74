#include "apps/derivative_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/rng.h"

namespace longhand::app {
namespace {

constexpr int points_wanted = 12, points_tried = 200;

/// Checks whether the given derivative is a constant times the difference quotient, with the same
/// constant in every row. If the constant is -1, a small integer or the inverse of a small integer,
/// returns a text that describes it, otherwise an empty text.
std::string common_factor(const std::vector<DerivativeCheck::Row>& rows) {
  double factor = 0;
  for (const DerivativeCheck::Row& row : rows) {
    if (std::abs(row.quotient.value) < 1e-3) continue;
    const double ratio = row.typed / row.quotient.value;
    if (factor == 0) factor = ratio;
    if (!(std::abs(ratio - factor) <= 1e-6 * std::abs(factor))) return {};
  }
  if (factor == 0 || !std::isfinite(factor)) return {};
  if (std::abs(factor + 1) < 1e-6) return "the typed one is the negative of the right one";
  for (const double n : {2.0, 3.0, 4.0, 5.0, 10.0}) {
    if (std::abs(std::abs(factor) - n) < 1e-6 * n) {
      return text("the typed one is ", factor < 0 ? -n : n, " times the right one");
    }
    if (std::abs(std::abs(factor) - 1 / n) < 1e-6 / n) {
      return text("the typed one is the right one divided by ", factor < 0 ? -n : n);
    }
  }
  return {};
}

}  // namespace

Quotient difference_quotient(const Expression& f, const std::string& variable,
                             std::map<std::string, double> at) {
  constexpr int rows = 10;
  constexpr double shrink = 1.4;
  double& x = at[variable];
  const double middle = x;
  const auto central = [&](double h) {
    x = middle + h;
    const double above = f(at), up = x;
    x = middle - h;
    const double below = f(at), down = x;
    return (above - below) / (up - down);
  };
  Quotient best{.value = std::numeric_limits<double>::quiet_NaN(),
                .error = std::numeric_limits<double>::infinity()};
  double h = 0.05 * std::max(1.0, std::abs(middle));
  std::array<double, rows> before{}, now{};
  for (int i = 0; i < rows; ++i, h /= shrink) {
    now[0] = central(h);
    double factor = shrink * shrink;
    for (int k = 1; k <= i; ++k, factor *= shrink * shrink) {
      now[k] = (now[k - 1] * factor - before[k - 1]) / (factor - 1);
      const double error =
          std::max(std::abs(now[k] - now[k - 1]), std::abs(now[k] - before[k - 1]));
      if (error < best.error) best = {.value = now[k], .error = error};
    }
    before = now;
  }
  return best;
}

bool DerivativeCheck::right() const { return std::ranges::all_of(rows, &Row::right); }

DerivativeCheck check_derivative(const Expression& f, const std::string& variable,
                                 const Expression& typed, double low, double high,
                                 std::uint64_t seed) {
  std::set<std::string> names = f.variables();
  names.insert(typed.variables().begin(), typed.variables().end());
  names.insert(variable);
  Rng rng(seed, Purpose::test);
  DerivativeCheck check;
  for (int i = 0; i < points_tried && std::ssize(check.rows) < points_wanted; ++i) {
    DerivativeCheck::Row row;
    for (const std::string& name : names) row.at[name] = low + (high - low) * rng.uniform();
    row.quotient = difference_quotient(f, variable, row.at);
    const double value = f(row.at);
    const double scale = std::max({std::abs(row.quotient.value), std::abs(value), 1e-3});
    // A difference quotient with fewer than four reliable digits is not compared. Such quotients
    // occur near a kink or a pole.
    if (!std::isfinite(value) || !(row.quotient.error < 1e-4 * scale)) {
      ++check.without;
      continue;
    }
    row.typed = typed(row.at);
    row.right =
        std::abs(row.typed - row.quotient.value) <= std::max(20 * row.quotient.error, 1e-8 * scale);
    check.rows.push_back(std::move(row));
  }
  LONGHAND_CHECK(check.rows.size() >= 3, f.text(), ": the derivative exists at only ",
                 check.rows.size(), " of ", points_tried, " points between ", low, " and ", high,
                 "; choose another range with --from and --to");
  if (!check.right()) check.hint = common_factor(check.rows);
  return check;
}

}  // namespace longhand::app
