#pragma once

#include <optional>
#include <vector>

#include "autograd/composed_attention.h"

/// The scores of one sequence as matrices, for attention mechanisms that are composed of other
/// operations.
namespace longhand {

/// The location of one sequence in the rows of the queries and keys: index of the sequence, first
/// query, number of queries, first key and number of keys.
struct Sequence {
  std::int64_t number, query, queries, key, keys;
};
Sequence sequence_of(const Segments& queries, const Segments& keys, std::int64_t number);

/// The heads of x in the rows first .. first + count - 1, as matrices [heads, count, width].
Var matrices(const HeadVars& x, std::int64_t first, std::int64_t count);

/// A tensor that is not differentiated, on the backend and with the type of `like`.
Tensor constant(const Var& like, const Shape& shape, const std::vector<double>& values);

/// The scores of one sequence. For each rule that turns scores into weights, such as softmax, a
/// file in autograd/rules/ defines the function
///   Var weigh(const SequenceScores& scores, const NAMEVars& rule)
/// which returns the attention weights P, [q.heads, queries, keys].
struct SequenceScores {
  const ScoreVars& vars;
  const Sequence& at;
  const AddToScores& more;

  /// The scores [q.heads, queries, keys] in the master type. `math` is the math mode (precision) of
  /// the products q . k, by default the mode in ScoreVars::math.
  Var scores() const { return scores(vars.math); }
  Var scores(std::optional<Math> math) const;

  /// A mask [queries, keys]: 1 if the query sees the key. If own_key is false, a query does not see
  /// the key at its own position. The mask has the backend and the type of `like`.
  Var seen(const Var& like, bool own_key = true) const;

  /// The rows of x, [tokens, q.heads], that belong to the queries of this sequence, returned as
  /// [q.heads, queries, 1].
  Var by_query(const Var& x) const;
};

}  // namespace longhand
