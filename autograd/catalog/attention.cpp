#include "autograd/attention.h"

#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"
#include "core/contract/elementwise.h"

namespace longhand::catalog {
namespace {

/// Adds seven cases of one shape. Two have a window. Three have one of the inputs `tau`, `shift`
/// and `sink`. One has forget gates. The last has all three inputs, a window and another scale.
void vary(std::vector<Case>& cases, Rng& rng, const HeadShape& shape) {
  for (const char* keys_back : {"2", "5"}) {
    cases.push_back(head_case(rng, shape));
    cases.back().attributes["window"] = keys_back;
  }
  for (const char* name : {"tau", "shift", "sink"}) {
    cases.push_back(scored(rng, head_case(rng, shape), {name}));
  }
  cases.push_back(gated(rng, head_case(rng, shape), 0.3, 0.95));
  cases.push_back(scored(rng, head_case(rng, shape), {"tau", "shift", "sink"}));
  cases.back().attributes["window"] = "4";
  cases.back().attributes["scale"] = "0.3";
}

std::vector<Case> plain(Rng& rng, const std::vector<HeadShape>& shapes) {
  std::vector<Case> cases;
  for (const HeadShape& shape : shapes) cases.push_back(head_case(rng, shape));
  return cases;
}

/// Adds a case without a causal mask.
void add_unmasked(std::vector<Case>& cases, Case c) {
  c.attributes["causal"] = "0";
  cases.push_back(std::move(c));
}

/// Adds two cases of each shape without a causal mask. One of the two has tau and a sink.
void add_unmasked(std::vector<Case>& cases, Rng& rng, const std::vector<HeadShape>& shapes) {
  for (const HeadShape& shape : shapes) {
    add_unmasked(cases, head_case(rng, shape));
    add_unmasked(cases, scored(rng, head_case(rng, shape), {"tau", "sink"}));
  }
}

std::vector<Case> small_cases(Rng& rng) {
  std::vector<Case> cases = plain(rng, small_heads());
  for (const int shape : {1, 2, 6})
    vary(cases, rng, small_heads()[static_cast<std::size_t>(shape)]);
  for (const HeadShape& shape : decoding_heads()) {
    cases.push_back(head_case(rng, shape));
    cases.push_back(scored(rng, head_case(rng, shape), {"tau", "shift", "sink"}));
  }
  add_unmasked(cases, rng, {small_heads()[0], small_heads()[3]});
  add_unmasked(cases, rng, small_cross_heads());
  return cases;
}

std::vector<Case> medium_cases(Rng& rng) {
  std::vector<Case> cases = plain(rng, medium_heads());
  for (const HeadShape& shape : medium_heads()) {
    for (const char* name : {"tau", "shift", "sink"}) {
      cases.push_back(scored(rng, head_case(rng, shape), {name}));
    }
    cases.push_back(gated(rng, head_case(rng, shape), 0.45, 0.55));
  }
  cases.push_back(balanced(rng));
  add_unmasked(cases, rng, medium_heads());
  return cases;
}

/// Cases with long sequences. Some have forget gates near 1/2, some have forget gates near 1, some
/// have scores up to 60, and some have none of these.
std::vector<Case> long_cases(Rng& rng) {
  std::vector<Case> cases = plain(rng, long_heads());
  for (const HeadShape& shape : long_heads()) {
    cases.push_back(gated(rng, head_case(rng, shape), 0.45, 0.55));
    cases.push_back(gated(rng, scored(rng, head_case(rng, shape), {"tau", "sink"}), 0.97, 1));
    cases.push_back(head_case(rng, shape));
    cases.back().attributes["scale"] = shape.heads > 1 ? "-5" : "5";
  }
  cases.push_back(narrow(rng, head_case(rng, longest_head())));
  return cases;
}

std::vector<Case> large_cases(Rng& rng) {
  std::vector<Case> cases = medium_cases(rng);
  for (Case& c : plain(rng, large_heads())) cases.push_back(std::move(c));
  // A case with 300 keys. From 256 keys on, math mode `fast` splits each operand of a product into
  // two bf16 numbers on CPUs with AMX.
  cases.push_back(
      head_case(rng, {.lengths = {40}, .width = 20, .v_width = 36, .key_lengths = {300}}));
  vary(cases, rng, large_heads()[1]);
  for (const char* keys_back : {"40", "64"}) {
    cases.push_back(head_case(rng, large_heads()[0]));
    cases.back().attributes["window"] = keys_back;
  }
  for (Case& c : long_cases(rng)) cases.push_back(std::move(c));
  for (const HeadShape& shape : large_heads()) add_unmasked(cases, head_case(rng, shape));
  add_unmasked(cases, rng, large_cross_heads());
  return cases;
}

/// The cases of small_cases() without v, for operations that compute scores only.
std::vector<Case> score_cases(Rng& rng) {
  std::vector<Case> cases = small_cases(rng);
  for (Case& c : cases) c = without_values(std::move(c));
  return cases;
}

Operation fused_or_composed(bool fused) {
  return {.name = fused ? "attention" : "composed_attention",
          .page = "attention",
          .formula =
              "y_i = sum_j P_ij v_j, P = softmax over j <= i (causal=0: all j), and the sink, of "
              "tau_i scale q_i . k_j + c_i - c_j",
          .inputs = head_inputs(score_arguments()),
          .attributes = head_attributes(masked_attributes()),
          .outputs = {"y"},
          .run = [fused](const Call& c) -> std::vector<Output> {
            const ScoreVars s = masked_call(c);
            const HeadVars v = value_call(c, s);
            const RuleVars rule = softmax_call(c);
            return {{"y", fused ? attention(s, v, rule) : composed_attention(s, v, rule)}};
          },
          .cases = small_cases,
          .products = true,
          .large = fused ? large_cases : medium_cases,
          .of_length =
              [](Rng& rng, std::int64_t tokens, double gate) {
                Case c = scored(rng, head_case(rng, of_tokens(tokens)), {"tau"});
                return gate > 0 ? gated(rng, std::move(c), gate, gate) : c;
              }};
}

Operation attention_weights_operation() {
  return {.name = "attention_weights",
          .page = "attention",
          .formula = "P, sequence after sequence, in each [heads, queries, keys]",
          .inputs = head_inputs(score_arguments(), false),
          .attributes = head_attributes(masked_attributes(), false),
          .outputs = {"weights"},
          .run = [](const Call& c) -> std::vector<Output> {
            return {{"weights", attention_weights(masked_call(c), softmax_call(c))}};
          },
          .cases = score_cases,
          .products = true,
          .large =
              [](Rng& rng) {
                std::vector<Case> cases = balanced_weights(rng);
                for (const HeadShape& shape : large_cross_heads()) {
                  add_unmasked(cases, without_values(head_case(rng, shape)));
                }
                return cases;
              }};
}

Operation find_bad_score_operation() {
  return {.name = "find_bad_score",
          .page = "attention",
          .formula = "(sequence, query, key, head) of the first score that is not finite, or -1",
          .inputs = head_inputs(score_arguments(), false),
          .attributes = head_attributes(masked_attributes(), false),
          .outputs = {"found"},
          .run = [](const Call& c) -> std::vector<Output> {
            const Tensor found(c.backend(), {4}, DType::i32);
            c.backend()(FindBadScore{.scores = masked_call(c).value(), .found = found});
            return {{"found", found}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases = score_cases(rng);
                constexpr double infinity = std::numeric_limits<double>::infinity();
                for (const double bad : {infinity, std::numeric_limits<double>::quiet_NaN()}) {
                  for (const std::size_t at : {0u, 7u, 14u}) {
                    cases.push_back(head_case(rng, {.lengths = {3, 2}, .width = 3, .v_width = 1}));
                    cases.back().inputs.erase("v");
                    cases.back().inputs["k"].values[at] = bad;
                  }
                }
                return cases;
              }};
}

Operation append_operation() {
  return {.name = "append",
          .page = "attention",
          .formula = "the last positions of each sequence of the cache = x's tokens",
          .inputs = {{"x", "[tokens, columns]", Role::activation, false},
                     {"cache", "[cache tokens, columns]", Role::activation, false},
                     {"lengths", "[sequences]: tokens of x in each", Role::index, false},
                     {"begins", "[sequences]: where each starts in the cache", Role::index, false},
                     {"cache_lengths", "[sequences]: tokens of each after appending", Role::index,
                      false}},
          .attributes = {{"heads", "1", "heads to copy"},
                         {"width", "0", "entries of a head; 0: the cache's columns / heads"},
                         {"x_column", "0", "x's column where the first head starts"}},
          .outputs = {"cache"},
          .run = [](const Call& c) -> std::vector<Output> {
            const Tensor before = c.in("cache").value(), cache = empty_like(before);
            c.backend()(Copy{.x = before, .y = cache});
            const std::int64_t heads = c.integer("heads");
            const std::int64_t width =
                c.integer("width") ? c.integer("width") : cache.columns() / heads;
            const Segments from(c.backend(), c.in("lengths").value().to_ints());
            const Segments to(c.backend(), c.in("begins").value().to_ints(),
                              c.in("cache_lengths").value().to_ints());
            const Heads source{c.in("x").value(), c.integer("x_column"), heads, width};
            c.backend()(Append{.x = source, .from = from, .y = {cache, 0, heads, width}, .to = to});
            return {{"cache", cache}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                for (const std::int64_t width : {1, 3, 16, 70}) {
                  for (const std::int64_t before : {0, 5}) {
                    cases.push_back({{{"x", normals(rng, {4, 2 * width + before})},
                                      {"cache", normals(rng, {20, 2 * width})},
                                      {"lengths", {{3}, {1, 0, 3}}},
                                      {"begins", {{3}, {0, 6, 12}}},
                                      {"cache_lengths", {{3}, {5, 2, 3}}}},
                                     {{"heads", "2"},
                                      {"width", std::to_string(width)},
                                      {"x_column", std::to_string(before)}}});
                  }
                }
                return cases;
              }};
}

std::vector<Operation> attention_operations() {
  return {fused_or_composed(true), fused_or_composed(false), attention_weights_operation(),
          find_bad_score_operation(), append_operation()};
}

}  // namespace

extern const Family attention_family;
constinit const Family attention_family{attention_operations};

}  // namespace longhand::catalog
