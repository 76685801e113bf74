#include "tests/mutants.h"

#include <algorithm>
#include <cmath>

#include "autograd/catalog/heads.h"
#include "autograd/combine.h"
#include "autograd/composed_attention.h"
#include "core/contract/all.h"

namespace longhand::mutants {
namespace {

using tolerance::Block;
using tolerance::Result;

// A mutant is an operation with one deliberate bug. The tests must detect that its results are
// wrong.

bool scale_block(Result& r, const Block& b, double factor) {
  const std::int64_t columns = r.shape.columns();
  bool changed = false;
  for (std::int64_t row = b.row; row < b.row + b.rows; ++row) {
    for (std::int64_t column = b.column; column < b.column + b.columns; ++column) {
      double& value = r.values[static_cast<std::size_t>(row * columns + column)];
      changed = changed || (std::isfinite(value) && value != 0);
      value *= factor;
    }
  }
  return changed;
}

std::vector<Block> parts(const Result& r, const std::vector<Block>& blocks, bool of_rows) {
  std::vector<Block> chosen;
  for (const Block& b : blocks) {
    const bool all_columns = b.columns == r.shape.columns(), all_rows = b.rows == r.shape.rows();
    if ((of_rows ? all_columns && !all_rows : all_rows && !all_columns) && b.rows > 0) {
      chosen.push_back(b);
    }
  }
  return chosen;
}

bool swap_blocks(Result& r, const Block& a, const Block& b) {
  if (a.rows != b.rows || a.columns != b.columns) return false;
  const Result before = r;
  const std::int64_t columns = r.shape.columns();
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.columns; ++j) {
      std::swap(r.values[static_cast<std::size_t>((a.row + i) * columns + a.column + j)],
                r.values[static_cast<std::size_t>((b.row + i) * columns + b.column + j)]);
    }
  }
  return r.values != before.values;
}

/// Index of the nonzero entry whose absolute value is the median; -1 if all entries are 0.
std::int64_t median_entry(const Result& r) {
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < r.values.size(); ++i) {
    if (std::isfinite(r.values[i]) && r.values[i] != 0) places.push_back(static_cast<int>(i));
  }
  if (places.empty()) return -1;
  const auto middle = places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2);
  std::ranges::nth_element(places, middle, {}, [&](std::int64_t i) {
    return std::abs(r.values[static_cast<std::size_t>(i)]);
  });
  return *middle;
}

// Mutants of backends: bugs in how a backend executes an operation.

/// Returns a copy of x in which f(row, value) replaces each entry.
template <class F>
Tensor mapped(const Tensor& x, const F& f) {
  std::vector<double> values = x.to_doubles();
  const std::int64_t columns = std::max<std::int64_t>(1, x.columns());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = f(static_cast<std::int64_t>(i) / columns, values[i]);
  }
  return Tensor::from(x.backend(), x.shape(), x.dtype(), values);
}

Tensor times(const Tensor& x, double factor) {
  return mapped(x, [&](std::int64_t, double value) { return factor * value; });
}

Tensor integers(const Tensor& x, const std::function<std::int32_t(std::size_t)>& f) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(x.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = f(i);
  return Tensor::from(x.backend(), x.shape(), values);
}

/// Alters a backend: before an operation of type Op is executed, f changes the operation's
/// arguments.
template <class Op, class F>
void before(AlteredBackend& backend, F f) {
  backend.alter<Op>([f](Op& op, const auto& run) {
    f(op);
    run(op);
  });
}

/// Alters a backend: f changes the arguments of the scores (struct Scores) of every operation that
/// computes scores.
template <class F>
void alter_scores(AlteredBackend& backend, F f) {
  const auto plain = [f](auto& op) {
    Scores s{.q = op.q, .k = op.k, .queries = op.queries, .keys = op.keys, .scale = op.scale};
    f(s);
    op.q = s.q;
    op.k = s.k;
    op.scale = s.scale;
  };
  before<DeltaFormer>(backend, plain);
  before<DeltaFormerBackward>(backend, plain);
  const auto each = [f](auto& op) { f(op.scores); };
  before<Attention>(backend, each);
  before<AttentionBackward>(backend, each);
  before<AttentionWeights>(backend, each);
  before<Reinforce>(backend, each);
  before<Chacal>(backend, each);
  before<ChacalBackward>(backend, each);
}

