#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/dtype.h"
#include "core/formulas.h"

/// What the matrix product asks of an instruction set.
///
/// Operands are packed in panels: a panel of A holds `mr` rows, one of B `nr` columns, and for each
/// step along k one unit for every row (column), next to each other. A unit is a float, or two bf16
/// neighbours along k: four bytes either way, so that one set of loops serves both.
namespace longhand::cpu {

/// Packs `count` rows of A (columns of B), `k_count` long, into panels; the last panel and the last
/// granule of k are filled up with zeros. Element (k, i) of the source is data[i ld + k] where
/// k_contiguous, else data[k ld + i].
struct PackJob {
  const void* data;
  bool is_bf16;
  bool k_contiguous;
  std::int64_t ld;
  std::int64_t first, count;
  std::int64_t k_first, k_count;
  void* out;
};

/// c = alpha a b + beta c for rows x cols of c. Strides count units (elements for c):
/// unit k of row i in panel p of A lies at p a_panel + i a_row + k a_unit, where a_row or a_unit is
/// 1; unit k of column j in panel p of B at p b_panel + j + k b_unit. An operand that already lies
/// so is used in place.
struct BlockProduct {
  std::int64_t rows, cols, units;
  const void* a;
  std::int64_t a_panel, a_row, a_unit;
  const void* b;
  std::int64_t b_panel, b_unit;
  float* c;
  std::int64_t ldc;
  float alpha, beta;
  bool stream =
      false;  // c is written once, past the caches: f32 rows on 64-byte boundaries, beta 0
};

struct PanelFormat {
  int mr, nr;
  int k_per_unit;           // elements of k in a unit: 1 or 2
  int granule;              // panels hold a multiple of this many units
  int unit_bytes;           // 4, or 8 where each element is kept as a high and a low part
  int block_units;          // units of k for which a panel of A fits the first-level cache
  int block_rows;           // rows of A packed at a time
  int most_task_cols;       // columns of c that one task makes
  bool in_place_f32;        // both operands, if f32
  bool in_place_bf16_rows;  // A, if bf16 and contiguous along an even k
  void (*pack_a)(const PackJob&);
  void (*pack_b)(const PackJob&);
  void (*multiply)(const BlockProduct&);
};

/// Rows of a block of c from the finished sums: see Epilogue in gemm.h. Pointers are at the block's
/// corner; `sums` may be c itself.
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

/// A few rows of A, as floats [rows][k], times columns of B that are contiguous along k, where they
/// lie: reading B is all the cost. c = alpha a b + beta c, in f32.
struct Dots {
  std::int64_t rows, cols, k;
  const float* a;
  const void* b;
  bool b_bf16, round;  // round: b to bf16
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  float alpha, beta;
};

struct GemmKernels {
  static constexpr Isa strongest = Isa::amx;

  const PanelFormat* format[3];  // by Math
  const PanelFormat* small[3];   // the same where there are too few rows or columns for tiles
  void (*dots)(const Dots&);
  /// All of A as floats [rows][k], rounded to bf16 if asked.
  void (*rows_of_a)(const PackJob&, bool round);
  void (*epilogue)(const EpilogueBlock&);
  /// out[i] = parts[0][i] + parts[1][i] + ... in that order
  void (*sum_parts)(const float* parts, std::int64_t stride, std::int64_t count, float* out,
                    std::int64_t length);
};

}  // namespace longhand::cpu
