#pragma once

#include <optional>

#include "autograd/variable.h"
#include "core/block_matrix.h"

namespace longhand {

struct BlockMatmulOptions {
  Var bias = {};
  Var residual = {};
  std::optional<DType> out = {};  // type of the result; default: the type of x
};

/// x w^T + bias + residual for a matrix w in blocks, which is not trained.
Var block_matmul(const Var& x, const BlockMatrix& w, const BlockMatmulOptions& options = {});

/// The rows of w with these ids, [ids, columns].
Var block_embedding(const BlockMatrix& w, const Tensor& ids, DType type);

}  // namespace longhand
