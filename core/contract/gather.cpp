#include "core/contract/gather.h"

#include "core/contract/require.h"

namespace longhand {

void check(const Embedding& op) {
  Arguments are(Embedding::name);
  are.floats("table", op.table, 2);
  are.require(op.table.shape().rank() == 2, "table", "expected 2 axes, got ", op.table.shape());
  are.in("ids", op.ids, Shape{op.ids.size()}, DType::i32);
  are.out_mixed("y", op.y, Shape{op.ids.size(), op.table.columns()}, op.table.dtype());
}

void check(const EmbeddingBackward& op) {
  Arguments are(EmbeddingBackward::name);
  are.floats("dy", op.dy, 2);
  are.require(op.dy.shape().rank() == 2, "dy", "expected 2 axes, got ", op.dy.shape());
  are.in("ids", op.ids, Shape{op.dy.rows()}, DType::i32);
  are.out("dtable", op.dtable, Shape{op.dtable.tensor.rows(), op.dy.columns()},
          master_type(op.dy.dtype()));
}

void check(const Gather& op) {
  Arguments are(Gather::name);
  are.floats("x", op.x, 1);
  are.in("index", op.index, op.x.shape().with_back(op.index.columns()), DType::i32);
  are.out("y", op.y, op.index.shape(), op.x.dtype());
}

void check(const GatherBackward& op) {
  Arguments are(GatherBackward::name);
  are.floats("dy", op.dy, 1);
  are.in("index", op.index, op.dy.shape(), DType::i32);
  are.out("dx", op.dx, op.dy.shape().with_back(op.dx.tensor.columns()), op.dy.dtype());
}

void check(const Argmax& op) {
  Arguments are(Argmax::name);
  are.floats("x", op.x, 1);
  are.require(op.x.columns() > 0, "x", "expected at least 1 column, got ", op.x.shape());
  are.out("y", op.y, Shape{op.x.rows()}, DType::i32);
}

}  // namespace longhand
