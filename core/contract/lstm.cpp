#include "core/contract/lstm.h"

#include "core/contract/heads_check.h"

namespace longhand {
namespace {

void check_rows(const HeadArguments& are, const Segments& segments, std::int64_t rows) {
  are.require(static_cast<bool>(segments), "segments", "expected segments, got none");
  are.require(segments.tile() && segments.tokens() == rows, "segments",
              "expected consecutive segments that cover all ", rows, " rows, got segments of ",
              segments.tokens(), " rows in total");
}

}  // namespace

void check(const Lstm& op) {
  HeadArguments are(Lstm::name, op.x);
  const std::int64_t rows = op.x.data.rows(), heads = op.x.heads, n = op.x.width / 4;
  are.require(op.x.width % 4 == 0, "x", "expected heads whose width is a multiple of 4, got ",
              op.x.width, " columns");
  are.in("x", op.x, rows, heads, 4 * n);
  check_rows(are, op.segments, rows);
  are.in("u", op.u, {heads * 4 * n, n}, are.master());
  const Shape states{op.segments.count(), heads * 2 * n};
  const bool in_place = op.after && op.before && op.after.same_memory(op.before);
  if (op.before && !in_place) are.in("before", op.before, states, are.master());
  are.out("y", op.y, rows, heads, n);
  are.require(static_cast<bool>(op.gates) == static_cast<bool>(op.cells), "gates",
              "expected both outputs, `gates` and `cells`, or neither");
  if (op.gates) are.out("gates", op.gates, {rows, heads * 4 * n}, are.master());
  if (op.cells) are.out("cells", op.cells, {rows, heads * n}, are.master());
  if (op.after) are.out("after", op.after, states, are.master());
}

void check(const LstmBackward& op) {
  HeadArguments are(LstmBackward::name, op.dy);
  const std::int64_t rows = op.dy.data.rows(), heads = op.dy.heads, n = op.dy.width;
  are.in("dy", op.dy, rows, heads, n);
  check_rows(are, op.segments, rows);
  are.in("u", op.u, {heads * 4 * n, n}, are.master());
  are.in("gates", op.gates, {rows, heads * 4 * n}, are.master());
  are.in("cells", op.cells, {rows, heads * n}, are.master());
  if (op.dx) are.out("dx", op.dx.heads, rows, heads, 4 * n);
  if (op.du) are.out("du", op.du.tensor, op.u.shape(), are.master());
}

}  // namespace longhand