/// Alters a backend: f changes the sink, a score without a value, of every operation that may have
/// one.
template <class F>
void alter_sinks(AlteredBackend& backend, F f) {
  const auto of_rule = [f](auto& op) {
    std::visit(
        [&](auto& rule) {
          if constexpr (requires { rule.sink; }) f(rule.sink);
        },
        op.rule);
  };
  before<Attention>(backend, of_rule);
  before<AttentionBackward>(backend, of_rule);
  before<AttentionWeights>(backend, of_rule);
  const auto own = [f](auto& op) { f(op.sink); };
  before<Chacal>(backend, own);
  before<ChacalBackward>(backend, own);
}

/// Returns x with each row replaced by the next one. The last row stays the same.
Tensor next_rows(const Tensor& x) {
  if (!x || x.rows() < 2) return x;
  const std::vector<double> values = x.to_doubles();
  const auto columns = static_cast<std::size_t>(x.columns());
  std::vector<double> moved(values.begin() + std::ptrdiff_t(columns), values.end());
  moved.insert(moved.end(), values.end() - std::ptrdiff_t(columns), values.end());
  return Tensor::from(x.backend(), x.shape(), x.dtype(), moved);
}

/// Corrupts dc, the gradient of the shifts (Scores::decay). For each query i, dc contains the sum
/// of dS_ij over the keys j. If the stored output y_i were exact, the sum over the keys and the
/// sink would be 0. Because y_i is rounded, this sum is
///   dy_i . (sum_j w_ij v_j - y_i sum_j w_ij),
/// which the mutant subtracts from dc. For softmax and TRA (threshold relative attention), w is P,
/// and sum_j w_ij includes the sink and is therefore 1. For entmax, w is the square root of P, and
/// y is the stored root_mean.
void forget_row_sums(const AttentionBackward& op) {
  const Scores& s = op.scores;
  Backend& backend = op.dy.data.backend();
  bool roots = false;
  AttentionRule rule;
  Heads stored;
  if (const auto* const softmax = std::get_if<SoftmaxGradient>(&op.rule)) {
    rule = SoftmaxRule{.sink = softmax->sink};
    stored = softmax->y;
  } else if (const auto* const tra = std::get_if<TraGradient>(&op.rule)) {
    rule = TraRule{.count_bias = tra->count_bias};
    stored = tra->y;
  } else if (const auto* const entmax = std::get_if<EntmaxGradient>(&op.rule)) {
    rule = EntmaxRule{};
    stored = entmax->root_mean;
    roots = true;
  } else {
    return;  // stick-breaking and sigmoid: the rows of dS do not sum to 0
  }
  const Tensor weights(backend, {weights_size(s.queries, s.keys, s.q.heads)}, DType::f32);
  backend(AttentionWeights{.scores = s, .rule = rule, .weights = weights});
  const std::vector<double> p = weights.to_doubles();
  const auto entry = [](const Heads& x) {
    return [values = x.data.to_doubles(), columns = x.data.columns(), first = x.first_column,
            width = x.width](std::int64_t row, std::int64_t head, std::int64_t c) {
      return values[static_cast<std::size_t>(row * columns + first + head * width + c)];
    };
  };
  const auto v = entry(op.v), y = entry(stored), dy = entry(op.dy);
  const Tensor& dshift = op.dscores.decay.tensor;
  std::vector<double> dc = dshift.to_doubles();
  std::size_t at = 0;
  for (std::size_t n = 0; n < s.queries.lengths().size(); ++n) {
    const std::int64_t queries = s.queries.lengths()[n], keys = s.keys.lengths()[n];
    for (std::int64_t h = 0; h < s.q.heads; ++h) {
      for (std::int64_t t = 0; t < queries; ++t, at += static_cast<std::size_t>(keys)) {
        const std::int64_t row = s.queries.begins()[n] + t, first = s.keys.begins()[n];
        double missing = 0;
        for (std::int64_t c = 0; c < op.v.width; ++c) {
          double sum = 0, all = 0;
          for (std::int64_t j = 0; j < keys; ++j) {
            const double of_key = p[at + static_cast<std::size_t>(j)];
            const double w = roots ? std::sqrt(of_key) : of_key;
            sum += w * v(first + j, h * s.k.heads / s.q.heads, c);
            all += w;
          }
          missing += dy(row, h, c) * (sum - y(row, h, c) * (roots ? all : 1));
        }
        dc[static_cast<std::size_t>((first + keys - queries + t) * s.q.heads + h)] -= missing;
      }
    }
  }
  backend(Copy{.x = Tensor::from(backend, dshift.shape(), dshift.dtype(), dc), .y = dshift});
}

