#include "autograd/catalog/heads.h"

#include <cmath>
#include <numeric>

#include "autograd/cumulate.h"
#include "autograd/operators.h"
#include "core/backend.h"
#include "core/error.h"

namespace longhand::catalog {
namespace {

Segments segments(Backend& backend, const Tensor& lengths) {
  const std::vector<std::int32_t> host = lengths.to_ints();
  return Segments(backend, host);
}

HostTensor host(const std::vector<int>& lengths) {
  return {{static_cast<std::int64_t>(lengths.size())},
          std::vector<double>(lengths.begin(), lengths.end())};
}

template <class T>
std::vector<T> joined(std::vector<T> a, std::vector<T> b) {
  for (T& item : b) a.push_back(std::move(item));
  return a;
}

}  // namespace

ScoreVars key_call(const Call& c, bool grouped) {
  const Var q = c.in("q");
  const std::int64_t heads = c.integer("heads");
  LONGHAND_CHECK(heads >= 1, "heads: expected at least 1, got ", heads);
  const std::int64_t given = grouped ? c.integer("key_heads") : 0;
  const std::int64_t key_heads = given ? given : heads;
  const std::int64_t width = c.integer("width") ? c.integer("width") : q.value().columns() / heads;
  ScoreVars s{.q = {q, c.integer("q_column"), heads, width},
              .k = {c.maybe("k") ? c.maybe("k") : q, c.integer("k_column"), key_heads, width},
              .queries = segments(c.backend(), c.in("lengths").value())};
  if (const Var lengths = c.maybe("key_lengths")) {
    s.keys = segments(c.backend(), lengths.value());
  }
  return s;
}

ScoreVars score_call(const Call& c, bool grouped) {
  ScoreVars s = key_call(c, grouped);
  if (c.number("scale") != 0) s.scale = c.number("scale");
  s.multiplier = c.maybe("tau");
  s.decay = shift_call(c, s);
  return s;
}

SoftmaxVars softmax_call(const Call& c) { return {c.maybe("sink")}; }

Var shift_call(const Call& c, const ScoreVars& s) {
  const Var shift = c.maybe("shift"), gates = c.maybe("gates");
  if (!gates) return shift;
  const Var sums = cumulate(gates, s.keys ? s.keys : s.queries);
  return shift ? shift + sums : sums;
}

ScoreVars windowed_call(const Call& c) {
  ScoreVars s = score_call(c);
  s.window = c.integer("window");
  return s;
}

ScoreVars masked_call(const Call& c) {
  ScoreVars s = windowed_call(c);
  s.causal = c.integer("causal") != 0;
  return s;
}

HeadVars value_call(const Call& c, const ScoreVars& s) {
  const Var v = c.maybe("v") ? c.maybe("v") : s.k.data;
  const std::int64_t width =
      c.integer("v_width") ? c.integer("v_width") : v.value().columns() / s.k.heads;
  return {v, c.integer("v_column"), s.k.heads, width};
}

std::vector<Argument> head_inputs(std::vector<Argument> more, bool values) {
  std::vector<Argument> inputs = {
      {"q", "[tokens, columns]"},
      {"k", "[key tokens, columns]; without it keys lie in q", Role::activation, true, true}};
  if (values) {
    inputs.push_back(
        {"v", "[key tokens, columns]; without it values lie in k", Role::activation, true, true});
  }
  inputs.push_back({"lengths", "[sequences]: tokens of each", Role::index, false});
  inputs.push_back({"key_lengths", "[sequences]; without it as lengths", Role::index, false, true});
  inputs = joined(std::move(inputs), std::move(more));
  if (!values) {
    for (Argument& input : inputs) input.differentiable = false;
  }
  return inputs;
}

std::vector<Attribute> head_attributes(std::vector<Attribute> more, bool values) {
  std::vector<Attribute> attributes = {
      {"heads", "1", "query heads"},
      {"key_heads", "0", "key and value heads; 0: as many as query heads"},
      {"width", "0", "entries of a query and key head; 0: q's columns / heads"},
      {"q_column", "0", "q's column where its first head starts"},
      {"k_column", "0", "the same for k"}};
  if (values) {
    attributes.push_back({"v_width", "0", "entries of a value head; 0: v's columns / key heads"});
    attributes.push_back({"v_column", "0", "as q_column, for v"});
  }
  return joined(std::move(attributes), std::move(more));
}

std::vector<Attribute> ungrouped_attributes(std::vector<Attribute> more) {
  std::vector<Attribute> attributes = head_attributes(std::move(more));
  std::erase_if(attributes, [](const Attribute& a) { return a.name == "key_heads"; });
  return attributes;
}

std::vector<Attribute> score_attributes() {
  return {{"scale", "0", "factor of the scores; 0: 1 / sqrt(width)"}};
}

std::vector<Attribute> windowed_attributes() {
  return joined(score_attributes(),
                {{"window", "0", "how many keys back a query sees, itself included; 0: all"}});
}

std::vector<Attribute> masked_attributes() {
  return joined(windowed_attributes(),
                {{"causal", "1", "0: every query sees every key of its sequence"}});
}

Argument gates_argument() {
  return {"gates", "[key tokens, heads]: ln f, whose sums over a sequence are added to c",
          Role::master, true, true};
}

std::vector<Argument> score_arguments(std::vector<Argument> more) {
  return joined({{"tau", "[tokens, heads]: factors of scores", Role::master, true, true},
                 {"shift", "[key tokens, heads]: c of c_i - c_j", Role::master, true, true},
                 gates_argument(),
                 {"sink", "[heads]: a score without a value", Role::master, true, true}},
                std::move(more));
}

std::int64_t total(const std::vector<int>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

std::vector<HeadShape> small_heads() {
  return {{.lengths = {1, 2}, .width = 1, .v_width = 1},
          {.lengths = {5}, .width = 3, .v_width = 5},
          {.lengths = {3, 0, 1, 6}, .heads = 2, .key_heads = 2, .gap = 0},
          {.lengths = {4, 2}, .heads = 4, .key_heads = 2, .width = 5, .v_width = 2, .gap = 3},
          {.lengths = {4}, .heads = 3, .key_heads = 1, .width = 2, .v_width = 7},
          {.lengths = {3}, .width = 70, .v_width = 33},
          {.lengths = {9}, .width = 16, .v_width = 16, .gap = 0}};
}

std::vector<HeadShape> medium_heads() {
  return {{.lengths = {20, 24, 40}, .heads = 2, .key_heads = 2, .width = 16, .v_width = 16},
          {.lengths = {30, 34}, .heads = 4, .key_heads = 2, .width = 12, .v_width = 20, .gap = 0},
          {.lengths = {48}, .heads = 2, .key_heads = 2, .width = 24, .v_width = 8}};
}

std::vector<HeadShape> large_heads() {
  return {
      {.lengths = {150}, .width = 16, .v_width = 16},
      {.lengths = {33, 65, 0, 64},
       .heads = 3,
       .key_heads = 3,
       .width = 33,
       .v_width = 17,
       .gap = 5},
      {.lengths = {70, 1, 80}, .heads = 2, .key_heads = 1, .width = 64, .v_width = 64, .gap = 0},
      {.lengths = {66}, .width = 257, .v_width = 130}};
}

std::vector<HeadShape> decoding_heads() {
  return {{.lengths = {1}, .width = 3, .v_width = 2, .key_lengths = {4}},
          {.lengths = {2, 0, 3},
           .heads = 4,
           .key_heads = 2,
           .width = 5,
           .v_width = 3,
           .key_lengths = {7, 2, 3}}};
}

std::vector<HeadShape> small_cross_heads() {
  return {{.lengths = {1, 3}, .width = 3, .v_width = 2, .key_lengths = {4, 1}},
          {.lengths = {5, 0, 2},
           .heads = 4,
           .key_heads = 2,
           .width = 5,
           .v_width = 3,
           .key_lengths = {2, 3, 4}}};
}

std::vector<HeadShape> large_cross_heads() {
  return {{.lengths = {150}, .width = 16, .v_width = 16, .key_lengths = {30}},
          {.lengths = {40}, .width = 20, .v_width = 36, .key_lengths = {300}},
          {.lengths = {3, 100, 0, 70, 65},
           .heads = 4,
           .key_heads = 2,
           .width = 33,
           .v_width = 17,
           .key_lengths = {200, 64, 9, 1, 129}},
          {.lengths = {300, 2}, .width = 257, .v_width = 130, .key_lengths = {70, 140}},
          {.lengths = {280}, .width = 8, .v_width = 8, .key_lengths = {530}}};
}

std::vector<HeadShape> long_heads() {
  return {{.lengths = {600}, .width = 8, .v_width = 8},
          {.lengths = {70, 530}, .heads = 2, .key_heads = 1, .width = 4, .v_width = 4}};
}

HeadShape longest_head() { return {.lengths = {1200}, .width = 4, .v_width = 4}; }

HeadShape of_tokens(std::int64_t tokens) {
  return {.lengths = {static_cast<int>(tokens)},
          .heads = 2,
          .key_heads = 2,
          .width = 16,
          .v_width = 16};
}

Case head_case(Rng& rng, const HeadShape& s) {
  const std::int64_t tokens = total(s.lengths);
  const std::int64_t key_tokens = s.key_lengths.empty() ? tokens : total(s.key_lengths);
  const std::int64_t q = s.heads * s.width, k = s.key_heads * s.width, v = s.key_heads * s.v_width;
  Case c;
  c.attributes["heads"] = std::to_string(s.heads);
  c.attributes["key_heads"] = std::to_string(s.key_heads);
  if (s.gap < 0) {
    c.inputs["q"] = normals(rng, {tokens, q});
    c.inputs["k"] = normals(rng, {key_tokens, k});
    c.inputs["v"] = normals(rng, {key_tokens, v});
  } else {
    c.inputs["q"] = normals(rng, {tokens, q + k + v + 3 * s.gap});
    c.attributes["width"] = std::to_string(s.width);
    c.attributes["v_width"] = std::to_string(s.v_width);
    c.attributes["q_column"] = std::to_string(s.gap);
    c.attributes["k_column"] = std::to_string(q + 2 * s.gap);
    c.attributes["v_column"] = std::to_string(q + k + 3 * s.gap);
  }
  c.inputs["lengths"] = host(s.lengths);
  if (!s.key_lengths.empty()) c.inputs["key_lengths"] = host(s.key_lengths);
  return c;
}

Case ungrouped_case(Rng& rng, HeadShape shape) {
  shape.key_heads = shape.heads;
  Case c = head_case(rng, shape);
  c.attributes.erase("key_heads");
  return c;
}

Case decided(Rng& rng, Case c, const HeadShape& shape, double agreement) {
  const auto number = [&](const char* name) {
    const auto found = c.attributes.find(name);
    return found == c.attributes.end() ? std::int64_t{0} : std::stoll(found->second);
  };
  const double small = 1.5 / std::sqrt(static_cast<double>(shape.width));
  const auto set = [&](HostTensor& x, std::int64_t first, std::int64_t heads, double positive) {
    const std::int64_t columns = x.shape.columns();
    for (std::int64_t i = 0; i < x.shape.rows(); ++i) {
      for (std::int64_t h = 0; h < heads; ++h) {
        double* entry = &x.values[static_cast<std::size_t>(i * columns + first + h * shape.width)];
        const double size = 3 + rng.uniform();
        entry[0] = rng.uniform() < positive ? size : -size;
        for (std::int64_t e = 1; e < shape.width; ++e) {
          entry[e] = small * (2 * rng.uniform() - 1);
        }
      }
    }
  };
  const bool one_tensor = shape.gap >= 0;
  set(c.inputs["q"], number("q_column"), shape.heads, agreement);
  set(c.inputs[one_tensor ? "q" : "k"], number("k_column"), shape.key_heads, 1 - agreement);
  return c;
}

Case scored(Rng& rng, Case c, std::initializer_list<std::string_view> names) {
  const auto tokens = [&](const char* lengths) {
    double sum = 0;
    for (const double length : c.inputs.at(lengths).values) sum += length;
    return static_cast<std::int64_t>(sum);
  };
  const std::int64_t heads = std::stoll(c.attributes.at("heads"));
  const std::int64_t queries = tokens("lengths");
  const std::int64_t keys = c.inputs.contains("key_lengths") ? tokens("key_lengths") : queries;
  for (const std::string_view name : names) {
    c.inputs[std::string(name)] = name == "tau"     ? normals(rng, {queries, heads}, 0.6, 0.8)
                                  : name == "pull"  ? uniforms(rng, {queries, heads}, -0.8, 0.05)
                                  : name == "shift" ? normals(rng, {keys, heads})
                                                    : normals(rng, {heads});
  }
  return c;
}

Case gated(Rng& rng, Case c, double low, double high) {
  const HostTensor& q = c.inputs.at("q");
  const auto k = c.inputs.find("k");
  const std::int64_t keys = (k == c.inputs.end() ? q : k->second).shape.rows();
  HostTensor gates = uniforms(rng, {keys, std::stoll(c.attributes.at("heads"))}, low, high);
  for (double& f : gates.values) f = std::log(f);
  c.inputs["gates"] = std::move(gates);
  return c;
}

Case without_values(Case c) {
  c.inputs.erase("v");
  c.attributes.erase("v_width");
  c.attributes.erase("v_column");
  return c;
}

Case balanced(Rng& rng) {
  const HeadShape shape{
      .lengths = {8, 9, 7, 8, 9, 8, 7, 8, 9, 8, 8, 7}, .heads = 2, .key_heads = 2};
  Case c = head_case(rng, shape);
  HostTensor &q = c.inputs.at("q"), &k = c.inputs.at("k");
  for (double& x : q.values) x *= 0.125;
  std::size_t row = 0;
  for (const int length : shape.lengths) {
    for (int j = 0; j < length; ++j, ++row) {
      for (std::size_t h = 0; h < 2; ++h) {
        const std::size_t at = row * 8 + h * 4;
        q.values[at] = 1;
        q.values[at + 1] = 1.8 * j;
        k.values[at] = -1.8 * j;
        k.values[at + 1] = 1;
      }
    }
  }
  c.attributes["scale"] = "1";
  c.inputs["gates"] = constant({q.shape.rows(), 2}, -2);
  return c;
}

std::vector<Case> balanced_weights(Rng& rng) {
  return {without_values(balanced(rng)), without_values(balanced(rng))};
}

Case narrow(Rng& rng, Case c) {
  for (double& v : c.inputs.at("v").values) v += 6;
  c.attributes["window"] = "3";
  return gated(rng, std::move(c), 0.999, 1);
}

}  // namespace longhand::catalog
