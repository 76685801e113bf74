#include "autograd/fal.h"

#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"

namespace longhand::catalog {
namespace {

/// The sign of a score decides which pair is chosen: here it is that of the first entries' product,
/// which is of size 9 where all others together stay below 3. `agreement` of the queries are
/// positive, and 1 - agreement of the keys: agreement 1 finds none.
Case decided(Rng& rng, const HeadShape& shape, double agreement) {
  Case c = head_case(rng, shape);
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

std::vector<Case> varied(Rng& rng, const std::vector<HeadShape>& shapes) {
  std::vector<Case> cases;
  for (const HeadShape& shape : shapes) {
    for (const double agreement : {0.5, 0.95, 1.0}) cases.push_back(decided(rng, shape, agreement));
  }
  return cases;
}

std::vector<Case> small_cases(Rng& rng) {
  std::vector<Case> cases = varied(rng, small_heads());
  for (Case& c : varied(rng, decoding_heads())) cases.push_back(std::move(c));
  return cases;
}

std::vector<Case> large_cases(Rng& rng) { return varied(rng, large_heads()); }

Operation fused_or_composed(bool fused) {
  return {.name = fused ? "fal" : "composed_fal",
          .page = "fal",
          .formula = "m = max { j < i : q_i . k_j > 0 }; y_i = (q_i . k_m) v_(m+1), or 0",
          .inputs = head_inputs({}),
          .attributes = head_attributes({}),
          .outputs = {"y", "match"},
          .run = [fused](const Call& c) -> std::vector<Output> {
            const ScoreVars s = key_call(c);
            const FalVars in{
                .q = s.q, .k = s.k, .v = value_call(c, s), .queries = s.queries, .keys = s.keys};
            const FalResult r = fused ? fal(in) : composed_fal(in);
            return {{"y", r.y}, {"match", r.match}};
          },
          .cases = small_cases,
          .large = fused ? large_cases : std::function<std::vector<Case>(Rng&)>()};
}

std::vector<Operation> fal_operations() {
  return {fused_or_composed(true), fused_or_composed(false)};
}

}  // namespace

extern const Family fal_family;
constinit const Family fal_family{fal_operations};

}  // namespace longhand::catalog
