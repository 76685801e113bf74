#pragma once

#include <optional>

#include "core/contract/heads.h"
#include "core/math_mode.h"

namespace longhand {

/// The scores of queries and keys. For a query i at position p of its sequence, a key j of the same
/// sequence, and a head h (see Heads),
///   s_ij = tau_i scale q_i . k_j + c_i - c_j
/// where c_i is the entry of c for the key at position p. The query sees the keys j <= p. A
/// positive window limits these to j > p - window. If `multiplier` is empty, tau is 1. If `decay`
/// is empty, c is 0. Products are computed in the math mode `math`, and sums in the master type.
struct Scores {
  Heads q, k;
  Segments queries, keys;
  double scale = 1;
  Tensor multiplier = {};  // tau, [query tokens, q.heads]
  Tensor decay = {};       // c, [rows of k, q.heads]
  std::int64_t window = 0;
  std::optional<Math> math = {};  // default: the backend's math mode
};

/// The targets of the gradients of tau and c. A target is only allowed if the scores have that
/// tensor.
///   dtau_i = q_i . r_i, where r_i = scale sum_j dS_ij k_j
///   dc_j = sum_k dS_jk - sum_i dS_ij
/// Both sums of dc add the same rounded numbers dS. The sum of dc over a sequence is therefore 0 up
/// to the rounding of the sums.
struct ScoreTargets {
  Target multiplier = {}, decay = {};
};

}  // namespace longhand
