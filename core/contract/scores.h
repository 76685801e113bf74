#pragma once

#include <optional>

#include "core/contract/heads.h"
#include "core/math_mode.h"

namespace longhand {

/// The scores of queries and keys. For a query i at position p of its sequence, a key j of the same
/// sequence, and a head h (see Heads),
///   s_ij = tau_i scale q_i . k_j + c_i - c_j,
/// where tau_i is the `multiplier` of the query (1 if empty), c_j is the `decay` of the key (0 if
/// empty), and c_i is the `decay` of the key at position p. If `causal` is true, the query sees the
/// keys j <= p, and if `window` is also positive, only those with j > p - window. If `causal` is
/// false, every query sees every key of its segment, as in an encoder or in cross attention.
/// Queries then have no positions, so `window` and `decay` are not allowed, and only softmax
/// attention accepts such scores. Products are computed in the math mode `math`. Sums are f64 if q
/// is f64, otherwise f32.
struct Scores {
  Heads q, k;
  Segments queries, keys;
  double scale = 1;
  Tensor multiplier = {};  // tau, a factor of all scores of a query, [query tokens, q.heads]
  Tensor decay = {};       // c: the difference c_i - c_j is added to s_ij, [rows of k, q.heads]
  std::int64_t window = 0;
  bool causal = true;
  std::optional<Math> math = {};  // default: the backend's math mode
};

/// The targets for the gradients of Scores::multiplier (tau) and Scores::decay (c). Each target
/// must be empty if the corresponding tensor of the scores is empty. With dS as the gradient of the
/// scores,
///   dtau_i = scale q_i . sum_j dS_ij k_j;
///   dc_j = sum_m dS_jm - sum_i dS_ij.
/// Each dS_ij is added to dc at the position of query i and subtracted from dc at key j, rounded in
/// the same way both times. The sum of dc over a sequence is therefore 0 up to the rounding of the
/// sums.
struct ScoreTargets {
  Target multiplier = {}, decay = {};
};

}  // namespace longhand
