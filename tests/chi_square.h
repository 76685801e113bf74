#pragma once

#include <span>

namespace longhand {

/// Pearson's test: the probability that counts deviate at least this much from the expected counts,
/// which are equal or proportional to `weights`. Every cell should have an expected count of at
/// least five.
double chi_square_p(std::span<const double> counts, std::span<const double> weights = {});

}  // namespace longhand
