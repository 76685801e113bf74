#include "autograd/recompute.h"

#include "autograd/tape.h"

namespace longhand {

Var recomputed(const Var& x, const Var& other, std::function<Var(const Var& x)> f) {
  const Tape* const outer = Tape::current();
  if (!outer) return f(x);
  Tensor y;
  {
    // This tape is discarded after f(x) is computed. f runs with a tape because some operations
    // behave differently if nothing is recorded.
    Tape dropped;
    dropped.watch_for(*outer);
    const Recording recording(dropped);
    y = f(Var(x.value(), x.wants_grad())).value();
  }
  return record("recomputed", {&x, &other}, y, [x, f = std::move(f)](const Tensor& dy) {
    const Var leaf(x.value(), x.wants_grad());
    Tape tape;
    Var again;
    {
      const Recording recording(tape);
      again = f(leaf);
    }
    tape.backward(again, dy);
    if (const Tensor dx = leaf.grad()) x.sink().add(dx);
  });
}

}  // namespace longhand
