#pragma once

#include <cstdint>

#include "core/cpu/gemm/gemm.h"
#include "core/cpu/gemm/kernels.h"

namespace longhand::cpu {

/// How a matrix product is divided into blocks. The division depends on the shape, the types and
/// the instruction set, but not on the number of threads or the machine's caches. Results are
/// therefore equal on all machines with the same instruction set.
///
/// A task computes a block of task_rows x task_cols entries of c. It processes k in blocks of
/// block_k and the columns of B in blocks of block_cols, and packs the parts of A and B that it
/// needs. If several tasks would pack the same parts, all workers together pack these parts in
/// advance (share_a, share_b). If k is long and c is small, k is also divided into `chunks`, whose
/// sums are added in order at the end.
struct GemmPlan {
  const PanelFormat* format = nullptr;
  std::int64_t block_k = 0;  // length of a block along k
  /// Number of columns of B in a block. A block of B, block_k x block_cols, fits in the
  /// second-level cache.
  std::int64_t block_cols = 0;
  std::int64_t panel_rows = 0;  // number of rows of A packed at a time
  std::int64_t task_rows = 0, task_cols = 0;
  std::int64_t group_cols = 0;  // number of columns of B packed at a time, if share_b is true
  std::int64_t chunks = 1;
  std::int64_t chunk_k = 0;  // length of a chunk along k, a multiple of block_k
  /// Number of tasks in a turn. A worker fetches a whole turn at a time, so that executing the
  /// tasks takes much longer than fetching them.
  std::int64_t tasks_at_once = 1;
  bool share_a = false, share_b = false;
  /// True if c has so few rows that kernels.dots computes the product as dot products with columns
  /// of B.
  bool dots = false;
  bool a_in_place = false, b_in_place = false;
  bool direct = false;  // true if sums are accumulated in c itself, not in a buffer

  std::int64_t units(std::int64_t k) const {
    const std::int64_t count = (k + format->k_per_unit - 1) / format->k_per_unit;
    return (count + format->granule - 1) / format->granule * format->granule;
  }
};

GemmPlan plan_gemm(const Gemm& g, const GemmKernels& kernels);

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

}  // namespace longhand::cpu
