#pragma once

#include "autograd/attention.h"
#include "autograd/catalog/catalog.h"

/// What the ops of the attention family share: heads as arguments, and shapes to test them on.
namespace longhand::catalog {

/// q, k and v of a call, where its attributes say they lie. Without k, keys lie in q's tensor;
/// without v, values lie in k's. Not `grouped`: the op has ungrouped_attributes().
ScoreVars key_call(const Call& call, bool grouped = true);    // q, k and the lengths
ScoreVars score_call(const Call& call, bool grouped = true);  // and scale, tau, shift, sink
ScoreVars windowed_call(const Call& call);                    // and the window
HeadVars value_call(const Call& call, const ScoreVars& scores);

/// Without values (scores alone are looked at) nothing is differentiable.
std::vector<Argument> head_inputs(std::vector<Argument> more, bool values = true);
std::vector<Attribute> head_attributes(std::vector<Attribute> more, bool values = true);
/// The attributes of an op that requires as many key heads as query heads.
std::vector<Attribute> ungrouped_attributes(std::vector<Attribute> more);
std::vector<Attribute> score_attributes();
std::vector<Attribute> windowed_attributes();  // and the window
/// What scores have beside q and k, then `more`.
std::vector<Argument> score_arguments(std::vector<Argument> more = {});

/// A shape of the problem: q, k and v in tensors of their own, or, with a gap >= 0, in one tensor
/// with so many columns before each of them.
struct HeadShape {
  std::vector<int> lengths;
  std::int64_t heads = 1, key_heads = 1, width = 4, v_width = 4;
  std::int64_t gap = -1;
  std::vector<int> key_lengths = {};  // empty: as the queries
};
std::vector<HeadShape> small_heads();     // one of each kind, cheap enough for gradcheck
std::vector<HeadShape> medium_heads();    // enough entries for averages in bf16
std::vector<HeadShape> large_heads();     // longer than any block of a kernel
std::vector<HeadShape> decoding_heads();  // fewer queries than keys
std::int64_t total(const std::vector<int>& lengths);

/// Standard normal q, k, v, and lengths.
Case head_case(Rng& rng, const HeadShape& shape);
/// The same for an op with ungrouped_attributes: the shape's key heads are ignored.
Case ungrouped_case(Rng& rng, HeadShape shape);
/// The sign of a score decides which pair is chosen: here it is that of the first entries' product,
/// which is of size 9 where all others together stay below 3. `agreement` of the queries are
/// positive, and 1 - agreement of the keys: agreement 1 finds none.
Case decided(Rng& rng, Case c, const HeadShape& shape, double agreement);
/// The same with some of tau, shift, sink and pull. A tau may be negative, a pull positive.
Case scored(Rng& rng, Case c, std::initializer_list<std::string_view> names);

}  // namespace longhand::catalog