double to_bf16(double value) { return static_cast<float>(bf16(static_cast<float>(value))); }

/// Changes y, the result of a normalization: divides by sqrt(variance) + epsilon instead of
/// sqrt(variance + epsilon).
void epsilon_outside(const Tensor& rstd, double epsilon, const Tensor& y, const Tensor& bias) {
  const std::vector<double> inside = rstd.to_doubles();
  const std::vector<double> shift =
      bias ? bias.to_doubles() : std::vector<double>(static_cast<std::size_t>(y.columns()), 0.0);
  std::vector<double> values = y.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double r = inside[i / shift.size()], root = std::sqrt(std::max(0., 1 / r / r - epsilon));
    const double b = shift[i % shift.size()];
    values[i] = b + (values[i] - b) / r / (root + epsilon);
  }
  const Tensor altered = Tensor::from(y.backend(), y.shape(), y.dtype(), values);
  y.backend()(Copy{.x = altered, .y = y});
}

Activation other(Activation f) {
  return f == Activation::gelu        ? Activation::gelu_tanh
         : f == Activation::gelu_tanh ? Activation::gelu
         : f == Activation::silu      ? Activation::gelu
         : f == Activation::relu      ? Activation::silu
                                      : f;
}

/// Returns x without its last row. A vector or a single row is returned unchanged.
Tensor shorter(const Tensor& x) {
  return x.shape().rank() >= 2 && x.shape()[0] > 1 ? x.slice(0, x.shape()[0] - 1) : x;
}

// Mutants of ops: each computes a wrong formula in place of an op of the catalog.

/// Attention, or ChaCAL if `chained`, that omits the value of one key: of the second-to-last
/// visible key or, without a causal mask, of a key that depends on the query.
std::vector<catalog::Output> one_key_dropped(const catalog::Call& c, bool chained) {
  const ScoreVars s = chained ? catalog::score_call(c) : catalog::masked_call(c);
  const HeadVars v = catalog::value_call(c, s);
  const EditWeights drop = [causal = s.causal](const Var& w, std::int64_t) {
    const std::int64_t queries = w.shape()[1], keys = w.shape()[2];
    std::vector<double> kept(static_cast<std::size_t>(w.shape().size()), 1.0);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const std::int64_t j = static_cast<std::int64_t>(i) % keys;
      const std::int64_t t = static_cast<std::int64_t>(i) / keys % queries;
      if (j == (causal ? keys - queries + t - 1 : t % keys)) kept[i] = 0;
    }
    return multiply(w, Tensor::from(w.backend(), w.shape(), w.value().dtype(), kept));
  };
  const SoftmaxVars rule = catalog::softmax_call(c);
  return {{"y", chained ? composed_chacal(s, v, c.in("gamma"), drop, rule.sink)
                        : composed_attention(s, v, rule, drop)}};
}

/// Attention that hides later keys even if it should not. This mutant is possible only if no
/// sequence has more queries than keys.
std::vector<catalog::Output> always_causal(const catalog::Call& c) {
  ScoreVars s = catalog::masked_call(c);
  const HeadVars v = catalog::value_call(c, s);
  bool possible = true;
  for (std::size_t n = 0; s.keys && n < s.keys.lengths().size(); ++n) {
    possible = possible && s.queries.lengths()[n] <= s.keys.lengths()[n];
  }
  s.causal = s.causal || possible;
  return {{"y", composed_attention(s, v, catalog::softmax_call(c))}};
}

