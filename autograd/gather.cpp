#include "autograd/gather.h"

#include "autograd/tape.h"
#include "core/contract/gather.h"

namespace longhand {

Var embedding(const Var& table, const Tensor& ids, DType type) {
  const Tensor y(table.backend(), {ids.size(), table.value().columns()}, type);
  y.backend()(Embedding{.table = table.value(), .ids = ids, .y = y});
  return record("embedding", {&table}, y, [ids, dtable = table.sink()](const Tensor& dy) {
    dy.backend()(EmbeddingBackward{.ids = ids, .dy = dy, .dtable = dtable.target()});
  });
}

Var gather(const Var& x, const Tensor& index) {
  const Tensor y(x.backend(), index.shape(), x.value().dtype());
  y.backend()(Gather{.x = x.value(), .index = index, .y = y});
  return record("gather", {&x}, y, [index, dx = x.sink()](const Tensor& dy) {
    dy.backend()(GatherBackward{.index = index, .dy = dy, .dx = dx.target()});
  });
}

}  // namespace longhand
