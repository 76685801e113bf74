#include "core/contract/blocks.h"

#include "core/contract/require.h"

namespace longhand {
namespace {

void check_blocks(Arguments& are, const BlockMatrix& w) {
  are.require(static_cast<bool>(w), "w", "expected a matrix in blocks, got none");
  are.require(w.parts.size() <= most_block_parts, "w", "expected at most ", most_block_parts,
              " parts, got ", w.parts.size());
  for (const BlockRows& part : w.parts) {
    are.require(part.type != nullptr, "w", "expected a type of blocks, got none");
    are.in("w", part.bytes, Shape{part.bytes.rows(), row_bytes(*part.type, w.columns)}, DType::u8);
  }
}

}  // namespace

void check(const BlockMatmul& op) {
  Arguments are(BlockMatmul::name);
  are.floats("a", op.a, 1);
  check_blocks(are, op.w);
  const std::int64_t rows = op.w.rows();
  const std::int64_t in = op.transpose_w ? op.w.columns : rows;
  const std::int64_t out = op.transpose_w ? rows : op.w.columns;
  are.require(op.a.columns() == in, "a", "expected rows of ", in, " entries, got ", op.a.shape());
  are.require(op.transpose_w || (!op.bias && !op.residual), "bias",
              "expected neither bias nor residual, because w is not transposed");
  const DType type = op.a.dtype();
  const Shape c = op.a.shape().with_back(out);
  if (op.bias) are.in("bias", op.bias, Shape{out}, master_type(type));
  if (op.residual) are.in_mixed("residual", op.residual, c, type);
  are.out_mixed("c", op.c.tensor, c, type);
}

void check(const BlockEmbedding& op) {
  Arguments are(BlockEmbedding::name);
  are.in("ids", op.ids, op.ids.shape(), DType::i32);
  check_blocks(are, op.w);
  const DType type = is_float(op.y.dtype()) ? op.y.dtype() : DType::f32;
  are.out("y", op.y, Shape{op.ids.size(), op.w.columns}, type);
}

}  // namespace longhand
