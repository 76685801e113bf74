#pragma once

#include <optional>

#include "core/contract/heads.h"
#include "core/math_mode.h"

namespace longhand {

/// The scores of queries and keys. For query i at position p and key j of its segment, both of head
/// h (see Heads),
///   s_ij = tau_i scale q_i . k_j + c_i - c_j
/// where c_i belongs to the key at the query's own position. The query sees the keys j <= p, and
/// with a window > 0 only those with j > p - window. A missing tensor leaves its part of the
/// formula out. Products follow `math`; sums use the master type.
struct Scores {
  Heads q, k;
  Segments queries, keys;
  double scale = 1;
  Tensor multiplier = {};  // tau, [query tokens, q.heads]
  Tensor decay = {};       // c, [rows of k, q.heads]
  std::int64_t window = 0;
  std::optional<Math> math = {};  // none: the backend's
};

/// The targets of the gradients of tau and c. A target is only allowed if the scores have that
/// tensor.
///   dtau_i = q_i . r_i, where r_i = scale sum_j dS_ij k_j
///   dc_j = sum_k dS_jk - sum_i dS_ij
/// Row sums and column sums add up the same rounded numbers dS. The sum of dc over a sequence is
/// therefore 0 up to the rounding of the sums.
struct ScoreTargets {
  Target multiplier = {}, decay = {};
};

}  // namespace longhand
