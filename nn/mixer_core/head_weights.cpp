#include "nn/mixer_core/head_weights.h"

#include "autograd/attention.h"
#include "autograd/composed_attention.h"
#include "autograd/rearrange.h"

namespace longhand::nn {
namespace {

/// Selects one head of x and the rows [begin, begin + length).
Heads one_head(const Heads& x, std::int64_t head, std::int64_t begin, std::int64_t length) {
  return {x.data.slice(begin, length), x.first_column + head * x.width, 1, x.width};
}

/// Selects column `head` of x [rows, heads] and the rows [begin, begin + length). x may be empty.
Tensor one_head(const Tensor& x, std::int64_t head, std::int64_t begin, std::int64_t length) {
  return x ? columns(Var(x.slice(begin, length)), head, 1).value() : x;
}

/// A visitor of the tensors of an AttentionRule. It replaces each input of the rule by the input's
/// part for one head and the rows [begin, begin + length).
struct SelectHead {
  std::int64_t head, begin, length;

  void of_head(std::string_view, Tensor& x) const {
    if (x) x = x.slice(head, 1);
  }
  void input(std::string_view, Tensor& x) const { x = one_head(x, head, begin, length); }
  void saved(std::string_view, auto&) const {}
  void residue(std::string_view, Heads&) const {}
};

Tensor rule_weights(Scores scores, AttentionRule rule, std::int64_t head, std::int32_t begin,
                    std::int32_t length) {
  const std::int64_t group = scores.q.heads / scores.k.heads;
  scores.q = one_head(scores.q, head, begin, length);
  scores.k = one_head(scores.k, head / group, begin, length);
  scores.multiplier = one_head(scores.multiplier, head, begin, length);
  scores.decay = one_head(scores.decay, head, begin, length);
  scores.queries = scores.keys = Segments(scores.q.data.backend(), {&length, 1});
  const SelectHead selected{head, begin, length};
  std::visit([&]<class Rule>(Rule& r) { Rule::list(r, selected); }, rule);
  return attention_weights(scores, rule).reshape({length, length});
}

/// Increases the weights of the reference pairs (query, key) of the sequence by the head's amount,
/// an entry of Reinforcement::amounts. Only weights that exceed the threshold are increased.
Tensor reinforced(const Tensor& weights, const Reinforcement& by, std::int64_t head,
                  std::int32_t begin, std::int32_t length) {
  const double amount = by.amounts.to_doubles()[static_cast<std::size_t>(head)];
  if (!by.pairs || amount == 0) return weights;
  std::vector<double> grown = weights.to_doubles();
  const std::vector<std::int32_t> pairs = by.pairs.to_ints();
  for (std::size_t p = 0; p < pairs.size(); p += 2) {
    const std::int32_t row = pairs[p] - begin, position = pairs[p + 1];
    if (row < 0 || row >= length || position < 0 || position > row) continue;
    double& weight = grown[static_cast<std::size_t>(row) * static_cast<std::size_t>(length) +
                           static_cast<std::size_t>(position)];
    if (weight > by.threshold) weight += amount;
  }
  return Tensor::from(weights.backend(), weights.shape(), weights.dtype(), grown);
}

/// Returns the attention weights of one head in one sequence, [tokens, tokens]. `weights` contains
/// such a matrix for each sequence and head.
Tensor part_of(const Tensor& weights, const Segments& sequences, std::size_t sequence,
               std::int64_t head) {
  // `before` is the number of weights per head in the sequences that precede the requested
  // sequence. `all` is the number of weights per head in all sequences.
  std::int64_t before = 0, all = 0;
  for (std::size_t s = 0; s < sequences.lengths().size(); ++s) {
    if (s == sequence) before = all;
    all += std::int64_t{sequences.lengths()[s]} * sequences.lengths()[s];
  }
  const std::int64_t heads = weights.size() / all, length = sequences.lengths()[sequence];
  const std::int64_t size = length * length;
  return weights.reshape({weights.size()})
      .slice(before * heads + head * size, size)
      .reshape({length, length});
}

Tensor one_hot_rows(const Tensor& selected, std::int64_t head, std::int32_t begin,
                    std::int32_t length, DType type) {
  const std::vector<std::int32_t> keys = selected.slice(begin, length).to_ints();
  const std::int64_t heads = selected.columns();
  std::vector<double> weights(static_cast<std::size_t>(length) * static_cast<std::size_t>(length));
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int32_t key = keys[static_cast<std::size_t>(i * heads + head)];
    if (key >= 0) weights[static_cast<std::size_t>(i * length + key + 1)] = 1;
  }
  return Tensor::from(selected.backend(), {length, length}, type, weights);
}

}  // namespace

Tensor head_weights(const MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head, DType type) {
  const auto at = static_cast<std::size_t>(sequence);
  const std::int32_t begin = sequences.begins()[at], length = sequences.lengths()[at];
  if (view.scores) {
    const Tensor weights = rule_weights(*view.scores, view.rule, head, begin, length);
    return view.reinforcement ? reinforced(weights, *view.reinforcement, head, begin, length)
                              : weights;
  }
  if (view.weights) return part_of(view.weights, sequences, at, head);
  if (view.selected) return one_hot_rows(view.selected, head, begin, length, type);
  return {};
}

Tensor value_weights(const MixerView& view, const Tensor& weights, std::int64_t head) {
  if (!view.gamma) return weights;
  const Tensor gamma = view.gamma.size() == 1 ? view.gamma : view.gamma.slice(head, 1);
  const std::int64_t n = weights.rows();
  return chacal_matrix(weights.reshape({1, n, n}), gamma).value().reshape({n, n});
}

}  // namespace longhand::nn
