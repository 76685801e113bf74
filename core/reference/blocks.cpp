#include "core/contract/blocks.h"

#include <vector>

#include "core/contract/require.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {
namespace {

/// The numbers of a matrix in blocks, decoded row by row.
std::vector<std::vector<double>> decoded(const BlockMatrix& w) {
  std::vector<std::vector<double>> rows;
  for (const BlockRows& part : w.parts) {
    const auto* bytes = static_cast<const std::byte*>(part.bytes.address());
    const std::span blocks(bytes, part.bytes.bytes());
    for (std::int64_t row = 0; row < part.bytes.rows(); ++row) {
      decode_gguf(*part.type, blocks, row * w.columns,
                  rows.emplace_back(static_cast<std::size_t>(w.columns)));
    }
  }
  return rows;
}

}  // namespace

void run(ReferenceBackend&, const BlockMatmul& op) {
  const auto w = decoded(op.w);
  const Rows a(op.a), bias(op.bias), residual(op.residual);
  const Result c(op.c);
  const std::int64_t rows = op.w.rows(), columns = op.w.columns;
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return w[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  };
  for (std::int64_t i = 0; i < op.a.rows(); ++i) {
    if (op.transpose_w) {
      for (std::int64_t j = 0; j < rows; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < columns; ++p) sum += a(i, p) * at(j, p);
        c.put(i, j, sum + (op.bias ? bias(j) : 0) + (op.residual ? residual(i, j) : 0));
      }
    } else {
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < rows; ++p) sum += a(i, p) * at(p, j);
        c.put(i, j, sum);
      }
    }
  }
}

void run(ReferenceBackend&, const BlockEmbedding& op) {
  require_indices(BlockEmbedding::name, "ids", op.ids, op.w.rows());
  const auto w = decoded(op.w);
  const auto* ids = op.ids.data<std::int32_t>();
  const Result y(op.y);
  for (std::int64_t i = 0; i < op.ids.size(); ++i) {
    for (std::int64_t j = 0; j < op.w.columns; ++j) {
      y.put(i, j, w[static_cast<std::size_t>(ids[i])][static_cast<std::size_t>(j)]);
    }
  }
}

}  // namespace longhand::reference
