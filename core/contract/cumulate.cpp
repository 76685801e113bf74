#include "core/contract/cumulate.h"

#include "core/contract/require.h"

namespace longhand {

void check(const Cumulate& op) {
  Arguments are(Cumulate::name);
  are.floats("x", op.x, 2);
  are.require(op.x.shape().rank() == 2 && op.x.dtype() == master_type(op.x.dtype()), "x",
              "expected [rows, columns] f32 or f64, got ", op.x.shape(), " ", op.x.dtype());
  are.require(op.segments && op.segments.rows() <= op.x.rows(), "segments", "expected at most ",
              op.x.rows(), " rows, the number of rows of x, got ", op.segments.rows());
  const Shape ends{op.segments.count(), op.x.columns()};
  are.require(!op.reverse || (!op.before && !op.after), "before",
              "expected neither `before` nor `after` together with `reverse`");
  const bool in_place = op.after && op.before && op.after.same_memory(op.before);
  if (op.before && !in_place) are.in("before", op.before, ends, op.x.dtype());
  are.out("y", op.y, op.x.shape(), op.x.dtype());
  if (op.after) are.out("after", op.after, ends, op.x.dtype());
}

void check(const LogCounts& op) {
  Arguments are(LogCounts::name);
  are.floats("y", op.y, 2);
  are.require(op.y.dtype() == master_type(op.y.dtype()), "y", "expected f32 or f64, got ",
              op.y.dtype());
  are.require(op.queries && op.keys && op.queries.count() == op.keys.count(), "segments",
              "expected equal numbers of query segments and key segments");
  are.require(op.queries.tile(), "queries",
              "expected consecutive segments, the first of which begins at row 0");
  are.require(op.y.shape().rank() == 2 && op.y.rows() == op.queries.tokens(), "y", "expected [",
              op.queries.tokens(), ", columns], got ", op.y.shape());
}

}  // namespace longhand
