#include "core/contract/attention.h"

#include "core/contract/heads_check.h"

namespace longhand {
namespace {

/// Checks the tensors of an attention rule, such as SoftmaxRule. The functions in() and out() check
/// one input or output of the rule. An argument of type Tensor must have the shape [query tokens,
/// q.heads]. An argument of type Heads must have q.heads heads of v_width columns, the width of the
/// values, and one row per query token.
struct RuleCheck {
  HeadArguments& are;
  const Scores& s;
  std::int64_t v_width;

  Shape by_row() const { return {s.q.data.rows(), s.q.heads}; }
  void in(std::string_view name, const Tensor& x) const { are.in(name, x, by_row(), are.master()); }
  void in(std::string_view name, const Heads& x) const {
    are.in(name, x, s.q.data.rows(), s.q.heads, v_width);
  }
  void out(std::string_view name, const Tensor& x) const {
    if (x) are.out(name, x, by_row(), are.master());
  }
  void out(std::string_view name, const Heads& x) const {
    if (x) are.out(name, x, s.q.data.rows(), s.q.heads, v_width);
  }
  void bf16_alone(std::string_view name, const Heads& x) const {
    are.require(!x || are.type() == DType::bf16, name,
                "expected this tensor only if the inputs are bf16, got it for ", are.type(),
                " inputs");
  }
};

/// Checks the inputs of an attention rule, such as the sink of softmax. The forward and the
/// backward pass read these inputs.
struct CheckInputs : RuleCheck {
  void of_head(std::string_view name, const Tensor& x) const {
    if (x) are.in(name, x, Shape{s.q.heads}, are.master());
  }
  void input(std::string_view name, const Tensor& x) const { in(name, x); }
  void saved(std::string_view, const auto&) const {}
  void residue(std::string_view, const Heads&) const {}
  void target(std::string_view, const Target&, const Tensor&) const {}
};

/// Checks the tensors that the forward pass of an attention rule saves for the backward pass.
struct CheckFilled : RuleCheck {
  void of_head(std::string_view, const Tensor&) const {}
  void input(std::string_view, const Tensor&) const {}
  void saved(std::string_view name, const auto& x) const { out(name, x); }
  void residue(std::string_view name, const Heads& x) const {
    bf16_alone(name, x);
    out(name, x);
  }
};

/// Checks the inputs and the saved tensors that the backward pass of an attention rule reads.
struct CheckRead : CheckInputs {
  void saved(std::string_view name, const auto& x) const { in(name, x); }
  void residue(std::string_view name, const Heads& x) const {
    bf16_alone(name, x);
    if (x) in(name, x);
  }
};

/// Checks the tensors that receive the gradients of an attention rule's inputs, such as dsink.
struct CheckTargets : CheckInputs {
  void of_head(std::string_view, const Tensor&) const {}
  void input(std::string_view, const Tensor&) const {}
  void target(std::string_view name, const Target& dx, const Tensor& x) const {
    are.out(name, dx, x);
  }
};

/// Passes every tensor of an attention rule to `visitor`. `rule` is a std::variant that contains
/// the rule.
template <class Variant>
void each_tensor(const Variant& rule, const auto& visitor) {
  std::visit([&]<class Rule>(const Rule& r) { Rule::list(r, visitor); }, rule);
}

}  // namespace

std::int64_t weights_size(const Segments& queries, const Segments& keys, std::int64_t heads) {
  std::int64_t size = 0;
  for (std::size_t s = 0; s < queries.lengths().size(); ++s) {
    size += heads * std::int64_t{queries.lengths()[s]} * keys.lengths()[s];
  }
  return size;
}

void check(const Attention& op) {
  const Scores& s = op.scores;
  HeadArguments are(Attention::name, s.q);
  are.scores(s, false);
  const RuleCheck of{are, s, op.v.width};
  if (!std::holds_alternative<SoftmaxRule>(op.rule)) are.causal(s);
  each_tensor(op.rule, CheckInputs{of});
  are.in("v", op.v, s.keys.rows(), s.k.heads, -1);
  are.out("y", op.y, s.q.data.rows(), s.q.heads, op.v.width);
  each_tensor(op.rule, CheckFilled{of});
}

void check(const AttentionBackward& op) {
  const Scores& s = op.scores;
  HeadArguments are(AttentionBackward::name, s.q);
  are.scores(s, true);
  if (!std::holds_alternative<SoftmaxGradient>(op.rule)) are.causal(s);
  are.in("v", op.v, s.keys.rows(), s.k.heads, -1);
  const RuleCheck of{are, s, op.v.width};
  each_tensor(op.rule, CheckRead{{of}});
  are.in("dy", op.dy, s.q.data.rows(), s.q.heads, op.v.width);
  are.out("dq", op.dq, s.q);
  are.out("dk", op.dk, s.k);
  are.out("dv", op.dv, op.v);
  are.out(op.dscores, s);
  each_tensor(op.rule, CheckTargets{{of}});
}

void check(const AttentionWeights& op) {
  const Scores& s = op.scores;
  HeadArguments are(AttentionWeights::name, s.q);
  are.scores(s, false);
  if (!std::holds_alternative<SoftmaxRule>(op.rule)) are.causal(s);
  each_tensor(op.rule, CheckInputs{{are, s, 0}});
  are.out("weights", op.weights, Shape{weights_size(s.queries, s.keys, s.q.heads)}, are.master());
}

void check(const FindBadScore& op) {
  HeadArguments are(FindBadScore::name, op.scores.q);
  are.scores(op.scores, false);
  if (!op.own_key) are.causal(op.scores);
  are.out("found", op.found, Shape{4}, DType::i32);
}

}  // namespace longhand
