#pragma once

#include <cstdint>
#include <vector>

#include "core/gguf_blocks.h"
#include "core/tensor.h"

namespace longhand {

/// Successive rows of a matrix, stored as in a GGUF file. Each row is divided into blocks of
/// neighbouring numbers. A block stores small integers and the factor by which they are multiplied.
/// Some types also store a shift (core/gguf_blocks.h).
struct BlockRows {
  const GgufType* type = nullptr;
  Tensor bytes = {};  // u8 [rows, bytes of a row]
};

inline constexpr std::size_t most_block_parts = 4;

/// A matrix [rows, columns] whose rows are stored in blocks. It consists of one to four parts,
/// each of which contains some of the rows and has its own type. A model's projection to queries,
/// keys and values, for example, has three parts, because a GGUF file stores three matrices.
///
/// The numbers of the matrix are fixed: a BlockMatrix is read and multiplied, but not trained.
struct BlockMatrix {
  std::vector<BlockRows> parts;
  std::int64_t columns = 0;

  explicit operator bool() const { return !parts.empty(); }
  std::int64_t rows() const;
  std::size_t bytes() const;
};

/// Number of bytes of a row of `columns` numbers. Throws an Error unless the row consists of whole
/// blocks.
std::int64_t row_bytes(const GgufType& type, std::int64_t columns);

/// Rounds a matrix to this type and returns its blocks. `matrix` is f32, f64 or bf16. The type must
/// be one that can be written (written_gguf_type()).
BlockMatrix in_blocks(const Tensor& matrix, const GgufType& type);
/// Stores the numbers of w in `matrix`, which is f32, f64 or bf16.
void decode_blocks(const BlockMatrix& w, const Tensor& matrix);

}  // namespace longhand
