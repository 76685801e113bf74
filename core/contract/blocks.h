#pragma once

#include <optional>
#include <string_view>

#include "core/block_matrix.h"
#include "core/contract/target.h"
#include "core/math_mode.h"
#include "core/tensor.h"

/// Operations with a matrix w [rows, columns] whose rows are stored in blocks of rounded numbers
/// (core/block_matrix.h). Every backend decodes the blocks to the same numbers.
namespace longhand {

/// A product with w or its transpose:
///   c = a w^T + bias + residual  if transpose_w is true, with a [.., columns] and c [.., rows];
///   c = a w                      if transpose_w is false, with a [.., rows] and c [.., columns].
/// Either all float tensors are f64, or bias [rows] is f32 and the other float tensors are any mix
/// of f32 and bf16. Bias and residual may be empty, and must be empty if transpose_w is false.
///
/// A backend may also round the entries of `a` with Math::fast, if `a` has few rows. Each group of
/// 32 neighbouring entries is rounded to multiples of m / 127, where m is the group's largest
/// magnitude. The products are then products of integers.
struct BlockMatmul {
  static constexpr std::string_view name = "block_matmul";
  Tensor a;
  BlockMatrix w;
  bool transpose_w = true;
  Tensor bias = {}, residual = {};
  Target c;
  std::optional<Math> math = {};  // default: the backend's math mode
};

/// Row i of y [ids, columns] is row ids_i of w. An id that is out of range is treated as in
/// Embedding (core/contract/gather.h).
struct BlockEmbedding {
  static constexpr std::string_view name = "block_embedding";
  BlockMatrix w;
  Tensor ids;  // i32
  Tensor y;
};

void check(const BlockMatmul& op);
void check(const BlockEmbedding& op);

}  // namespace longhand
