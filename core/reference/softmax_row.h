#pragma once

#include "core/reference/heads.h"

namespace longhand::reference {

/// P_ij for query t of head h and every key position j up to its own, and log sum_j exp(s_ij).
std::vector<double> softmax_row(const ScoreRows& scores, const Sequence& s, std::int64_t t,
                                std::int64_t h, double& log_sum);

}  // namespace longhand::reference
