#include "autograd/heads.h"

#include <array>

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand {

HeadVars all_columns(const Var& x, std::int64_t heads) {
  LONGHAND_CHECK(
      heads >= 1 && x.shape().rank() == 2 && x.shape()[1] % heads == 0,
      "heads: expected a number of heads that divides the number of columns of the matrix ",
      x.shape(), ", got ", heads, " heads");
  return {x, 0, heads, x.shape()[1] / heads};
}

HeadTargets targets(const HeadVars& q, const HeadVars& k, const HeadVars& v, bool assign) {
  const std::array<const HeadVars*, 3> all{&q, &k, &v};
  std::array<HeadsTarget, 3> result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i]->wants_grad() || result[i]) continue;
    const Sink& sink = all[i]->data.sink();
    std::int64_t columns = 0;
    for (const HeadVars* x : all) {
      if (x->data.sink() == sink) columns += x->heads * x->width;
    }
    // Heads that receive gradients never overlap. If their widths sum to the number of columns,
    // they cover the whole tensor, so its gradient need not be set to 0 first.
    const bool covered = columns == all[i]->data.value().columns();
    const Target target = assign    ? Target(sink.sum_in_place(), false)
                          : covered ? sink.target()
                                    : Target(sink.sum_in_place(), true);
    for (std::size_t j = i; j < all.size(); ++j) {
      if (!(all[j]->data.sink() == sink)) continue;
      result[j] = {{target.tensor, all[j]->first_column, all[j]->heads, all[j]->width}, target.add};
    }
  }
  return {result[0], result[1], result[2]};
}

Heads output_heads(const HeadVars& q, std::int64_t width) {
  const Tensor& x = q.data.value();
  std::int64_t columns = 0;
  LONGHAND_CHECK(q.heads >= 1 && width >= 1 && !__builtin_mul_overflow(q.heads, width, &columns),
                 "heads: expected at least one head of at least one column, got ", q.heads,
                 " heads of ", width, " columns");
  return {Tensor(x.backend(), {x.rows(), columns}, x.dtype()), 0, q.heads, width};
}

bool recorded(std::initializer_list<const Var*> inputs) {
  if (!Tape::current()) return false;
  for (const Var* input : inputs) {
    if (input->wants_grad()) return true;
  }
  return false;
}

Var record_heads(std::string_view op, std::initializer_list<const Var*> inputs, const Heads& y,
                 HeadsBackward backward) {
  return record(
      op, inputs, y.data,
      [backward = std::move(backward), heads = y.heads, width = y.width](const Tensor& dy) {
        backward({dy, 0, heads, width}, false);
      });
}

}  // namespace longhand