/// FAL that reads the value after the first key with a positive score instead of the last such key.
/// This mutant has no gradients.
std::vector<catalog::Output> first_match(const catalog::Call& c) {
  const ScoreVars s = catalog::key_call(c);
  const HeadVars v = catalog::value_call(c, s);
  const Segments keys = s.keys ? s.keys : s.queries;
  const auto read = [](const HeadVars& x) { return x.data.value().to_doubles(); };
  const std::vector<double> q = read(s.q), k = read(s.k), values = read(v);
  const auto at = [](const std::vector<double>& x, const HeadVars& h, std::int64_t row,
                     std::int64_t head, std::int64_t entry) {
    return x[static_cast<std::size_t>(row * h.data.value().columns() + h.first_column +
                                      head * h.width + entry)];
  };
  const std::int64_t tokens = s.q.data.value().rows(), group = s.q.heads / s.k.heads;
  std::vector<double> y(static_cast<std::size_t>(tokens * s.q.heads * v.width), 0.0);
  std::vector<std::int32_t> match(static_cast<std::size_t>(tokens * s.q.heads), -1);
  for (std::size_t n = 0; n < s.queries.lengths().size(); ++n) {
    const std::int64_t count = s.queries.lengths()[n], before = keys.lengths()[n] - count;
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t row = s.queries.begins()[n] + t, first = keys.begins()[n];
      for (std::int64_t h = 0; h < s.q.heads; ++h) {
        for (std::int64_t m = 0; m < before + t; ++m) {
          double score = 0;
          for (std::int64_t e = 0; e < s.q.width; ++e) {
            score += at(q, s.q, row, h, e) * at(k, s.k, first + m, h / group, e);
          }
          if (score <= 0) continue;
          match[static_cast<std::size_t>(row * s.q.heads + h)] = static_cast<std::int32_t>(m);
          for (std::int64_t e = 0; e < v.width; ++e) {
            y[static_cast<std::size_t>((row * s.q.heads + h) * v.width + e)] =
                score * at(values, v, first + m + 1, h / group, e);
          }
          break;
        }
      }
    }
  }
  Backend& backend = c.backend();
  return {{"y", Tensor::from(backend, {tokens, s.q.heads * v.width}, s.q.data.value().dtype(), y)},
          {"match", Tensor::from(backend, {tokens, s.q.heads}, match)}};
}

}  // namespace

const std::vector<ResultMutant>& of_results() {
  using Blocks = std::vector<Block>;
  static const std::vector<ResultMutant> all{
      {"1.02 times", [](Result& r, const Blocks& b) { return scale_block(r, b.front(), 1.02); }},
      {"1.02 times one head or block of columns",
       [](Result& r, const Blocks& b) {
         const Blocks columns = parts(r, b, false);
         return !columns.empty() && scale_block(r, columns.back(), 1.02);
       }},
      {"1.02 times one sequence or block of rows",
       [](Result& r, const Blocks& b) {
         const Blocks rows = parts(r, b, true);
         return !rows.empty() && scale_block(r, rows.back(), 1.02);
       }},
      {"last sequence or block of rows is zero",
       [](Result& r, const Blocks& b) {
         const Blocks rows = parts(r, b, true);
         return !rows.empty() && scale_block(r, rows.back(), 0);
       }},
      {"one row is zero",
       [](Result& r, const Blocks&) {
         return r.shape.rows() > 1 &&
                scale_block(r, {"", r.shape.rows() / 2, 1, 0, r.shape.columns()}, 0);
       }},
      {"one entry has the other sign",
       [](Result& r, const Blocks&) {
         const std::int64_t at = median_entry(r);
         if (at >= 0) r.values[static_cast<std::size_t>(at)] *= -1;
         return at >= 0;
       }},
      {"two neighbouring rows swapped",
       [](Result& r, const Blocks&) {
         const std::int64_t row = r.shape.rows() / 2, columns = r.shape.columns();
         return row >= 1 && swap_blocks(r, {"", row - 1, 1, 0, columns}, {"", row, 1, 0, columns});
       }},
      {"two heads or blocks of columns swapped",
       [](Result& r, const Blocks& b) {
         const Blocks columns = parts(r, b, false);
         return columns.size() > 1 && swap_blocks(r, columns[0], columns[1]);
       }},
  };
  return all;
}

