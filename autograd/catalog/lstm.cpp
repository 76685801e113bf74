#include "autograd/lstm.h"

#include <cmath>

#include "autograd/catalog/catalog.h"
#include "core/segments.h"

namespace longhand::catalog {
namespace {

Case lstm_case(Rng& rng, const std::vector<double>& lengths, std::int64_t heads, std::int64_t n,
               std::int64_t gap = 0) {
  double tokens = 0;
  for (const double length : lengths) tokens += length;
  Case c;
  const std::int64_t columns = heads * 4 * n;
  c.inputs["x"] = normals(rng, {static_cast<std::int64_t>(tokens), columns + 2 * gap});
  c.inputs["lengths"] = {{std::ssize(lengths)}, lengths};
  c.inputs["u"] = normals(rng, {columns, n}, 0.8 / std::sqrt(static_cast<double>(n)));
  c.attributes["heads"] = std::to_string(heads);
  if (gap > 0) {
    c.attributes["column"] = std::to_string(gap);
    c.attributes["width"] = std::to_string(4 * n);
  }
  return c;
}

std::vector<Case> small_lstm(Rng& rng) {
  return {lstm_case(rng, {1}, 1, 1), lstm_case(rng, {5, 0, 1, 4}, 1, 3),
          lstm_case(rng, {2, 6}, 2, 4, 3), lstm_case(rng, {7}, 1, 17)};
}

std::vector<Case> medium_lstm(Rng& rng) {
  return {lstm_case(rng, {20, 24, 40}, 2, 8), lstm_case(rng, {30, 34}, 1, 16, 5),
          lstm_case(rng, {9, 1, 12, 30, 3, 20}, 3, 5)};
}

std::vector<Case> large_lstm(Rng& rng) {
  std::vector<Case> cases = medium_lstm(rng);
  cases.push_back(lstm_case(rng, {70, 65, 3}, 1, 70));
  cases.push_back(lstm_case(rng, {150}, 2, 33));
  return cases;
}

std::vector<Argument> lstm_inputs(bool differentiable) {
  std::vector<Argument> inputs{
      {"x", "[tokens, columns]: heads of four parts, [i | f | o | g]"},
      {"lengths", "[sequences]: number of tokens of each", Role::index, false},
      {"u", "[heads * 4 n, n]", Role::master}};
  if (!differentiable) {
    for (Argument& input : inputs) input.differentiable = false;
    inputs.push_back(
        {"before", "[sequences, heads * 2 n]: h and c of each head", Role::master, false});
  }
  return inputs;
}

const std::vector<Attribute> lstm_attributes{
    {"heads", "1", "number of independent heads"},
    {"width", "0", "number of columns of a head, 4 n; 0: x's columns / heads"},
    {"column", "0", "first column of x's first head"}};

const char* const lstm_formula =
    "a_t = x_t + U h_(t-1) = [i | f | o | g], c_t = s(f) c_(t-1) + s(i) tanh(g), y_t = h_t = s(o) "
    "tanh(c_t), s the sigmoid";

struct LstmCall {
  HeadVars x;
  Segments segments;
  Var u;
  explicit LstmCall(const Call& c)
      : x{c.in("x"), c.integer("column"), c.integer("heads"), c.integer("width")},
        segments(c.backend(), c.in("lengths").value().to_ints()),
        u(c.in("u")) {
    if (x.width == 0) x.width = x.data.value().columns() / x.heads;
  }
};

Operation fused_or_composed_lstm(bool fused) {
  return {
      .name = fused ? "lstm" : "composed_lstm",
      .page = "lstm",
      .formula = lstm_formula,
      .inputs = lstm_inputs(true),
      .attributes = lstm_attributes,
      .outputs = {"y"},
      .run = [fused](const Call& call) -> std::vector<Output> {
        const LstmCall c(call);
        return {{"y", fused ? lstm(c.x, c.segments, c.u) : composed_lstm(c.x, c.segments, c.u)}};
      },
      .cases = small_lstm,
      .large = fused ? large_lstm : medium_lstm};
}

std::vector<Operation> lstm_operations() {
  return {
      fused_or_composed_lstm(true),
      fused_or_composed_lstm(false),
      {.name = "lstm_continued",
       .page = "lstm",
       .formula = lstm_formula,
       .inputs = lstm_inputs(false),
       .attributes = lstm_attributes,
       .outputs = {"y", "after"},
       .run = [](const Call& call) -> std::vector<Output> {
         const LstmCall c(call);
         const Tensor before = call.in("before").value(), after = empty_like(before);
         const Var y = lstm(c.x, c.segments, c.u, {.before = before, .after = after});
         return {{"y", y}, {"after", after}};
       },
       .cases =
           [](Rng& rng) {
             std::vector<Case> cases{lstm_case(rng, {1, 0, 2, 9}, 2, 6, 3),
                                     lstm_case(rng, {30, 1, 1}, 1, 20),
                                     lstm_case(rng, {40, 0, 60}, 2, 32)};
             for (Case& c : cases) {
               const HostTensor &lengths = c.inputs["lengths"], &u = c.inputs["u"];
               c.inputs["before"] = normals(rng, {std::ssize(lengths.values), u.shape[0] / 2}, 0.5);
             }
             return cases;
           }}};
}

}  // namespace

extern const Family lstm_family;
constinit const Family lstm_family{lstm_operations};

}  // namespace longhand::catalog
