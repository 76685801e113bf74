#include "core/block_matrix.h"

#include <algorithm>
#include <numeric>

#include "core/backend.h"
#include "core/contract/blocks.h"
#include "core/error.h"

namespace longhand {

std::int64_t BlockMatrix::rows() const {
  std::int64_t sum = 0;
  for (const BlockRows& part : parts) sum += part.bytes.rows();
  return sum;
}

std::size_t BlockMatrix::bytes() const {
  std::size_t sum = 0;
  for (const BlockRows& part : parts) sum += part.bytes.bytes();
  return sum;
}

std::int64_t row_bytes(const GgufType& type, std::int64_t columns) {
  LONGHAND_CHECK(columns % type.block == 0, small_name(type), ": expected rows whose length is a ",
                 "multiple of ", type.block, ", the numbers of a block, got rows of ", columns);
  return columns / type.block * static_cast<std::int64_t>(type.bytes);
}

BlockMatrix in_blocks(const Tensor& matrix, const GgufType& type) {
  const std::int64_t rows = matrix.rows(), columns = matrix.columns();
  const std::int64_t bytes = row_bytes(type, columns);
  const Tensor made(matrix.backend(), {rows, bytes}, DType::u8);
  // A few rows at a time, because doubles need much more memory than blocks.
  const std::int64_t step =
      std::max<std::int64_t>(1, (1 << 20) / std::max<std::int64_t>(1, columns));
  std::vector<std::byte> blocks;
  for (std::int64_t first = 0; first < rows; first += step) {
    const std::int64_t count = std::min(step, rows - first);
    blocks.resize(static_cast<std::size_t>(count * bytes));
    const Tensor some = matrix.reshape({rows, columns}).slice(first, count);
    encode_gguf(type, some.to_doubles(), blocks);
    matrix.backend().upload(made.slice(first, count).address(), blocks.data(), blocks.size());
  }
  return {.parts = {{&type, made}}, .columns = columns};
}

void decode_blocks(const BlockMatrix& w, const Tensor& matrix) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(w.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  Backend& backend = matrix.backend();
  backend(BlockEmbedding{.w = w, .ids = Tensor::from(backend, {w.rows()}, rows), .y = matrix});
}

}  // namespace longhand
