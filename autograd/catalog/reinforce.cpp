#include "autograd/reinforce.h"

#include <algorithm>
#include <cmath>

#include "autograd/catalog/heads.h"
#include "core/backend.h"
#include "core/error.h"

namespace longhand::catalog {
namespace {

/// True if rounding cannot move the attention weight across the threshold.
bool is_clear(double weight, double threshold) {
  return threshold == 0 || weight == 0 || std::abs(std::log(weight / threshold)) > 0.25;
}

/// Adds the arguments `pairs` and `amounts` to a case. For each pair of a query and a key, the op
/// increases the attention weight by the head's entry of `amounts` if the weight exceeds
/// `threshold`. About `wanted` random keys of each query form a pair with it, or all keys if there
/// are fewer. Pairs are in ascending order. A pair is omitted if its weight in any head is so near
/// the threshold that rounding could move it across.
Case reinforced(Rng& rng, Case c, double wanted, double threshold) {
  const std::shared_ptr<Backend> reference = make_reference_backend();
  c.inputs["pairs"] = {{0, 2}, {}};
  c.attributes["threshold"] = std::to_string(threshold);
  const auto heads = std::stoll(c.attributes["heads"]);
  HostTensor amounts{{heads}, {}};
  for (int h = 0; h < heads; ++h) {
    // The amount that is added to attention weights is 0 for every third head, beginning with the
    // second.
    amounts.values.push_back(h % 3 == 1 ? 0 : 0.5 + rng.uniform());
  }
  c.inputs["amounts"] = amounts;
  const Call call = prepare(find("reinforced_attention"), c, *reference, DType::f64, false);
  const ScoreVars scores = windowed_call(call);
  const std::vector<double> weights = attention_weights(scores, softmax_call(call)).to_doubles();

  const Segments& queries = scores.queries;
  const Segments& keys = scores.keys ? scores.keys : queries;
  std::vector<double> pairs;
  std::size_t begin = 0;
  for (std::size_t s = 0; s < queries.lengths().size(); ++s) {
    const auto count = static_cast<std::size_t>(queries.lengths()[s]);
    const auto length = static_cast<std::size_t>(keys.lengths()[s]);
    for (std::size_t t = 0; t < count; ++t) {
      for (std::size_t j = 0; j < length; ++j) {
        if (rng.uniform() * static_cast<double>(length) >= wanted) continue;
        bool clear = true;
        for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h) {
          clear = clear && is_clear(weights[begin + (h * count + t) * length + j], threshold);
        }
        if (!clear) continue;
        pairs.push_back(static_cast<double>(queries.begins()[s]) + static_cast<double>(t));
        pairs.push_back(static_cast<double>(j));
      }
    }
    begin += static_cast<std::size_t>(heads) * count * length;
  }
  c.inputs["pairs"] = {{std::ssize(pairs) / 2, 2}, pairs};
  return c;
}

std::vector<Case> small_cases(Rng& rng) {
  std::vector<Case> cases;
  for (const HeadShape& shape : small_heads()) {
    for (const double threshold : {0.0, 0.3}) {
      cases.push_back(reinforced(rng, head_case(rng, shape), 3, threshold));
    }
  }
  for (const HeadShape& shape : decoding_heads()) {
    cases.push_back(reinforced(rng, head_case(rng, shape), 3, 0.2));
    const Case more = scored(rng, head_case(rng, shape), {"tau", "shift", "sink"});
    cases.push_back(reinforced(rng, more, 3, 0.2));
  }
  for (const char* const name : {"tau", "shift", "sink"}) {
    Case c = scored(rng, head_case(rng, small_heads()[3]), {name});
    c.attributes["scale"] = "0.6";
    cases.push_back(reinforced(rng, c, 100, 0.3));
  }
  for (const char* const keys_back : {"2", "5"}) {
    Case c = head_case(rng, small_heads()[6]);
    c.attributes["window"] = keys_back;
    cases.push_back(reinforced(rng, c, 100, 0.1));
  }
  cases.push_back(reinforced(rng, head_case(rng, small_heads()[1]), 0, 0));  // `pairs` is empty
  return cases;
}

/// Cases with more pairs of a query and a key than a kernel processes at a time.
std::vector<Case> large_cases(Rng& rng) {
  std::vector<Case> cases;
  for (const HeadShape& shape : medium_heads()) {
    cases.push_back(reinforced(rng, head_case(rng, shape), 6, 0.05));
  }
  for (const HeadShape& shape : large_heads()) {
    cases.push_back(reinforced(rng, head_case(rng, shape), 6, 0.01));
  }
  cases.push_back(reinforced(rng, head_case(rng, large_heads()[0]), 1000, 0));
  Case windowed = head_case(rng, large_heads()[1]);
  windowed.attributes["window"] = "20";
  cases.push_back(reinforced(rng, windowed, 30, 0.05));
  return cases;
}

std::vector<Operation> reinforce_operations() {
  std::vector<Argument> inputs = head_inputs(score_arguments(
      {{"pairs", "[n, 2]: row of a query, ascending, and position of a key in its sequence",
        Role::index},
       {"amounts", "[heads]: delta of each query head", Role::master}}));
  for (Argument& input : inputs) input.differentiable = false;
  std::vector<Attribute> attributes = windowed_attributes();
  attributes.push_back({"threshold", "0", "C: only weights above it grow"});
  return {{.name = "reinforced_attention",
           .page = "attention",
           .formula = "attention with delta added to P_ij where (i, j) is a pair and P_ij > C",
           .inputs = inputs,
           .attributes = head_attributes(attributes),
           .outputs = {"y"},
           .run = [](const Call& c) -> std::vector<Output> {
             const ScoreVars s = windowed_call(c);
             const Tensor& pairs = c.in("pairs").value();
             const std::vector<std::int32_t> numbers = pairs.to_ints();
             for (std::size_t n = 2; n < numbers.size(); n += 2) {
               LONGHAND_CHECK(numbers[n] >= numbers[n - 2],
                              "pairs: expected rows in ascending order, got row ", numbers[n],
                              " after row ", numbers[n - 2]);
             }
             return {{"y", reinforced_attention(s, value_call(c, s),
                                                {.pairs = pairs,
                                                 .amounts = c.in("amounts").value(),
                                                 .threshold = c.number("threshold")},
                                                softmax_call(c).sink)}};
           },
           .cases = small_cases,
           .products = true,
           .large = large_cases}};
}

}  // namespace

extern const Family reinforce_family;
constinit const Family reinforce_family{reinforce_operations};

}  // namespace longhand::catalog
