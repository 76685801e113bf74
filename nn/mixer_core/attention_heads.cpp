#include "nn/mixer_core/attention_heads.h"

#include <utility>

#include "autograd/combine.h"
#include "autograd/cumulate.h"
#include "autograd/elementwise.h"
#include "autograd/matmul.h"
#include "autograd/operators.h"
#include "autograd/rope.h"
#include "autograd/tape.h"
#include "core/error.h"

namespace longhand::nn {

void put(const Heads& x, const Segments& from, const Heads& y, const Segments& to) {
  x.data.backend()(Append{x, from, y, to});
}

HeadVars copy_heads(const HeadVars& x, const Segments& rows) {
  const Tensor& data = x.data.value();
  const auto side_by_side = [heads = x.heads, width = x.width](const Tensor& all) {
    return Heads{all, 0, heads, width};
  };
  const Heads y = side_by_side({data.backend(), {data.rows(), x.heads * x.width}, data.dtype()});
  put(x.value(), rows, y, rows);
  const Var copy =
      record("heads", {&x.data}, y.data,
             [sink = x.data.sink(), first = x.first_column, side_by_side, rows](const Tensor& dy) {
               const Heads from = side_by_side(dy);
               put(from, rows, {sink.sum_in_place(), first, from.heads, from.width}, rows);
             });
  return {copy, 0, x.heads, x.width};
}

HeadsBackward write_output(const HeadVars& x, const Segments& rows, const Heads& y) {
  put(x.value(), rows, y, rows);
  if (!recorded({&x.data})) return {};
  return [sink = x.data.sink(), columns = x.data.value().columns(), rows](const Heads& dy, bool) {
    const Tensor dx(dy.data.backend(), {dy.data.rows(), columns}, dy.data.dtype());
    put(dy, rows, {dx, 0, dy.heads, dy.width}, rows);
    sink.add(dx);
  };
}

void AttentionHeads::declare(Options& options) {
  // The default norm has two names: `default` and its own name. It is always written as `default`,
  // so that mixers with equal options are written as equal texts.
  if (head_norm == default_head_norm()) head_norm = HeadNorm::standard;
  options.choice("head_norm", head_norm,
                 "normalization of each head's queries and keys: default, none, rms, rms_plus_one "
                 "or rms_fixed; rms_plus_one: RMSNorm with gain 1 + weight; rms_fixed: RMSNorm "
                 "without gain; default: rms_fixed for tra heads, none for all other heads");
  rope.declare(options);
}

std::vector<Projected> AttentionHeads::projected() const {
  const std::int64_t queries = heads * width, keys = key_heads * width;
  return {{"query", 0, queries}, {"key", queries, keys}, {"value", queries + keys, keys}};
}

void AttentionHeads::build(MixerScope& layer, const MixerPlace& place) {
  place_ = place;
  const std::int64_t counted = layer.rotary() && turns() ? rope.dims(width) : 0;
  frequencies_ = rope.frequencies(counted);
  dims_ = 2 * static_cast<std::int64_t>(frequencies_.size());
  const HeadNorm norm = norm_of_heads();
  if (norm == HeadNorm::none) return;
  if (norm == HeadNorm::rms_fixed) {
    const Tensor ones = layer.constants(std::vector<double>(static_cast<std::size_t>(width), 1.0));
    query_norm_ = key_norm_ = RmsNorm(ones, layer.epsilon());
    return;
  }
  const Scope own = layer.scope() / place.index;
  const bool plus_one = norm == HeadNorm::rms_plus_one;
  query_norm_ = RmsNorm(own / "query_norm", width, layer.epsilon(), plus_one);
  key_norm_ = RmsNorm(own / "key_norm", width, layer.epsilon(), plus_one);
}

void AttentionHeads::prepare(RopeTables& tables, Backend& backend, DType type,
                             std::int64_t longest) const {
  if (dims_ > 0) tables.table(backend, type, frequencies_, longest);
}

Var AttentionHeads::turned(Var x, std::int64_t first_column, std::int64_t count, const Input& input,
                           RopeTables& tables) const {
  if (dims_ == 0) return x;
  const Tensor& table =
      tables.table(x.backend(), master_type(x.value().dtype()), frequencies_, input.longest);
  return rope_in_place(x, input.positions, table,
                       {.first_column = first_column,
                        .heads = count,
                        .width = width,
                        .dims = dims_,
                        .interleaved = rope.interleaved});
}

Var AttentionHeads::turn(Var projection, const Input& input, RopeTables& tables) const {
  // Heads with a norm are rotated after the norm, in normed().
  if (norm_of_heads() != HeadNorm::none) return projection;
  return turned(std::move(projection), place_.projection, heads + key_heads, input, tables);
}

HeadVars AttentionHeads::normed(const MixerPass& pass, std::int64_t first_column,
                                std::int64_t count, const RmsNorm& norm) const {
  const Var copy =
      copy_heads({pass.projection, first_column, count, width}, pass.input.segments).data;
  const std::int64_t tokens = copy.value().rows();
  const Var each = norm(reshape(copy, {tokens * count, width}));
  const Var y = reshape(each, {tokens, count * width});
  return {turned(y, 0, count, pass.input, pass.tables), 0, count, width};
}

AttentionHeads::Operands AttentionHeads::operands(const MixerPass& pass) const {
  const std::int64_t q = place_.projection, k = q + heads * width, v = k + key_heads * width;
  Operands all{{pass.projection, q, heads, width},
               {pass.projection, k, key_heads, width},
               {pass.projection, v, key_heads, width}};
  if (norm_of_heads() != HeadNorm::none) {
    all.q = normed(pass, q, heads, query_norm_);
    all.k = all.own_k = normed(pass, k, key_heads, key_norm_);
  }
  return with_cache(std::move(all), pass);
}

AttentionHeads::Operands AttentionHeads::with_cache(Operands own, const MixerPass& pass) const {
  if (!pass.cache) return own;
  const Tensor& kept = pass.cache->keys_values;
  const HeadVars keys{kept, 0, key_heads, width};
  const HeadVars values{kept, key_heads * width, key_heads, width};
  put(own.k.value(), pass.input.segments, keys.value(), *pass.cached);
  put(own.v.value(), pass.input.segments, values.value(), *pass.cached);
  return {own.q, keys, values, own.k};
}

Heads AttentionHeads::output(const MixerPass& pass) const {
  return {pass.y, place_.output, heads, width};
}

Tensor log_counts_of(const MixerPass& pass, std::int64_t heads, bool whole) {
  const Segments& queries = pass.input.segments;
  return log_counts(pass.y.backend(), master_type(pass.y.dtype()), queries,
                    pass.cached ? *pass.cached : queries, heads, whole);
}

Var log_sigmoid(const Var& z) {
  const Var f = activate(Activation::sigmoid, z);
  return activate(Activation::log, maximum(f, number_like(f, 1e-30)));
}

Var log_gates(const Var& x, const Var& weight, const Var& bias) {
  const DType master = master_type(x.value().dtype());
  return log_sigmoid(matmul(x, weight, {.transpose_b = true, .out = master}) + bias);
}

Segments cached_segments(const MixerPass& pass) { return pass.cached ? *pass.cached : Segments(); }

ScoreVars AttentionHeads::plain_scores(const Operands& operand, const MixerPass& pass) const {
  return {.q = operand.q,
          .k = operand.k,
          .queries = pass.input.segments,
          .keys = cached_segments(pass)};
}

HeadsBackward AttentionHeads::attend(const ScoreVars& scores, const HeadVars& v,
                                     const MixerPass& pass, const RuleVars& rule) const {
  if (pass.view) {
    pass.view->scores = scores.value();
    pass.view->rule = value_of(rule);
  }
  return attention_into(scores, v, output(pass), rule);
}

std::vector<LearnedNumber> AttentionHeads::numbers_of_heads(std::string_view name,
                                                            const Parameter& parameter) const {
  std::vector<LearnedNumber> numbers;
  if (!parameter) return numbers;
  for (const double value : parameter.value().to_doubles()) {
    numbers.push_back({name, place_.heads_before + std::ssize(numbers), value});
  }
  return numbers;
}

void ScoreOptions::declare(Options& options) {
  options.number("score_scale", scale, 0, 1e6,
                 "factor that multiplies attention scores; 0: 1/sqrt(head width)");
  options.choice(
      "temper", temper,
      "tempered softmax: none, position or length; scores are multiplied by beta ln n, where n is "
      "the number of keys up to the query (position) or in the whole sequence (length)");
  options.number("beta", beta, -1e6, 1e6,
                 "initial beta of the tempered softmax; each layer learns its own beta");
}

Parameter ScoreOptions::build(MixerScope& layer) const {
  return temper == Temper::none ? Parameter() : layer.shared("beta", {1}, beta);
}

void ScoreOptions::check_decoding() const {
  LONGHAND_CHECK(temper != Temper::length,
                 "decoding: the model's scores depend on the length of the whole sequence, so it "
                 "cannot generate token by token");
}

ScoreVars ScoreOptions::scores(const HeadVars& q, const HeadVars& k, const MixerPass& pass,
                               const Parameter& learned_beta) const {
  ScoreVars vars{.q = q,
                 .k = k,
                 .queries = pass.input.segments,
                 .keys = cached_segments(pass),
                 .scale = scale == 0 ? std::optional<double>() : scale};
  if (learned_beta) {
    vars.multiplier =
        multiply(log_counts_of(pass, q.heads, temper == Temper::length), learned_beta);
  }
  return vars;
}

}  // namespace longhand::nn
