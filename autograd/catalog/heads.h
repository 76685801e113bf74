#pragma once

#include "autograd/attention.h"
#include "autograd/catalog/catalog.h"

/// Arguments, attributes and shapes of test cases for the ops of the attention family.
namespace longhand::catalog {

/// Returns q, k and the sequence lengths of a call. The call's attributes q_column and k_column are
/// the columns where the heads of q and k start. Without the argument k, the keys are in q's
/// tensor. `grouped` is false for ops that require as many key heads as query heads.
ScoreVars key_call(const Call& call, bool grouped = true);
// Like key_call(), with the parameters of the scores in addition: the scale, the factor tau of each
// query, and the shift (see shift_call()).
ScoreVars score_call(const Call& call, bool grouped = true);
SoftmaxVars softmax_call(const Call& call);  // returns the softmax rule with the call's sink
// Like score_call(), with the call's attribute `window`, the number of keys that a query sees.
ScoreVars windowed_call(const Call& call);
// Like windowed_call(), with the call's attribute `causal`, which is 1 if there is a causal mask.
ScoreVars masked_call(const Call& call);
/// Returns the shift c, [key tokens, heads]. The difference c_i - c_j is added to the score of
/// query i and key j. c is the argument `shift`, the running sums of the argument `gates`, or the
/// sum of the two. The result is empty if the call has neither argument.
Var shift_call(const Call& call, const ScoreVars& scores);
HeadVars value_call(const Call& call, const ScoreVars& scores);

/// The arguments q, k, v, lengths and key_lengths, followed by `more`. `values` is false for ops
/// that only use scores. Such ops have no v, and none of their arguments is differentiable.
std::vector<Argument> head_inputs(std::vector<Argument> more, bool values = true);
std::vector<Attribute> head_attributes(std::vector<Attribute> more, bool values = true);
/// The attributes of an op that requires as many key heads as query heads, followed by `more`.
std::vector<Attribute> ungrouped_attributes(std::vector<Attribute> more);
std::vector<Attribute> score_attributes();
std::vector<Attribute> windowed_attributes();  // score_attributes() and the attribute `window`
std::vector<Attribute> masked_attributes();    // windowed_attributes() and the attribute `causal`
Argument gates_argument();
/// The optional arguments tau, shift, gates and sink of scores, followed by `more`.
std::vector<Argument> score_arguments(std::vector<Argument> more = {});

/// The shape of a test case. If gap < 0, q, k and v are separate tensors. If gap >= 0, they share
/// one tensor, with `gap` unused columns before each of them.
struct HeadShape {
  std::vector<int> lengths;
  std::int64_t heads = 1, key_heads = 1, width = 4, v_width = 4;
  std::int64_t gap = -1;
  std::vector<int> key_lengths = {};  // numbers of keys; empty: the same as `lengths`
};
/// Shapes of every kind, small enough for gradcheck.
std::vector<HeadShape> small_heads();
/// Shapes with enough entries for the rounding errors of bf16 to average out.
std::vector<HeadShape> medium_heads();
/// Shapes with sequences longer than the blocks in which kernels process tokens.
std::vector<HeadShape> large_heads();
/// Shapes with long sequences. Sums over hundreds of keys have larger rounding errors than short
/// sums.
std::vector<HeadShape> long_heads();
/// The shape of the case that narrow() changes: one sequence of 1200 tokens. If a kernel adds wrong
/// terms of all queries to the gradient of a forget gate, their rounding errors add up to a large
/// error.
HeadShape longest_head();
/// Shapes with fewer queries than keys.
std::vector<HeadShape> decoding_heads();
/// Shapes of cross attention, with fewer and with more queries than keys. The small ones are for
/// gradcheck. The large ones have segments longer than the blocks in which kernels process tokens.
std::vector<HeadShape> small_cross_heads();
std::vector<HeadShape> large_cross_heads();
std::int64_t total(const std::vector<int>& lengths);

/// A case of the given shape, with standard normal q, k and v.
Case head_case(Rng& rng, const HeadShape& shape);
/// Like head_case(), but for ops that require as many key heads as query heads. shape.key_heads is
/// ignored.
Case ungrouped_case(Rng& rng, HeadShape shape);
/// For ops that select keys by the sign of their score: changes q and k of a case so that rounding
/// cannot change a sign. The product of the first entries of q and k has an absolute value of at
/// least 9, and all other entries together contribute less than 3. The first entry of a query is
/// positive with the probability `agreement`, and that of a key with the probability 1 - agreement.
/// If agreement is 1, no score is positive.
Case decided(Rng& rng, Case c, const HeadShape& shape, double agreement);
/// Adds random values for the inputs in `names`, each of which is tau, shift, sink or pull. Some
/// values of tau are negative, and some values of pull are positive.
Case scored(Rng& rng, Case c, std::initializer_list<std::string_view> names);
/// Adds random forget gates between `low` and `high`. The input `gates` contains their logarithms.
Case gated(Rng& rng, Case c, double low, double high);
/// Removes the values v from a case, for ops that only use scores.
Case without_values(Case c);
/// A case with short sequences in which every forget gate is e^-2. A score contains c_i - c_j,
/// where c is the running sum of the logarithms of the gates. The product of query and key cancels
/// nine tenths of c_i - c_j. Many keys then have a weight well above 0, and a small relative error
/// of c changes all these weights.
Case balanced(Rng& rng);
/// Two cases from balanced() with different random numbers, both without the values v.
std::vector<Case> balanced_weights(Rng& rng);
/// Changes a case with one long sequence so that it reveals kernels that add wrong terms to the
/// gradient of a forget gate. This gradient is a sum of gradients dS of scores. A gate affects only
/// the scores of later queries with earlier keys, and a window of 3 keys leaves few such scores. In
/// dS_ij = P_ij (dP_ij - D_i), dP_ij = dy_i . v_j and D_i = dy_i . y_i are nearly equal, because
/// all values v are near 6. dS therefore has large rounding errors. If a kernel adds the dS of
/// other scores too, their errors dominate the gradient of the gate.
Case narrow(Rng& rng, Case c);
/// The shape for Operation::of_length: two heads and one sequence of `tokens` tokens.
HeadShape of_tokens(std::int64_t tokens);

}  // namespace longhand::catalog
