#pragma once

#include "autograd/attention.h"
#include "autograd/catalog/catalog.h"

/// Shared by the ops of the attention family: arguments and attributes for heads, and shapes for
/// test cases.
namespace longhand::catalog {

/// The q, k and v of a call, at the columns given by its attributes. Without k, keys are in q's
/// tensor; without v, values are in k's tensor. If not `grouped`, the op has
/// ungrouped_attributes().
ScoreVars key_call(const Call& call, bool grouped = true);  // q, k and the lengths
// Also scale, tau and shift.
ScoreVars score_call(const Call& call, bool grouped = true);
SoftmaxVars softmax_call(const Call& call);  // the sink
ScoreVars windowed_call(const Call& call);   // also the window
/// Returns c, the shift of a call's scores: the argument `shift`, the running sums of the argument
/// `gates`, or `shift` plus these sums. Empty if the call has neither argument.
Var shift_call(const Call& call, const ScoreVars& scores);
HeadVars value_call(const Call& call, const ScoreVars& scores);

/// The arguments of heads, then `more`. If not `values` (for ops that only use scores), no argument
/// is differentiable.
std::vector<Argument> head_inputs(std::vector<Argument> more, bool values = true);
std::vector<Attribute> head_attributes(std::vector<Attribute> more, bool values = true);
/// The attributes of an op that requires as many key heads as query heads.
std::vector<Attribute> ungrouped_attributes(std::vector<Attribute> more);
std::vector<Attribute> score_attributes();
std::vector<Attribute> windowed_attributes();  // the attributes of heads, and the window
Argument gates_argument();
/// The arguments of scores other than q and k, then `more`.
std::vector<Argument> score_arguments(std::vector<Argument> more = {});

/// The shape of a problem. With gap < 0, q, k and v are separate tensors. With gap >= 0 they share
/// one tensor, with `gap` columns before each of them.
struct HeadShape {
  std::vector<int> lengths;
  std::int64_t heads = 1, key_heads = 1, width = 4, v_width = 4;
  std::int64_t gap = -1;
  std::vector<int> key_lengths = {};  // empty: equal to the lengths of the queries
};
std::vector<HeadShape> small_heads();   // one shape of each kind, small enough for gradcheck
std::vector<HeadShape> medium_heads();  // enough entries for rounding errors in bf16 to average out
std::vector<HeadShape> large_heads();   // longer than any kernel's block
std::vector<HeadShape> long_heads();    // long enough for the errors of single keys to add up
HeadShape longest_head();               // long enough for the errors of rounded row sums to add up
std::vector<HeadShape> decoding_heads();  // fewer queries than keys
std::int64_t total(const std::vector<int>& lengths);

/// A case with standard normal q, k and v, and the lengths.
Case head_case(Rng& rng, const HeadShape& shape);
/// As above for an op with ungrouped_attributes(); the shape's number of key heads is ignored.
Case ungrouped_case(Rng& rng, HeadShape shape);
/// Changes a case for ops that select pairs by the sign of their score. So that rounding cannot
/// change a sign, the product of the first entries of q and k has size 9, while all other entries
/// together contribute less than 3. The first entries are positive in the fraction `agreement` of
/// the queries and 1 - agreement of the keys; with agreement 1, no pair is selected.
Case decided(Rng& rng, Case c, const HeadShape& shape, double agreement);
/// Copies the case and adds the named inputs, out of tau, shift, sink and pull. tau may be
/// negative, pull may be positive.
Case scored(Rng& rng, Case c, std::initializer_list<std::string_view> names);
/// The same case with gates between `low` and `high`.
Case gated(Rng& rng, Case c, double low, double high);
/// The case without its values, for ops that only use scores.
Case without_values(Case c);
/// Short sequences in which every gate is e^-2 and q . k cancels nine tenths of c_i - c_j, where c
/// is the sum of the logarithms of gates. Many keys then have a weight well above 0, and a small
/// relative error of c changes all these weights.
Case balanced(Rng& rng);
/// Balanced cases without values.
std::vector<Case> balanced_weights(Rng& rng);
/// One long sequence with values near 5, a window of 3 keys and gates near 1. D is much larger than
/// the differences dP - D, and few pairs of keys and queries lie on both sides of a token, so that
/// rounded row sums would dominate the gradients of gates.
Case narrow(Rng& rng, Case c);
/// The case of Operation::of_length without gates: two heads of 16.
HeadShape of_tokens(std::int64_t tokens);

}  // namespace longhand::catalog
