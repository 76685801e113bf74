#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

/// Operations that read or write entries at given i32 indices. If an index is out of range, host
/// backends throw an Error before anything is written. On a device, an entry that is read at such
/// an index is NaN, and a gradient for such an index is dropped.
namespace longhand {

/// Row i of y is row ids_i of the table. The shapes are table [vocabulary, n], ids [rows] and
/// y [rows, n]. y and the table may have different float types.
struct Embedding {
  static constexpr std::string_view name = "embedding";
  Tensor table, ids;
  Tensor y;
};

/// Row v of dtable is the sum of the rows dy_i with ids_i = v, in the order of i.
struct EmbeddingBackward {
  static constexpr std::string_view name = "embedding_backward";
  Tensor ids, dy;
  Target dtable;
};

/// y_ij = x_i,(index_ij). The shape of x is [rows, n], and that of index and y is [rows, k].
struct Gather {
  static constexpr std::string_view name = "gather";
  Tensor x, index;
  Tensor y;
};

/// The backward pass of Gather. For each row i, and for each j in ascending order, adds dy_ij to
/// the entry of dx in row i and column index_ij. Before that, dx is set to zero unless Target::add
/// is true.
struct GatherBackward {
  static constexpr std::string_view name = "gather_backward";
  Tensor index, dy;
  Target dx;
};

/// y_i is the column of the largest entry in row i of x, or the first such column if several
/// entries are equal. y is i32 [rows].
struct Argmax {
  static constexpr std::string_view name = "argmax";
  Tensor x, y;
};

void check(const Embedding& op);
void check(const EmbeddingBackward& op);
void check(const Gather& op);
void check(const GatherBackward& op);
void check(const Argmax& op);

}  // namespace longhand
