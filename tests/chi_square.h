#pragma once

#include <span>

namespace longhand {

/// Pearson's test: the probability of counts at least this far from those expected, which are
/// equal, or in proportion to `weights`. Every cell should expect five or more.
double chi_square_p(std::span<const double> counts, std::span<const double> weights = {});

}  // namespace longhand
