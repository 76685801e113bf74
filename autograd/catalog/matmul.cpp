#include "autograd/matmul.h"

#include <cmath>

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

struct ProductExtents {
  std::int64_t batch, m, n, k;  // [m, k] times [k, n]; batch 0: tensors without a batch axis
};

Case product(Rng& rng, const ProductExtents& e, bool ta, bool tb) {
  const auto shape = [&](std::int64_t rows, std::int64_t columns) {
    return e.batch ? Shape{e.batch, rows, columns} : Shape{rows, columns};
  };
  return {{{"a", normals(rng, ta ? shape(e.k, e.m) : shape(e.m, e.k))},
           {"b", normals(rng, tb ? shape(e.n, e.k) : shape(e.k, e.n))}},
          {{"transpose_a", ta ? "1" : "0"}, {"transpose_b", tb ? "1" : "0"}}};
}

/// Replaces the entries by odd multiples of 1/4. bf16 represents these numbers and their products
/// exactly. In a test case, each entry of the matrix product is a sum of five such products, so it
/// is an odd multiple of 1/16. It is thus never so close to 0, the kink of relu, that rounding
/// could change its sign.
void make_odd(HostTensor& x) {
  for (double& value : x.values) value = (2 * std::round(2 * value) + 1) / 4;
}

std::vector<Case> cases(Rng& rng) {
  std::vector<Case> all;
  const ProductExtents extents[] = {{0, 1, 1, 1},   {0, 2, 3, 5},   {0, 16, 16, 16}, {0, 17, 33, 9},
                                    {0, 5, 64, 31}, {3, 4, 5, 6},   {2, 1, 17, 8},   {0, 4, 3, 0},
                                    {0, 0, 3, 4},   {0, 31, 2, 70}, {0, 1, 40, 33}};
  for (const ProductExtents& e : extents) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) all.push_back(product(rng, e, ta, tb));
    }
  }
  // A case that multiplies a tensor of rank 3 by a matrix.
  Case shared = {{{"a", normals(rng, {3, 5, 7})}, {"b", normals(rng, {7, 4})}}};
  all.push_back(shared);
  // Cases with all combinations of an activation f, a bias and a residual.
  for (const char* f : {"none", "relu", "gelu", "gelu_tanh", "silu"}) {
    for (const bool bias : {false, true}) {
      for (const bool residual : {false, true}) {
        Case c = product(rng, {0, 9, 20, 5}, false, bias);
        c.attributes["f"] = f;
        c.attributes["alpha"] = "0.5";
        if (bias) c.inputs["bias"] = normals(rng, {20});
        if (std::string_view(f) == "relu") {
          make_odd(c.inputs["a"]);
          make_odd(c.inputs["b"]);
          if (bias) c.inputs["bias"] = integers(rng, {20}, -1, 1);
        }
        if (residual) c.inputs["residual"] = normals(rng, {9, 20});
        all.push_back(c);
      }
    }
  }
  // cuBLASLt fuses GELU only if each saved row of GELU's argument has a multiple of 16 bytes. In
  // these cases a row has 24 entries, which are 48 bytes in bf16.
  for (const bool bias : {false, true}) {
    Case c = product(rng, {0, 9, 24, 5}, false, true);
    c.attributes["f"] = "gelu_tanh";
    if (bias) c.inputs["bias"] = normals(rng, {24});
    all.push_back(c);
  }
  return all;
}

std::vector<Operation> matmul_operations() {
  return {{.name = "matmul",
           .page = "matmul",
           .formula = "y = f(alpha op(a) op(b) + bias) + residual",
           .inputs = {{"a", "[m, k], transposed [k, m], or a batch of these"},
                      {"b", "[k, n], transposed [n, k], or a batch of these"},
                      {"bias", "[n]", Role::master, true, true},
                      {"residual", "[m, n]", Role::activation, true, true}},
           .attributes = {{"transpose_a", "0", "1: op(a) is a's transpose"},
                          {"transpose_b", "0", "1: op(b) is b's transpose"},
                          {"alpha", "1", "factor of the product"},
                          {"f", "none", "activation, or none"}},
           .outputs = {"y"},
           .run = [](const Call& c) -> std::vector<Output> {
             MatmulOptions o{.transpose_a = c.flag("transpose_a"),
                             .transpose_b = c.flag("transpose_b"),
                             .alpha = c.number("alpha"),
                             .bias = c.maybe("bias"),
                             .residual = c.maybe("residual")};
             if (c.word("f") != "none") o.f = c.activation("f");
             return {{"y", matmul(c.in("a"), c.in("b"), o)}};
           },
           .cases = cases,
           .products = true}};
}

}  // namespace

extern const Family matmul_family;
constinit const Family matmul_family{matmul_operations};

}  // namespace longhand::catalog
