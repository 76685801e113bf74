#pragma once

#include "autograd/attention.h"
#include "autograd/catalog/catalog.h"

/// Arguments, attributes and shapes of test cases for the ops of the attention family.
namespace longhand::catalog {

/// Returns the q, k and lengths of a call. The heads are in the columns that the attributes give.
/// Without the argument k, the keys are in q's tensor. `grouped` is false for an op with
/// ungrouped_attributes().
ScoreVars key_call(const Call& call, bool grouped = true);
// Like key_call(), but also sets scale, tau and shift.
ScoreVars score_call(const Call& call, bool grouped = true);
SoftmaxVars softmax_call(const Call& call);  // returns the sink
ScoreVars windowed_call(const Call& call);   // like score_call(), with the window
/// Returns c, the shift of a call's scores. It is the argument `shift`, the running sums of the
/// argument `gates`, or the sum of both. Empty if the call has neither argument.
Var shift_call(const Call& call, const ScoreVars& scores);
HeadVars value_call(const Call& call, const ScoreVars& scores);

/// The arguments of heads, followed by `more`. `values` is false for ops that only use scores. Such
/// ops have no v, and none of their arguments is differentiable.
std::vector<Argument> head_inputs(std::vector<Argument> more, bool values = true);
std::vector<Attribute> head_attributes(std::vector<Attribute> more, bool values = true);
/// The attributes of an op that requires as many key heads as query heads, followed by `more`.
std::vector<Attribute> ungrouped_attributes(std::vector<Attribute> more);
std::vector<Attribute> score_attributes();
std::vector<Attribute> windowed_attributes();  // the attributes of scores, and the window
Argument gates_argument();
/// The arguments of scores other than q and k, followed by `more`.
std::vector<Argument> score_arguments(std::vector<Argument> more = {});

/// The shape of a test case. If gap < 0, q, k and v are separate tensors. If gap >= 0, they share
/// one tensor, with `gap` unused columns before each of them.
struct HeadShape {
  std::vector<int> lengths;
  std::int64_t heads = 1, key_heads = 1, width = 4, v_width = 4;
  std::int64_t gap = -1;
  std::vector<int> key_lengths = {};  // empty: the lengths of the queries
};
std::vector<HeadShape> small_heads();   // one shape of each kind, small enough for gradcheck
std::vector<HeadShape> medium_heads();  // enough entries for rounding errors in bf16 to average out
std::vector<HeadShape> large_heads();   // longer than the blocks of all kernels
std::vector<HeadShape> long_heads();    // long enough for the errors of single keys to add up
HeadShape longest_head();               // long enough for the errors of rounded row sums to add up
std::vector<HeadShape> decoding_heads();  // fewer queries than keys
std::int64_t total(const std::vector<int>& lengths);

/// A case with standard normal q, k and v, and with the lengths of `shape`.
Case head_case(Rng& rng, const HeadShape& shape);
/// As above, but for an op with ungrouped_attributes(). The shape's number of key heads is ignored.
Case ungrouped_case(Rng& rng, HeadShape shape);
/// Changes q and k of a case for ops that select keys by the sign of their score. Rounding must not
/// change a sign. The product of the first entries of q and k therefore has an absolute value of at
/// least 9, and all other entries together contribute less than 3. The first entry is positive in a
/// fraction `agreement` of the queries and 1 - agreement of the keys. If agreement is 1, no score
/// is positive.
Case decided(Rng& rng, Case c, const HeadShape& shape, double agreement);
/// Adds the inputs in `names`, each of which is tau, shift, sink or pull. Some tau are negative,
/// and some pull are positive.
Case scored(Rng& rng, Case c, std::initializer_list<std::string_view> names);
/// Adds gates between `low` and `high`.
Case gated(Rng& rng, Case c, double low, double high);
/// Removes v, for ops that only use scores.
Case without_values(Case c);
/// Short sequences in which every gate is e^-2, and q . k cancels nine tenths of c_i - c_j, where c
/// is the sum of the logarithms of the gates. Many keys then have a weight well above 0, and a
/// small relative error of c changes all these weights.
Case balanced(Rng& rng);
/// The cases of balanced(), but without the values v.
std::vector<Case> balanced_weights(Rng& rng);
/// Changes a case with one long sequence: values near 5, a window of 3 keys and gates near 1. The
/// terms D of the gradients are then much larger than the differences dP - D, and each gate affects
/// few scores. If a kernel rounded its row sums, these errors would dominate the gradients of the
/// gates.
Case narrow(Rng& rng, Case c);
/// The shape of the cases of Operation::of_length.
HeadShape of_tokens(std::int64_t tokens);

}  // namespace longhand::catalog
