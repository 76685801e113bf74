#pragma once

#include "core/reference/heads.h"

namespace longhand::reference {

/// P_ij for query t of head h and every key position j up to its own, by the scores' rule; what
/// Attention saves of the row as log_sum.
std::vector<double> weights_row(const ScoreRows& scores, const Sequence& s, std::int64_t t,
                                std::int64_t h, double& log_sum);

}  // namespace longhand::reference
