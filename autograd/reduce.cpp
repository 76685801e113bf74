#include "autograd/reduce.h"

#include "autograd/elementwise.h"
#include "autograd/tape.h"

namespace longhand {

Var column_sum(const Var& x) {
  const Tensor y(x.backend(), {x.value().columns()}, master_type(x.value().dtype()));
  y.backend()(ColumnSum{.x = x.value(), .y = y});
  return record("column_sum", {&x}, y,
                [dx = x.sink(), shape = x.shape(), type = x.value().dtype()](const Tensor& dy) {
                  const Tensor share = Tensor::zeros(dy.backend(), shape, type);
                  dy.backend()(AddBias{.x = share, .bias = dy, .y = share});  // dx_ij = dy_j
                  dx.add(share);
                });
}

Var row_sum(const Var& x) {
  const Tensor y(x.backend(), {x.value().rows()}, master_type(x.value().dtype()));
  y.backend()(Reduce{.reduction = Reduction::sum, .x = x.value(), .y = y});
  return record("row_sum", {&x}, y, [dx = x.sink()](const Tensor& dy) {
    dy.backend()(Expand{.x = dy, .y = dx.target()});
  });
}

Var sum(const Var& x) { return row_sum(reshape(x, {1, x.value().size()})); }

Var mean(const Var& x) {
  const auto n = static_cast<double>(x.value().size());
  return scale(sum(x), n > 0 ? 1 / n : 0);
}

Var row_max(const Var& x) {
  const std::int64_t rows = x.value().rows();
  const Tensor y(x.backend(), {rows}, master_type(x.value().dtype()));
  const Tensor where(x.backend(), {rows}, DType::i32);
  y.backend()(Reduce{.reduction = Reduction::largest, .x = x.value(), .y = y});
  y.backend()(Argmax{.x = x.value(), .y = where});
  return record(
      "row_max", {&x}, y, [dx = x.sink(), type = x.value().dtype(), where, rows](const Tensor& dy) {
        Tensor share(dy.backend(), {rows, 1}, type);
        dy.backend()(Copy{.x = dy.reshape({rows, 1}), .y = share});
        dy.backend()(
            GatherBackward{.index = where.reshape({rows, 1}), .dy = share, .dx = dx.target()});
      });
}

}  // namespace longhand
