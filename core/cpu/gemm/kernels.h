#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/dtype.h"
#include "core/formulas.h"

/// The kernels for matrix products that an instruction set provides.
///
/// Operands are packed in panels. A panel of A contains `mr` rows, and a panel of B contains `nr`
/// columns. For each step along k, a panel stores one unit of each of its rows or columns. A unit
/// is either one float or two bf16 values that are adjacent along k. Both kinds of unit have four
/// bytes, so the same loops process both.
namespace longhand::cpu {

/// The arguments for packing a part of A or B into panels. The part has `count` rows of A, or
/// columns of B, from index `first` on. In the direction of k, it has k_count elements from k_first
/// on. The last panel is padded with zeros, and so is each panel along k (see
/// PanelFormat::granule). Element k of row or column i is
///   data[i ld + k] if k_contiguous is true, otherwise data[k ld + i].
struct PackJob {
  const void* data;
  bool is_bf16;
  bool k_contiguous;
  std::int64_t ld;
  std::int64_t first, count;
  std::int64_t k_first, k_count;
  void* out;
};

/// The arguments for computing c = alpha a b + beta c in a block of `rows` rows and `cols` columns
/// of c. A unit is one element of a or b, or two elements that are adjacent along k
/// (PanelFormat::k_per_unit). The strides of a and b count units, and ldc counts elements.
///
/// Unit k of row i in panel p of A has the address
///   a + p a_panel + i a_row + k a_unit;
/// where a_row or a_unit is 1. Unit k of column j in panel p of B has the address
///   b + p b_panel + j + k b_unit.
/// If the memory of an operand already has this layout, the operand can be used in place, without
/// packing. The formats for tile registers have a different layout (tile_format.h).
struct BlockProduct {
  std::int64_t rows, cols, units;
  const void* a;
  std::int64_t a_panel, a_row, a_unit;
  const void* b;
  std::int64_t b_panel, b_unit;
  float* c;
  std::int64_t ldc;
  float alpha, beta;
  // True if c is written with non-temporal stores. This requires rows of c on 64-byte boundaries,
  // and beta = 0.
  bool stream = false;
};

struct PanelFormat {
  int mr, nr;
  // Number of successive elements along k that are stored and multiplied together: 1, or 2 in bf16.
  int k_per_unit;
  int granule;         // panels are padded along k to a multiple of this number of units
  int unit_bytes;      // bytes per unit: 4, or 8 if each element is stored as a high and a low part
  int block_units;     // maximum number of units along k for which a panel of A fits in L1
  int block_rows;      // number of rows of A packed at a time
  int most_task_cols;  // maximum number of columns of c per task
  bool in_place_f32;   // true if f32 operands may be used in place, without packing
  // True if a bf16 operand A may be used in place, without packing, when A is contiguous along k
  // and k is even.
  bool in_place_bf16_rows;
  void (*pack_a)(const PackJob&);
  void (*pack_b)(const PackJob&);
  void (*multiply)(const BlockProduct&);
};

/// The arguments for computing a block of c from `sums`, the products summed over all of k; see
/// Epilogue in gemm.h. Pointers refer to the first element of the block. `sums` may be c itself.
struct EpilogueBlock {
  std::int64_t rows, cols;
  const float* sums;
  std::int64_t ld_sums;
  const float* bias;
  bool has_f;
  Activation f;
  void* pre;
  bool pre_bf16;
  std::int64_t ld_pre;
  const void* residual;
  bool residual_bf16;
  std::int64_t ld_residual;
  const void* at;
  bool at_bf16;
  std::int64_t ld_at;
  void* c;
  bool c_bf16;
  std::int64_t ldc;
  float beta;
};

/// The arguments for computing c = alpha a b + beta c in f32 for a few rows of A, as dot products.
/// `a` contains floats [rows][k]. The columns of B are contiguous along k and are used in place.
/// Most of the time is needed to read B from memory.
struct Dots {
  std::int64_t rows, cols, k;
  const float* a;
  const void* b;
  bool b_bf16, round;  // b_bf16: the type of b is bf16; round: round the elements of b to bf16
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  float alpha, beta;
};

struct GemmKernels {
  static constexpr Isa strongest = Isa::amx;

  const PanelFormat* format[3];  // one format for each math mode (Math)
  const PanelFormat* small[3];   // formats for products that are too small for tile registers
  void (*dots)(const Dots&);
  /// Converts A to floats [rows][k]. If `round` is true, rounds the floats to bf16.
  void (*rows_of_a)(const PackJob&, bool round);
  void (*epilogue)(const EpilogueBlock&);
  /// out[i] is the sum of parts[p * stride + i] over p = 0, ..., count - 1, added in this order.
  void (*sum_parts)(const float* parts, std::int64_t stride, std::int64_t count, float* out,
                    std::int64_t length);
};

}  // namespace longhand::cpu
