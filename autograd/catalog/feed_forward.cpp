#include "autograd/feed_forward.h"

#include <cmath>

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

struct FeedForwardExtents {
  std::int64_t rows, in, hidden, out;
};

/// A feed-forward case. The weights have the standard deviation 1/sqrt(n), where n is the number of
/// columns of the weight matrix. The arguments of the activation f then have a size of about 1. In
/// this range f is neither flat nor linear.
Case layer(Rng& rng, const FeedForwardExtents& e, bool with_biases, bool with_residual,
           const char* f) {
  const auto deviation = [](std::int64_t in) {
    return in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 1.0;
  };
  Case c{{{"x", normals(rng, {e.rows, e.in})},
          {"up", normals(rng, {e.hidden, e.in}, deviation(e.in))},
          {"down", normals(rng, {e.out, e.hidden}, deviation(e.hidden))}},
         {{"f", f}}};
  if (with_biases) {
    c.inputs["up_bias"] = normals(rng, {e.hidden});
    c.inputs["down_bias"] = normals(rng, {e.out});
  }
  if (with_residual) c.inputs["residual"] = normals(rng, {e.rows, e.out});
  return c;
}

std::vector<Case> layers(Rng& rng) {
  std::vector<Case> cases;
  for (const FeedForwardExtents& e :
       {FeedForwardExtents{1, 1, 1, 1}, {7, 16, 48, 16}, {33, 9, 17, 5}, {0, 3, 4, 2}}) {
    for (const bool biases : {false, true}) {
      for (const bool residual : {false, true}) {
        cases.push_back(layer(rng, e, biases, residual, "gelu"));
      }
    }
  }
  for (const char* f : {"gelu_tanh", "silu"}) {
    cases.push_back(layer(rng, {5, 6, 12, 6}, true, true, f));
  }
  // cuBLASLt fuses GELU only if each saved row of GELU's argument has a multiple of 16 bytes. In
  // these cases a row has 24 or 16 entries, which are 48 or 32 bytes in bf16.
  cases.push_back(layer(rng, {5, 6, 24, 6}, true, true, "gelu_tanh"));
  cases.push_back(layer(rng, {9, 8, 16, 8}, false, false, "gelu_tanh"));
  return cases;
}

FeedForwardOptions options(const Call& c) {
  return {.up = c.in("up"),
          .up_bias = c.maybe("up_bias"),
          .down = c.in("down"),
          .down_bias = c.maybe("down_bias"),
          .f = c.activation("f"),
          .residual = c.maybe("residual")};
}

std::vector<Operation> feed_forward_operations() {
  return {{.name = "feed_forward",
           .page = "feed_forward",
           .formula = "y = f(x up^T + up_bias) down^T + down_bias + residual",
           .inputs = {{"x", "[rows, in]"},
                      {"up", "[hidden, in]", Role::weight},
                      {"up_bias", "[hidden]", Role::master, true, true},
                      {"down", "[out, hidden]", Role::weight},
                      {"down_bias", "[out]", Role::master, true, true},
                      {"residual", "[rows, out]", Role::activation, true, true}},
           .attributes = {{"f", "gelu", "an activation"}},
           .outputs = {"y"},
           .run = [](const Call& c) -> std::vector<Output> {
             return {{"y", feed_forward(c.in("x"), options(c))}};
           },
           .cases = layers,
           .products = true}};
}

}  // namespace

extern const Family feed_forward_family;
constinit const Family feed_forward_family{feed_forward_operations};

}  // namespace longhand::catalog
