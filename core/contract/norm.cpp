#include "core/contract/norm.h"

#include "core/contract/require.h"

namespace longhand {

void check(const LayerNorm& op) {
  Arguments are(LayerNorm::name);
  const Shape rows{op.x.rows()}, columns{op.x.columns()};
  const DType type = op.x.dtype(), master = master_type(type);
  are.floats("x", op.x, 1);
  are.in("gain", op.gain, columns, master);
  if (op.bias) are.in("bias", op.bias, columns, master);
  are.require(op.epsilon >= 0, "epsilon", "expected at least 0, got ", op.epsilon);
  are.out("y", op.y, op.x.shape(), type);
  are.out("mean", op.mean, rows, master);
  are.out("rstd", op.rstd, rows, master);
}

void check(const LayerNormBackward& op) {
  Arguments are(LayerNormBackward::name);
  const Shape rows{op.x.rows()}, columns{op.x.columns()};
  const DType type = op.x.dtype(), master = master_type(type);
  are.floats("x", op.x, 1);
  are.in("gain", op.gain, columns, master);
  are.in("mean", op.mean, rows, master);
  are.in("rstd", op.rstd, rows, master);
  are.in("dy", op.dy, op.x.shape(), type);
  are.out("dx", op.dx, op.x.shape(), type);
  are.out("dgain", op.dgain, columns, master);
  are.out("dbias", op.dbias, columns, master);
}

void check(const RmsNorm& op) {
  Arguments are(RmsNorm::name);
  const DType type = op.x.dtype(), master = master_type(type);
  are.floats("x", op.x, 1);
  are.in("gain", op.gain, Shape{op.x.columns()}, master);
  are.require(op.epsilon >= 0, "epsilon", "expected at least 0, got ", op.epsilon);
  are.out("y", op.y, op.x.shape(), type);
  are.out("rstd", op.rstd, Shape{op.x.rows()}, master);
}

void check(const RmsNormBackward& op) {
  Arguments are(RmsNormBackward::name);
  const Shape columns{op.x.columns()};
  const DType type = op.x.dtype(), master = master_type(type);
  are.floats("x", op.x, 1);
  are.in("gain", op.gain, columns, master);
  are.in("rstd", op.rstd, Shape{op.x.rows()}, master);
  are.in("dy", op.dy, op.x.shape(), type);
  are.out("dx", op.dx, op.x.shape(), type);
  are.out("dgain", op.dgain, columns, master);
}

}  // namespace longhand
