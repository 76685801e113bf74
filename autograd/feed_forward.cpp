#include "autograd/feed_forward.h"

#include "autograd/matmul.h"
#include "autograd/tape.h"
#include "core/contract/elementwise.h"
#include "core/contract/matmul.h"
#include "core/contract/reduce.h"

namespace longhand {
namespace {

/// Multiplies `a` by `b`. Before that, `a` is transposed if `ta` is set, and `b` if `tb` is set.
/// The product replaces the values of `into` or, if into.add is set, is added to them.
void product(const Tensor& a, bool ta, const Tensor& b, bool tb, const Target& into) {
  a.backend()(Matmul{.a = a,
                     .b = b,
                     .transpose_a = ta,
                     .transpose_b = tb,
                     .c = into.tensor,
                     .beta = into.add ? 1.0 : 0.0});
}

}  // namespace

Var feed_forward(const Var& x, const FeedForwardOptions& o) {
  Backend& backend = x.backend();
  const DType type = x.value().dtype();
  const bool recorded =
      Tape::current() && (x.wants_grad() || o.up.wants_grad() || o.up_bias.wants_grad() ||
                          o.down.wants_grad() || o.down_bias.wants_grad());
  // h = f(z), where z = x up^T + up_bias
  const Tensor h(backend, {x.value().rows(), o.up.value().rows()}, type);
  const Tensor z = recorded ? empty_like(h) : Tensor();
  backend(Matmul{.a = x.value(),
                 .b = o.up.value(),
                 .transpose_b = true,
                 .bias = o.up_bias.value(),
                 .f = o.f,
                 .pre = z,
                 .c = h});
  const Tensor y(backend, {x.value().rows(), o.down.value().rows()}, type);
  backend(Matmul{.a = h,
                 .b = o.down.value(),
                 .transpose_b = true,
                 .bias = o.down_bias.value(),
                 .residual = o.residual.value(),
                 .c = y});

  return record(
      "feed_forward", {&x, &o.up, &o.up_bias, &o.down, &o.down_bias, &o.residual}, y,
      [x, up = o.up, up_bias = o.up_bias.sink(), down = o.down, down_bias = o.down_bias.sink(),
       f = o.f, residual = o.residual.sink(), z](const Tensor& dy) {
        Backend& run = dy.backend();
        residual.add(dy);
        if (down_bias) run(ColumnSum{.x = dy, .y = down_bias.target()});
        if (!z) return;  // only the residual requires a gradient
        if (down.wants_grad()) {
          const Tensor again = empty_like(z);  // f(z), computed again because it was not saved
          run(Activate{.f = f, .x = z, .y = again});
          product(dy, true, again, false, down.sink().target());
        }

        // dz = (dy down) f'(z), the gradient of the activation's argument z
        const Tensor dz = empty_like(z);
        run(Matmul{.a = dy, .b = down.value(), .f = f, .at = z, .c = dz});
        if (up_bias) run(ColumnSum{.x = dz, .y = up_bias.target()});
        if (up.wants_grad()) product(dz, true, x.value(), false, up.sink().target());
        if (x.wants_grad()) {
          product(dz, false, up.value(), false, x.sink().target());
        }
      });
}

Var feed_forward_composed(const Var& x, const FeedForwardOptions& o) {
  const Var h = matmul(x, o.up, {.transpose_b = true, .bias = o.up_bias, .f = o.f});
  return matmul(h, o.down, {.transpose_b = true, .bias = o.down_bias, .residual = o.residual});
}

}  // namespace longhand
