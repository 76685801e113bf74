#pragma once

#include <cstdint>

#include "core/cpu/gemm/gemm.h"
#include "core/cpu/gemm/kernels.h"

namespace longhand::cpu {

/// How a product is cut. It depends on the shape, the types and the instruction set, never on the
/// threads or the machine's caches: results are the same everywhere the instruction set is.
///
/// A task makes task_rows x task_cols of c, walking k in blocks of block_k, the columns of B in
/// blocks of block_cols, and packs what of A and B it needs. What several tasks would pack is
/// packed ahead by all workers together (share_a, share_b). Where k is long and c small, k is cut
/// in `chunks` too, whose sums are added in order at the end.
struct GemmPlan {
  const PanelFormat* format = nullptr;
  std::int64_t block_k = 0;     // elements
  std::int64_t block_cols = 0;  // of B, times block_k: stays in the second-level cache
  std::int64_t panel_rows = 0;  // of A, packed at a time
  std::int64_t task_rows = 0, task_cols = 0;
  std::int64_t group_cols = 0;  // of B, packed at a time where share_b
  std::int64_t chunks = 1;
  std::int64_t chunk_k = 0;        // elements, a multiple of block_k
  std::int64_t tasks_at_once = 1;  // so that a worker's turn is worth taking
  bool share_a = false, share_b = false;
  bool dots = false;  // too few rows for tiles: kernels.dots over columns of B
  bool a_in_place = false, b_in_place = false;
  bool direct = false;  // the sums are formed in c itself

  std::int64_t units(std::int64_t k) const {
    const std::int64_t count = (k + format->k_per_unit - 1) / format->k_per_unit;
    return (count + format->granule - 1) / format->granule * format->granule;
  }
};

GemmPlan plan_gemm(const Gemm& g, const GemmKernels& kernels);

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

}  // namespace longhand::cpu
