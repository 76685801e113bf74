#pragma once

#include "autograd/attention.h"
#include "autograd/catalog/catalog.h"

/// Shared by the ops of the attention family: the arguments for heads, and shapes to test on.
namespace longhand::catalog {

/// q, k and v of a call, at the columns that its attributes name. Without k, keys are in q's
/// tensor; without v, values are in k's. Not `grouped`: the op has ungrouped_attributes().
ScoreVars key_call(const Call& call, bool grouped = true);  // q, k and the lengths
// q, k, the lengths, scale, tau, shift and sink
ScoreVars score_call(const Call& call, bool grouped = true);
ScoreVars windowed_call(const Call& call);  // also the window
HeadVars value_call(const Call& call, const ScoreVars& scores);

/// Without values (for ops that only look at scores), no argument is differentiable.
std::vector<Argument> head_inputs(std::vector<Argument> more, bool values = true);
std::vector<Attribute> head_attributes(std::vector<Attribute> more, bool values = true);
/// The attributes of an op that requires as many key heads as query heads.
std::vector<Attribute> ungrouped_attributes(std::vector<Attribute> more);
std::vector<Attribute> score_attributes();
std::vector<Attribute> windowed_attributes();  // the attributes of heads and the window
/// The arguments of scores besides q and k, followed by `more`.
std::vector<Argument> score_arguments(std::vector<Argument> more = {});

/// The shape of one problem. With gap < 0, q, k and v are in separate tensors. With gap >= 0 they
/// share one tensor, with `gap` columns before each of them.
struct HeadShape {
  std::vector<int> lengths;
  std::int64_t heads = 1, key_heads = 1, width = 4, v_width = 4;
  std::int64_t gap = -1;
  std::vector<int> key_lengths = {};  // empty: the same as the queries'
};
std::vector<HeadShape> small_heads();     // one shape of each kind, cheap enough for gradcheck
std::vector<HeadShape> medium_heads();    // enough entries for averages in bf16
std::vector<HeadShape> large_heads();     // longer than any kernel's block
std::vector<HeadShape> decoding_heads();  // fewer queries than keys
std::int64_t total(const std::vector<int>& lengths);

/// Standard normal q, k and v, and the lengths.
Case head_case(Rng& rng, const HeadShape& shape);
/// The same for an op with ungrouped_attributes: the shape's key heads are ignored.
Case ungrouped_case(Rng& rng, HeadShape shape);
/// The sign of a score decides which pairs are chosen. To keep rounding from changing it, the
/// product of the first entries is set to size 9, while all others together stay below 3. The first
/// entries are positive in the fraction `agreement` of the queries and 1 - agreement of the keys;
/// with agreement 1, no pair is chosen.
Case decided(Rng& rng, Case c, const HeadShape& shape, double agreement);
/// The same case with those of tau, shift, sink and pull that are named. A tau may be negative and
/// a pull positive.
Case scored(Rng& rng, Case c, std::initializer_list<std::string_view> names);

}  // namespace longhand::catalog
