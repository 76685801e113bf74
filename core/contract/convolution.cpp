#include "core/contract/convolution.h"

#include "core/contract/heads_check.h"

namespace longhand {
namespace {

template <class Op>
void check_convolution_inputs(HeadArguments& are, const Op& op) {
  const std::int64_t rows = op.x.data.rows();
  are.in("x", op.x, rows, op.x.heads, -1);
  const std::int64_t n = op.x.heads * op.x.width;
  are.require(static_cast<bool>(op.segments), "segments", "expected segments, got none");
  are.require(op.segments.tile() && op.segments.tokens() == rows, "segments",
              "expected consecutive segments that cover all ", rows, " rows of x, got segments of ",
              op.segments.tokens(), " rows in total");
  const std::int64_t taps = op.weight ? op.weight.rows() : 0;
  are.require(taps >= 1 && taps <= ShortConvolution::most_taps, "weight", "expected 1 to ",
              ShortConvolution::most_taps, " rows, got ", taps);
  are.in("weight", op.weight, {taps, n}, are.master());
}

}  // namespace

void check(const ShortConvolution& op) {
  HeadArguments are(ShortConvolution::name, op.x);
  check_convolution_inputs(are, op);
  const std::int64_t n = op.x.heads * op.x.width;
  const Shape tails{op.segments.count(), (op.weight.rows() - 1) * n};
  const bool in_place = op.after && op.before && op.after.same_memory(op.before);
  if (op.before && !in_place) are.in("before", op.before, tails, are.master());
  are.out("y", op.y, {op.x.data.rows(), n}, are.type());
  if (op.after) are.out("after", op.after, tails, are.master());
}

void check(const ShortConvolutionBackward& op) {
  HeadArguments are(ShortConvolutionBackward::name, op.x);
  check_convolution_inputs(are, op);
  are.in("dy", op.dy, {op.x.data.rows(), op.x.heads * op.x.width}, are.type());
  are.out("dx", op.dx, op.x);
  if (op.dweight) are.out("dweight", op.dweight.tensor, op.weight.shape(), are.master());
}

}  // namespace longhand
