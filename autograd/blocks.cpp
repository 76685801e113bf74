#include "autograd/blocks.h"

#include "autograd/tape.h"
#include "core/contract/blocks.h"
#include "core/contract/reduce.h"

namespace longhand {

Var block_matmul(const Var& x, const BlockMatrix& w, const BlockMatmulOptions& o) {
  Backend& backend = x.backend();
  const Tensor c(backend, x.shape().with_back(w.rows()), o.out.value_or(x.value().dtype()));
  backend(BlockMatmul{
      .a = x.value(), .w = w, .bias = o.bias.value(), .residual = o.residual.value(), .c = c});
  return record(
      "block_matmul", {&x, &o.bias, &o.residual}, c,
      [w, dx = x.sink(), dbias = o.bias.sink(), dresidual = o.residual.sink()](const Tensor& dc) {
        Backend& run = dc.backend();
        if (dresidual) dresidual.add(dc);
        if (dbias) run(ColumnSum{.x = dc, .y = dbias.target()});
        if (dx) {
          run(BlockMatmul{.a = dc, .w = w, .transpose_w = false, .c = dx.target()});
        }
      });
}

Var block_embedding(const BlockMatrix& w, const Tensor& ids, DType type) {
  Backend& backend = ids.backend();
  const Tensor y(backend, {ids.size(), w.columns}, type);
  backend(BlockEmbedding{.w = w, .ids = ids, .y = y});
  return Var(y);
}

}  // namespace longhand
