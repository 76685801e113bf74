#include "core/contract/attention.h"

#include "core/contract/heads_check.h"

namespace longhand {
namespace {

/// Checks the tensors of a rule for the forward or backward pass. Each Tensor must be [queries,
/// q.heads]. Heads must have one row per query and v_width entries per head.
struct RuleCheck {
  HeadArguments& are;
  const Scores& s;
  std::int64_t v_width;

  Shape by_row() const { return {s.q.data.rows(), s.q.heads}; }
  void in(std::string_view name, const Tensor& x) const { are.in(name, x, by_row(), are.master()); }
  void out(std::string_view name, const Tensor& x) const {
    if (x) are.out(name, x, by_row(), are.master());
  }
  void in(std::string_view name, const Heads& x) const {
    are.in(name, x, s.q.data.rows(), s.q.heads, v_width);
  }
  void out(std::string_view name, const Heads& x) const {
    if (x) are.out(name, x, s.q.data.rows(), s.q.heads, v_width);
  }
  void sink(const Tensor& x) const {
    if (x) are.in("sink", x, Shape{s.q.heads}, are.master());
  }
  void residue_out(const Heads& x) const {
    bf16_alone("residue", x);
    out("residue", x);
  }
  void residue_in(const Heads& x) const {
    bf16_alone("residue", x);
    if (x) in("residue", x);
  }
  void bf16_alone(std::string_view name, const Heads& x) const {
    are.require(!x || are.type() == DType::bf16, name, "expected none for ", are.type());
  }

  void inputs(const SoftmaxRule& rule) const { sink(rule.sink); }
  void inputs(const StickBreakingRule&) const {}
  void inputs(const TraRule& rule) const { in("pull", rule.count_bias); }
  void inputs(const EntmaxRule&) const {}

  void saved(const SoftmaxRule& rule) const { out("log_denominator", rule.log_denominator); }
  void saved(const StickBreakingRule& rule) const { residue_out(rule.residue); }
  void saved(const TraRule& rule) const {
    out("log_denominator", rule.log_denominator);
    residue_out(rule.residue);
  }
  void saved(const EntmaxRule& rule) const {
    out("threshold", rule.threshold);
    out("root_mean", rule.root_mean);
  }

  void inputs(const SoftmaxGradient& rule) const {
    sink(rule.sink);
    in("y", rule.y);
    in("log_denominator", rule.log_denominator);
  }
  void inputs(const StickBreakingGradient& rule) const {
    in("y", rule.y);
    residue_in(rule.residue);
  }
  void inputs(const TraGradient& rule) const {
    in("pull", rule.count_bias);
    in("y", rule.y);
    residue_in(rule.residue);
    in("log_denominator", rule.log_denominator);
  }
  void inputs(const EntmaxGradient& rule) const {
    in("threshold", rule.threshold);
    in("root_mean", rule.root_mean);
  }

  void targets(const SoftmaxGradient& rule) const { are.out("dsink", rule.dsink, rule.sink); }
  void targets(const StickBreakingGradient&) const {}
  void targets(const TraGradient& rule) const {
    are.out("dpull", rule.dcount_bias, rule.count_bias);
  }
  void targets(const EntmaxGradient&) const {}
};

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
  const RuleCheck check{are, s, op.v.width};
  std::visit([&](const auto& rule) { check.inputs(rule); }, op.rule);
  are.in("v", op.v, s.keys.rows(), s.k.heads, -1);
  are.out("y", op.y, s.q.data.rows(), s.q.heads, op.v.width);
  std::visit([&](const auto& rule) { check.saved(rule); }, op.rule);
}

void check(const AttentionBackward& op) {
  const Scores& s = op.scores;
  HeadArguments are(AttentionBackward::name, s.q);
  are.scores(s, true);
  are.in("v", op.v, s.keys.rows(), s.k.heads, -1);
  const RuleCheck check{are, s, op.v.width};
  std::visit([&](const auto& rule) { check.inputs(rule); }, op.rule);
  are.in("dy", op.dy, s.q.data.rows(), s.q.heads, op.v.width);
  are.out("dq", op.dq, s.q);
  are.out("dk", op.dk, s.k);
  are.out("dv", op.dv, op.v);
  are.out(op.dscores, s);
  std::visit([&](const auto& rule) { check.targets(rule); }, op.rule);
}

void check(const AttentionWeights& op) {
  const Scores& s = op.scores;
  HeadArguments are(AttentionWeights::name, s.q);
  are.scores(s, false);
  std::visit([&](const auto& rule) { RuleCheck{are, s, 0}.inputs(rule); }, op.rule);
  are.out("weights", op.weights, Shape{weights_size(s.queries, s.keys, s.q.heads)}, are.master());
}

void check(const FindBadScore& op) {
  HeadArguments are(FindBadScore::name, op.scores.q);
  are.scores(op.scores, false);
  are.out("found", op.found, Shape{4}, DType::i32);
}

}  // namespace longhand
