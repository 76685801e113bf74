#include "nn/mixers/biased.h"

#include <algorithm>
#include <cmath>

#include "autograd/composed_attention.h"
#include "autograd/elementwise.h"
#include "autograd/matmul.h"
#include "autograd/rearrange.h"

namespace longhand::nn {
namespace {

/// Maximum number of scores of one sequence, over all heads of a layer: one GiB of f32.
constexpr std::int64_t most_scores = 1 << 28;

}  // namespace

BiasedHeads::BiasedHeads(const SoftmaxHeads& plain)
    : AttentionHeads(static_cast<const AttentionHeads&>(plain)),
      scores(plain.scores),
      window(plain.window) {}

void BiasedHeads::declare(Options& options) {
  options.choice(
      "score_bias", bias,
      "learned bias of the scores of biased heads: matrix or heads; matrix: one number per query "
      "position and key position; heads: attention weights of additional heads");
  options.integer("score_bias_longest", longest, 1, 1 << 14,
                  "with --score-bias matrix: maximum sequence length, in tokens");
  AttentionHeads::declare(options);
  scores.declare(options);
  options.integer("window", window, 0, 1 << 24,
                  "number of keys that a query of softmax or biased heads sees; 0: all keys");
}

std::int64_t BiasedHeads::cached_columns() const {
  return AttentionHeads::cached_columns() + (bias == ScoreBias::heads ? heads * width : 0);
}

std::optional<std::int64_t> BiasedHeads::most_tokens() const {
  const auto room = static_cast<std::int64_t>(
      std::sqrt(static_cast<double>(most_scores) / static_cast<double>(heads)));
  return bias == ScoreBias::matrix ? std::min(longest, room) : room;
}

void BiasedHeads::build(MixerScope& layer, const MixerPlace& place) {
  AttentionHeads::build(layer, place);
  beta_ = scores.build(layer);
  const Scope own = layer.scope() / place.index / "score_bias";
  if (bias == ScoreBias::matrix) {
    matrix_ = own.add("matrix", {heads, longest, longest}, nn::constant(0), true, true);
    return;
  }
  // The queries of the additional heads (ScoreBias::heads) start at 0, so these heads give all keys
  // equal weights. These weights are the bias of the scores, and a bias that is equal for all keys
  // does not change a softmax.
  const std::int64_t in = layer.width();
  const double deviation = 1 / std::sqrt(static_cast<double>(in));
  query_ = own.add("query", {heads * width, in}, nn::constant(0), true, true);
  key_ = own.add("key", {heads * width, in}, normal(deviation), true, true);
}

ScoreVars BiasedHeads::further_scores(const MixerPass& pass) const {
  const auto of = [&](const Parameter& weight) -> HeadVars {
    const Var y = matmul(*pass.x, weight, {.transpose_b = true});
    return {turned(y, 0, heads, pass.input, pass.tables), 0, heads, width};
  };
  HeadVars q = of(query_), k = of(key_);
  if (pass.cache) {
    const HeadVars kept{pass.cache->keys_values, AttentionHeads::cached_columns(), heads, width};
    put(k.value(), pass.input.segments, kept.value(), *pass.cached);
    k = kept;
  }
  return {.q = q,
          .k = k,
          .queries = pass.input.segments,
          .keys = cached_segments(pass),
          .window = window};
}

HeadsBackward BiasedHeads::forward(const MixerPass& pass) const {
  const Segments& rows = pass.input.segments;
  Operands operand = operands(pass);
  if (!pass.cache) {
    for (HeadVars* const x : {&operand.q, &operand.k, &operand.v}) *x = copy_heads(*x, rows);
  }
  ScoreVars vars = scores.scores(operand.q, operand.k, pass, beta_);
  vars.window = window;

  AddToScores added_scores;
  if (bias == ScoreBias::matrix) {
    added_scores = [this](const Shape& shape, std::int64_t) {
      const std::int64_t queries = shape[1], keys = shape[2];
      return narrow(narrow(matrix_, 1, keys - queries, queries), 2, 0, keys);
    };
  } else {
    added_scores = [further = further_scores(pass)](const Shape&, std::int64_t sequence) {
      return composed_weights(further, sequence);
    };
  }
  std::vector<Var> seen;
  EditWeights look;
  if (pass.view) {
    look = [&](const Var& weights, std::int64_t) {
      seen.push_back(reshape(weights, {weights.value().size()}));
      return weights;
    };
  }
  const Var y = composed_attention(vars, operand.v, SoftmaxVars{}, look, added_scores);
  if (!seen.empty()) pass.view->weights = concat(seen).value();

  put({y.value(), 0, heads, width}, rows, output(pass), rows);
  if (!y.wants_grad()) return {};
  return [sink = y.sink(), rows](const Heads& dy, bool) {
    const Tensor& all = dy.data;
    const Tensor own(all.backend(), {all.rows(), dy.heads * dy.width}, all.dtype());
    put(dy, rows, {own, 0, dy.heads, dy.width}, rows);
    sink.add(own);
  };
}

std::vector<Parameter> BiasedHeads::added() const {
  if (matrix_) return {matrix_};
  return {query_, key_};
}

std::vector<LearnedNumber> BiasedHeads::learned_numbers() const {
  if (!beta_) return {};
  return {{.name = "beta", .value = beta_.value().item()}};
}

double BiasedHeads::operations_of_pair() const {
  // For each pair of tokens and each head, products of vectors of the head's width are counted,
  // with 2 * width operations each. Without the bias, these are two products in the forward pass
  // and five in the backward pass. ScoreBias::heads adds one in the forward pass and two in the
  // backward pass.
  return (bias == ScoreBias::heads ? 20 : 14) * static_cast<double>(columns());
}

extern const MixerKind biased_mixer;
constinit const MixerKind biased_mixer = mixer_kind<BiasedHeads>("biased");

}  // namespace longhand::nn
