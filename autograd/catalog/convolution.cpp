#include "autograd/convolution.h"

#include "autograd/catalog/catalog.h"
#include "core/segments.h"

namespace longhand::catalog {
namespace {

Case convolution_case(Rng& rng, const std::vector<double>& lengths, std::int64_t columns,
                      std::int64_t taps, std::int64_t gap = 0) {
  double tokens = 0;
  for (const double n : lengths) tokens += n;
  Case c;
  c.inputs["x"] = normals(rng, {static_cast<std::int64_t>(tokens), columns + 2 * gap});
  c.inputs["lengths"] = {{std::ssize(lengths)}, lengths};
  c.inputs["weight"] = normals(rng, {taps, columns});
  if (gap > 0) {
    c.attributes["column"] = std::to_string(gap);
    c.attributes["columns"] = std::to_string(columns);
  }
  return c;
}

std::vector<Case> convolution_cases(Rng& rng) {
  return {convolution_case(rng, {1}, 1, 1), convolution_case(rng, {5, 0, 1, 4}, 3, 4),
          convolution_case(rng, {2, 9}, 17, 4, 2), convolution_case(rng, {7}, 5, 8),
          convolution_case(rng, {3, 4}, 20, 2)};
}

std::vector<Argument> convolution_inputs(bool differentiable) {
  std::vector<Argument> inputs{
      {"x", "[tokens, columns]"},
      {"lengths", "[sequences]: number of tokens of each", Role::index, false},
      {"weight", "[taps, columns]: taps at most 8", Role::master}};
  if (!differentiable) {
    for (Argument& input : inputs) input.differentiable = false;
    inputs.push_back({"before",
                      "[sequences, (taps - 1) columns]: x of the tokens before each sequence",
                      Role::master, false});
  }
  return inputs;
}

const std::vector<Attribute> convolution_attributes{{"column", "0", "first column of x to use"},
                                                    {"columns", "0", "number of columns; 0: all"}};

struct ConvolutionCall {
  HeadVars x;
  Segments segments;
  Var weight;
  explicit ConvolutionCall(const Call& c)
      : x{c.in("x"), c.integer("column"), 1, c.integer("columns")},
        segments(c.backend(), c.in("lengths").value().to_ints()),
        weight(c.in("weight")) {
    if (x.width == 0) x.width = x.data.value().columns();
  }
};

std::vector<Operation> convolution_operations() {
  return {{.name = "short_convolution",
           .page = "convolution",
           .formula = "y_tc = sum of weight_ic x_(t-i)c over i < taps, within t's sequence",
           .inputs = convolution_inputs(true),
           .attributes = convolution_attributes,
           .outputs = {"y"},
           .run = [](const Call& call) -> std::vector<Output> {
             const ConvolutionCall c(call);
             return {{"y", short_convolution(c.x, c.segments, c.weight)}};
           },
           .cases = convolution_cases,
           .large =
               [](Rng& rng) {
                 return std::vector<Case>{convolution_case(rng, {20, 24, 40}, 32, 4),
                                          convolution_case(rng, {30, 34}, 24, 3, 5),
                                          convolution_case(rng, {300, 65}, 140, 4)};
               }},
          {.name = "short_convolution_continued",
           .page = "convolution",
           .formula = "convolution that continues after the tokens in before",
           .inputs = convolution_inputs(false),
           .attributes = convolution_attributes,
           .outputs = {"y", "after"},
           .run = [](const Call& call) -> std::vector<Output> {
             const ConvolutionCall c(call);
             const Tensor before = call.in("before").value(), after = empty_like(before);
             const Var y = short_convolution(c.x, c.segments, c.weight, {before, after});
             return {{"y", y}, {"after", after}};
           },
           .cases =
               [](Rng& rng) {
                 std::vector<Case> cases{convolution_case(rng, {1, 0, 2, 9}, 6, 4, 3),
                                         convolution_case(rng, {70, 1, 5, 3}, 20, 4)};
                 for (Case& c : cases) {
                   const Shape weight = c.inputs["weight"].shape;
                   c.inputs["before"] = normals(rng, {4, (weight[0] - 1) * weight[1]});
                 }
                 return cases;
               }}};
}

}  // namespace

extern const Family convolution_family;
constinit const Family convolution_family{convolution_operations};

}  // namespace longhand::catalog
