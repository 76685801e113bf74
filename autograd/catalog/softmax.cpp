#include "autograd/softmax.h"

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

std::vector<Operation> softmax_operations() {
  return {{.name = "softmax",
           .page = "softmax",
           .formula = "y_ij = exp(x_ij) / sum_k exp(x_ik) over the visible columns",
           .inputs = {{"x", "[rows, n], or causal [batch, t, n]"}},
           .attributes = {{"causal", "0", "1: row i sees columns j <= i + (n - t)"}},
           .outputs = {"y"},
           .run = [](const Call& c) -> std::vector<Output> {
             return {{"y", softmax(c.in("x"), c.flag("causal"))}};
           },
           .cases =
               [](Rng& rng) {
                 std::vector<Case> cases;
                 for (const Shape& s : {Shape{1, 1}, Shape{3, 5}, Shape{2, 64}, Shape{9, 41}}) {
                   cases.push_back({{{"x", normals(rng, s, 2)}}});
                 }
                 // This case has large values, whose exponentials must not overflow.
                 cases.push_back({{{"x", normals(rng, {2, 33}, 1, 500)}}});
                 for (const Shape& s : {Shape{1, 1, 1}, Shape{2, 6, 6}, Shape{3, 17, 17},
                                        Shape{2, 4, 9}, Shape{5, 5}}) {
                   cases.push_back({{{"x", normals(rng, s, 2)}}, {{"causal", "1"}}});
                 }
                 return cases;
               }}};
}

}  // namespace

extern const Family softmax_family;
constinit const Family softmax_family{softmax_operations};

}  // namespace longhand::catalog