namespace {

using B = AlteredBackend;

std::vector<BackendMutant> score_mutants() {
  return {
      {"scores without 1 / sqrt(width)",
       [](B& b) {
         alter_scores(b, [](Scores& s) { s.scale *= std::sqrt(static_cast<double>(s.q.width)); });
       }},
      {"a window of one key more",
       [](B& b) { alter_scores(b, [](Scores& s) { s.window += s.window > 0 ? 1 : 0; }); }},
      {"tau of the next token",
       [](B& b) { alter_scores(b, [](Scores& s) { s.multiplier = next_rows(s.multiplier); }); }},
      {"tau 2% larger in backward",
       [](B& b) {
         before<AttentionBackward>(b, [](AttentionBackward& op) {
           if (op.scores.multiplier) op.scores.multiplier = times(op.scores.multiplier, 1.02);
         });
       }},
      {"c of the other sign",
       [](B& b) {
         alter_scores(b, [](Scores& s) { s.decay = s.decay ? times(s.decay, -1) : s.decay; });
       }},
      {"c of the next token",
       [](B& b) { alter_scores(b, [](Scores& s) { s.decay = next_rows(s.decay); }); }},
      {"a sink of 0",
       [](B& b) { alter_sinks(b, [](Tensor& sink) { sink = sink ? times(sink, 0) : sink; }); }},
      {"cumulate the other way round",
       [](B& b) { before<Cumulate>(b, [](Cumulate& op) { op.reverse = !op.reverse; }); }},
      {"cumulate: 2% less",
       [](B& b) { before<Cumulate>(b, [](Cumulate& op) { op.x = times(op.x, 0.98); }); }},
      {"ln n of whole segments or of those up to a query: the other",
       [](B& b) { before<LogCounts>(b, [](LogCounts& op) { op.whole = !op.whole; }); }},
  };
}

std::vector<BackendMutant> attention_backward_mutants() {
  return {
      {"attention backward without scale",
       [](B& b) {
         before<AttentionBackward>(b, [](AttentionBackward& op) {
           op.scores.scale *= std::sqrt(static_cast<double>(op.scores.q.width));
         });
       }},
      {"attention backward without the row sum D",
       [](B& b) {
         before<AttentionBackward>(b, [](AttentionBackward& op) {
           std::visit(
               [](auto& rule) {
                 if constexpr (requires { rule.root_mean; }) {
                   rule.root_mean.data = times(rule.root_mean.data, 0);
                 } else if constexpr (requires { rule.y; }) {
                   rule.y.data = times(rule.y.data, 0);
                 }
               },
               op.rule);
         });
       }},
      {"attention backward: D of a stick from the rounded y",
       [](B& b) {
         before<AttentionBackward>(b, [](AttentionBackward& op) {
           if (auto* const stick = std::get_if<StickBreakingGradient>(&op.rule))
             stick->residue = {};
         });
       }},
      {"attention backward: dc from column sums alone",
       [](B& b) {
         b.alter<AttentionBackward>([](AttentionBackward& op, const auto& run) {
           run(op);
           const bool rounded = op.dy.data.dtype() == DType::bf16;
           const bool stick = std::holds_alternative<StickBreakingGradient>(op.rule);
           if (rounded && op.dscores.decay && !stick) forget_row_sums(op);
         });
       }},
  };
}

std::vector<BackendMutant> reinforcement_mutants() {
  return {
      {"reinforced by 2% less",
       [](B& b) {
         before<Reinforce>(b, [](Reinforce& op) { op.amounts = times(op.amounts, 0.98); });
       }},
      {"reinforced below the threshold too",
       [](B& b) { before<Reinforce>(b, [](Reinforce& op) { op.threshold = 0; }); }},
      {"reinforced beyond the window too",
       [](B& b) { before<Reinforce>(b, [](Reinforce& op) { op.scores.window = 0; }); }},
      {"reinforced at the key before",
       [](B& b) {
         before<Reinforce>(b, [](Reinforce& op) {
           const auto pairs = op.pairs.to_ints();
           op.pairs = integers(op.pairs, [&](std::size_t i) {
             return i % 2 == 0 ? pairs[i] : std::max(0, pairs[i] - 1);
           });
         });
       }},
  };
}

std::vector<BackendMutant> chain_mutants() {
  return {
      {"gamma 2% smaller",
       [](B& b) { before<Chacal>(b, [](Chacal& op) { op.gamma = times(op.gamma, 0.98); }); }},
      {"gamma 2% smaller in backward",
       [](B& b) {
         before<ChacalBackward>(b, [](ChacalBackward& op) { op.gamma = times(op.gamma, 0.98); });
       }},
      {"gamma in bf16",
       [](B& b) {
         before<Chacal>(b, [](Chacal& op) {
           op.gamma = mapped(op.gamma, [](std::int64_t, double g) { return to_bf16(g); });
         });
       }},
      {"deltaformer: gain 2% smaller",
       [](B& b) {
         before<DeltaFormer>(b, [](DeltaFormer& op) { op.gain = times(op.gain, 0.98); });
       }},
      {"deltaformer: gain 2% smaller in backward",
       [](B& b) {
         before<DeltaFormerBackward>(
             b, [](DeltaFormerBackward& op) { op.gain = times(op.gain, 0.98); });
       }},
      {"deltaformer: gain of the next token",
       [](B& b) { before<DeltaFormer>(b, [](DeltaFormer& op) { op.gain = next_rows(op.gain); }); }},
      {"deltaformer: backward without the row sum",
       [](B& b) {
         before<DeltaFormerBackward>(
             b, [](DeltaFormerBackward& op) { op.read.data = times(op.read.data, 0); });
       }},
  };
}

std::vector<BackendMutant> recurrence_mutants() {
  return {
      {"delta: beta of the next token",
       [](B& b) { before<Delta>(b, [](Delta& op) { op.beta = next_rows(op.beta); }); }},
      {"delta: beta 2% smaller in backward",
       [](B& b) {
         before<DeltaBackward>(b, [](DeltaBackward& op) { op.beta = times(op.beta, 0.98); });
       }},
      {"delta: decay of the next token",
       [](B& b) { before<Delta>(b, [](Delta& op) { op.decay = next_rows(op.decay); }); }},
      {"delta: decay of the next token in backward",
       [](B& b) {
         before<DeltaBackward>(b, [](DeltaBackward& op) { op.decay = next_rows(op.decay); });
       }},
      {"delta: nothing remembered of earlier tokens",
       [](B& b) {
         before<Delta>(b, [](Delta& op) {
           if (op.before) op.before = times(op.before, 0);
         });
       }},
      {"delta: the values for what is missing of them",
       [](B& b) {
         b.alter<Delta>([](Delta& op, const auto& run) {
           run(op);
           if (op.error) op.error.backend()(Fill{.value = 0.1, .y = op.error});
         });
       }},
      {"a convolution with the weights of the token before",
       [](B& b) {
         before<ShortConvolution>(b,
                                  [](ShortConvolution& op) { op.weight = next_rows(op.weight); });
       }},
      {"a convolution with the weights of the token before, in backward",
       [](B& b) {
         before<ShortConvolutionBackward>(
             b, [](ShortConvolutionBackward& op) { op.weight = next_rows(op.weight); });
       }},
      {"lstm: U 2% smaller",
       [](B& b) { before<Lstm>(b, [](Lstm& op) { op.u = times(op.u, 0.98); }); }},
      {"lstm: U 2% smaller in backward",
       [](B& b) { before<LstmBackward>(b, [](LstmBackward& op) { op.u = times(op.u, 0.98); }); }},
      {"lstm: the cells of the next token in backward",
       [](B& b) {
         before<LstmBackward>(b, [](LstmBackward& op) { op.cells = next_rows(op.cells); });
       }},
  };
}

std::vector<BackendMutant> rotation_mutants() {
  return {
      {"rope: one position earlier",
       [](B& b) {
         before<Rope>(b, [](Rope& op) {
           const auto positions = op.positions.to_ints();
           op.positions =
               integers(op.positions, [&](std::size_t i) { return std::max(0, positions[i] - 1); });
         });
       }},
      {"rope: the other pairs",
       [](B& b) { before<Rope>(b, [](Rope& op) { op.interleaved = !op.interleaved; }); }},
      {"rope: the other way round",
       [](B& b) { before<Rope>(b, [](Rope& op) { op.inverse = !op.inverse; }); }},
      {"rotate: the other way round",
       [](B& b) { before<Rotate>(b, [](Rotate& op) { op.inverse = !op.inverse; }); }},
      {"rotate: angles 2% smaller",
       [](B& b) { before<Rotate>(b, [](Rotate& op) { op.angles = times(op.angles, 0.98); }); }},
      {"rotate: another row's outputs in backward",
       [](B& b) { before<RotateBackward>(b, [](RotateBackward& op) { op.y = next_rows(op.y); }); }},
  };
}

std::vector<BackendMutant> norm_mutants() {
  return {
      {"epsilon outside the root",
       [](B& b) {
         b.alter<LayerNorm>([](LayerNorm& op, const auto& run) {
           run(op);
           epsilon_outside(op.rstd, op.epsilon, op.y, op.bias);
         });
         b.alter<RmsNorm>([](RmsNorm& op, const auto& run) {
           run(op);
           epsilon_outside(op.rstd, op.epsilon, op.y, {});
         });
       }},
      {"gain offset left out",
       [](B& b) { before<RmsNorm>(b, [](RmsNorm& op) { op.offset = 0; }); }},
  };
}

std::vector<BackendMutant> product_mutants() {
  return {
      {"bias added twice",
       [](B& b) {
         before<AddBias>(b, [](AddBias& op) {
           if (op.bias) op.bias = times(op.bias, 2);
         });
         before<Matmul>(b, [](Matmul& op) {
           if (op.bias) op.bias = times(op.bias, 2);
         });
         before<LayerNorm>(b, [](LayerNorm& op) {
           if (op.bias) op.bias = times(op.bias, 2);
         });
       }},
      {"residual left out",
       [](B& b) {
         before<AddBias>(b, [](AddBias& op) {
           if (op.bias) op.residual = {};
         });
         before<Matmul>(b, [](Matmul& op) { op.residual = {}; });
       }},
      {"product without its factor",
       [](B& b) { before<Matmul>(b, [](Matmul& op) { op.alpha = 1; }); }},
      {"product assigned where it should be added",
       [](B& b) { before<Matmul>(b, [](Matmul& op) { op.beta = 0; }); }},
      {"backward epilogue left out",
       [](B& b) {
         before<Matmul>(b, [](Matmul& op) {
           if (!op.at) return;
           op.at = {};
           op.f = {};
         });
       }},
      {"another activation",
       [](B& b) {
         before<Activate>(b, [](Activate& op) { op.f = other(op.f); });
         before<Gate>(b, [](Gate& op) { op.f = other(op.f); });
         before<Matmul>(b, [](Matmul& op) {
           if (op.f) op.f = other(*op.f);
         });
       }},
      {"the next diagonal", [](B& b) { before<Triangle>(b, [](Triangle& op) { ++op.diagonal; }); }},
      {"the diagonal taken as ones, or not",
       [](B& b) { before<SolveTriangular>(b, [](SolveTriangular& op) { op.unit = !op.unit; }); }},
  };
}

std::vector<BackendMutant> row_mutants() {
  return {
      {"the last row left out of a sum over rows",
       [](B& b) {
         before<ColumnSum>(b, [](ColumnSum& op) { op.x = shorter(op.x); });
         before<EmbeddingBackward>(b, [](EmbeddingBackward& op) {
           if (op.dy.rows() < 2) return;
           op.dy = op.dy.slice(0, op.dy.rows() - 1);
           op.ids = op.ids.slice(0, op.ids.size() - 1);
         });
       }},
      {"indices of the row before",
       [](B& b) {
         const auto shifted = [](const Tensor& x) {
           const auto values = x.to_ints();
           return integers(x, [&](std::size_t i) { return values[i == 0 ? 0 : i - 1]; });
         };
         before<Embedding>(b, [=](Embedding& op) { op.ids = shifted(op.ids); });
         before<Gather>(b, [=](Gather& op) { op.index = shifted(op.index); });
       }},
      {"copied one column to the left",
       [](B& b) {
         before<Append>(b, [](Append& op) {
           if (op.x.first_column > 0) --op.x.first_column;
         });
       }},
  };
}

std::vector<BackendMutant> loss_mutants() {
  return {
      {"softmax without its mask",
       [](B& b) { before<Softmax>(b, [](Softmax& op) { op.causal = false; }); }},
      {"softmax backward without the row sum",
       [](B& b) {
         b.alter<SoftmaxBackward>([](SoftmaxBackward& op, const auto&) {
           op.y.backend()(Combine{.f = Combination::product, .a = op.y, .b = op.dy, .y = op.dx});
         });
       }},
      {"loss without its weights",
       [](B& b) {
         before<CrossEntropy>(b, [](CrossEntropy& op) { op.weights = {}; });
         before<BinaryCrossEntropy>(b, [](BinaryCrossEntropy& op) { op.weights = {}; });
       }},
      {"loss backward without its weights",
       [](B& b) {
         before<CrossEntropyBackward>(b, [](CrossEntropyBackward& op) { op.weights = {}; });
         before<BinaryCrossEntropyBackward>(
             b, [](BinaryCrossEntropyBackward& op) { op.weights = {}; });
       }},
  };
}

std::vector<BackendMutant> optimizer_mutants() {
  return {
      {"squares of all tensors but the last",
       [](B& b) {
         before<SquareSums>(b, [](SquareSums& op) {
           if (op.tensors.size() > 1) op.tensors.back() = times(op.tensors.back(), 0);
         });
       }},
      {"norm of all squares but the last",
       [](B& b) {
         before<GlobalNorm>(
             b, [](GlobalNorm& op) { op.squares = op.squares.slice(0, op.squares.size() - 1); });
       }},
      {"a limit 2% larger",
       [](B& b) { before<GlobalNorm>(b, [](GlobalNorm& op) { op.largest *= 1.02; }); }},
      {"the other kind of decay",
       [](B& b) { before<Adam>(b, [](Adam& op) { op.decoupled = !op.decoupled; }); }},
      {"moments without bias correction",
       [](B& b) {
         before<Adam>(b, [](Adam& op) {
           const auto now = op.now.to_doubles();
           op.now = Tensor::from(op.now.backend(), {3}, op.now.dtype(),
                                 std::vector<double>{now[0], now[0], 1});
         });
       }},
      {"beta2 for beta1", [](B& b) { before<Adam>(b, [](Adam& op) { op.beta1 = op.beta2; }); }},
      {"momentum nearer to 1",
       [](B& b) { before<Sgd>(b, [](Sgd& op) { op.momentum = (1 + op.momentum) / 2; }); }},
      {"steps without decay",
       [](B& b) { before<Sgd>(b, [](Sgd& op) { op.decay.assign(op.decay.size(), 0); }); }},
  };
}

std::vector<BackendMutant> dropout_mutants() {
  return {
      {"another layer's draw", [](B& b) { before<Dropout>(b, [](Dropout& op) { ++op.index; }); }},
      {"a dropout rate 2% larger",
       [](B& b) { before<Dropout>(b, [](Dropout& op) { op.rate *= 1.02; }); }},
  };
}

}  // namespace

const std::vector<BackendMutant>& of_backends() {
  static const std::vector<BackendMutant> all = [] {
    std::vector<BackendMutant> list;
    for (const auto mutants :
         {score_mutants, attention_backward_mutants, reinforcement_mutants, chain_mutants,
          recurrence_mutants, rotation_mutants, norm_mutants, product_mutants, row_mutants,
          loss_mutants, optimizer_mutants, dropout_mutants}) {
      for (BackendMutant& mutant : mutants()) list.push_back(std::move(mutant));
    }
    return list;
  }();
  return all;
}

const std::vector<OperationMutant>& of_operations() {
  const auto attention = [](const catalog::Call& c) { return one_key_dropped(c, false); };
  const auto chacal = [](const catalog::Call& c) { return one_key_dropped(c, true); };
  static const std::vector<OperationMutant> all{
      {"attention", "one key dropped", attention},
      {"composed_attention", "one key dropped", attention},
      {"attention", "always causal", always_causal},
      {"chacal", "one key dropped", chacal},
      {"composed_chacal", "one key dropped", chacal},
      {"fal", "the first match", first_match},
      {"composed_fal", "the first match", first_match},
  };
  return all;
}

}  // namespace longhand::mutants
