#include "core/cpu/gemm/plan.h"

#include <algorithm>

namespace longhand::cpu {
namespace {

/// Maximum number of bytes in a block of B: half of a second-level cache of 1 MiB. The other half
/// is for rows of A and the sums. For the first-level cache, see PanelFormat::block_units.
constexpr std::int64_t block_bytes = 512 << 10;
constexpr std::int64_t widest_block = 1024;  // maximum number of columns of a block of B
// Maximum number of rows of A for which each task packs the columns of B that it needs. With more
// rows, B is packed once for all tasks.
constexpr std::int64_t private_rows = 448;
// Maximum number of columns of a task: widest_direct if the task accumulates its sums in c itself,
// widest_buffered if it has a buffer for the sums.
constexpr std::int64_t widest_direct = 2048, widest_buffered = 1024;
constexpr std::int64_t shared_a_bytes = 32 << 20, group_bytes = 64 << 20;
// Maximum number of floats in a row of A that is used in place, without packing.
constexpr std::int64_t longest_in_place = 512;
constexpr std::int64_t smallest_for_tiles = 8;
constexpr std::int64_t most_dot_rows = 8, least_dot_k = 64;
constexpr std::int64_t dot_bytes = 64 << 10;  // bytes of B per task that computes dot products
constexpr double task_flops = 2e6;  // about 20 us of work per task, far longer than its overhead
constexpr std::int64_t enough_tasks = 32;
// divide_k() assumes these sizes of tasks. The smallest task computes finest_rows rows and
// finest_cols columns of c. If B is packed once for all tasks, a task computes shared_rows rows.
// These are the sizes for AVX-512, but divide_k() uses them for every instruction set.
constexpr std::int64_t finest_rows = 56, finest_cols = 256, shared_rows = 112;
constexpr double many_turns = 256;

/// Number of units (one or two elements) along k, at least 1.
std::int64_t units_of_k(const Gemm& g, const GemmPlan& plan) {
  return std::max<std::int64_t>(1, plan.units(g.k));
}

/// Number of blocks into which k must be divided, so that a block of a panel of A fits in the
/// first-level cache.
std::int64_t blocks_of_k(const Gemm& g, const GemmPlan& plan) {
  return divide_up(units_of_k(g, plan), plan.format->block_units);
}

/// Bytes of a packed row of A or column of B.
std::int64_t packed_row_bytes(const Gemm& g, const GemmPlan& plan) {
  const PanelFormat& format = *plan.format;
  return round_up(units_of_k(g, plan), plan.block_k / format.k_per_unit) * format.unit_bytes;
}

std::int64_t tasks_of(const Gemm& g, const GemmPlan& plan) {
  return g.batch * divide_up(g.m, plan.task_rows) * divide_up(g.n, plan.task_cols) * plan.chunks;
}

/// Chooses blocks of A and B that fit in the caches.
void choose_blocks(const Gemm& g, GemmPlan& plan) {
  const PanelFormat& format = *plan.format;
  const std::int64_t mr = format.mr, nr = format.nr;
  const std::int64_t block_units =
      round_up(divide_up(units_of_k(g, plan), blocks_of_k(g, plan)), format.granule);
  plan.block_k = block_units * format.k_per_unit;
  const std::int64_t most_cols = std::clamp<std::int64_t>(
      block_bytes / (block_units * format.unit_bytes) / nr * nr, 4 * nr, widest_block);
  plan.block_cols = round_up(divide_up(g.n, divide_up(g.n, most_cols)), nr);
  plan.panel_rows = divide_up(format.block_rows, mr) * mr;
}

/// Gives tasks their maximum size, and chooses whether B is packed once for all tasks.
void choose_tasks(const Gemm& g, GemmPlan& plan) {
  const PanelFormat& format = *plan.format;
  plan.share_b = g.m > private_rows;
  const std::int64_t tallest =
      plan.share_b ? plan.panel_rows : divide_up(private_rows, plan.panel_rows) * plan.panel_rows;
  plan.task_rows = round_up(std::min(g.m, tallest), format.mr);
  const std::int64_t widest = !plan.share_b ? plan.block_cols
                              : plan.direct ? widest_direct
                                            : widest_buffered;
  const std::int64_t most = std::min<std::int64_t>(widest, format.most_task_cols);
  plan.task_cols = round_up(divide_up(g.n, divide_up(g.n, most)), format.nr);
}

/// Divides not only c but also the sum over k among tasks, if k is long and even the finest
/// division of c gives few tasks. The division determines the order of sums. In the modes exact
/// and portable it must therefore not depend on the instruction set, unlike the sizes of tasks.
void divide_k(const Gemm& g, std::int64_t wanted, GemmPlan& plan) {
  const std::int64_t finest = g.batch * divide_up(g.m, finest_rows) * divide_up(g.n, finest_cols);
  const std::int64_t blocks = blocks_of_k(g, plan);
  const std::int64_t tasks = g.batch * divide_up(g.m, plan.share_b ? shared_rows : private_rows) *
                             divide_up(g.n, widest_buffered);
  plan.chunk_k = std::max<std::int64_t>(1, g.k);
  if (finest >= 16 || blocks < 4 || wanted <= tasks) return;
  plan.share_b = false;
  plan.chunk_k = divide_up(blocks, divide_up(wanted, tasks)) * plan.block_k;
  plan.chunks = divide_up(g.k, plan.chunk_k);
  plan.direct = plan.direct && plan.chunks == 1;
}

/// Halves the rows or columns of the tasks until there are at least `wanted` tasks, if possible.
/// Each halving is the first of these steps that is possible:
///   1. if B is packed once for all tasks: halve the rows of tasks with more than 4 panels of rows;
///   2. halve the columns of tasks with more than 4 panels of columns;
///   3. halve the rows of tasks with more than 2 panels of rows.
/// Step 1 stops at 3 or 4 panels, so that enough rows use each block of B.
void shrink_tasks(const Gemm& g, std::int64_t wanted, GemmPlan& plan) {
  const std::int64_t mr = plan.format->mr, nr = plan.format->nr;
  const auto halve_rows = [&](std::int64_t least) {
    const bool can = plan.task_rows > least * mr;
    if (can) plan.task_rows = round_up(plan.task_rows / 2, mr);
    return can;
  };
  const auto halve_cols = [&](std::int64_t least) {
    const bool can = plan.task_cols > least * nr;
    if (can) plan.task_cols = round_up(plan.task_cols / 2, nr);
    return can;
  };
  while (tasks_of(g, plan) < wanted) {
    if (plan.share_b ? !halve_rows(4) && !halve_cols(4) && !halve_rows(2)
                     : !halve_cols(4) && !halve_rows(2)) {
      break;
    }
  }
  plan.block_cols = std::min(plan.block_cols, plan.task_cols);
  plan.panel_rows = std::min(plan.panel_rows, plan.task_rows);
}

/// Returns the number of tasks in a turn. A worker fetches all tasks of a turn together. If there
/// are many tasks, turns are made longer, because the tasks of a turn are adjacent: all except the
/// first find their rows of A in the cache.
std::int64_t length_of_turn(double flops, std::int64_t tasks) {
  const double each = flops / static_cast<double>(tasks);
  const double plenty =
      std::min(4 * task_flops / std::max(each, 1.0), static_cast<double>(tasks) / many_turns);
  const double least = std::min(task_flops / 8 / std::max(each, 1.0), 1e6);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::max(least, plenty)));
}

/// Packing A requires a load and a store per element. This takes as long as about 16 columns of the
/// product, so A is used in place if B has few columns. If its rows are long, A is packed even
/// then: a kernel reads up to 14 rows at once, and 14 separate streams would overload the
/// prefetchers. If the stride of the rows were a power of two, the rows would also share a few sets
/// of the first-level cache.
bool use_a_in_place(const Gemm& g, const PanelFormat& format) {
  if (g.n > std::int64_t{4} * format.nr) return false;
  if (g.a.type == DType::f32) {
    return format.in_place_f32 && (g.a.transposed || g.a.ld <= longest_in_place);
  }
  return format.in_place_bf16_rows && g.a.type == DType::bf16 && !g.a.transposed && g.k % 2 == 0 &&
         g.a.ld % 2 == 0 && g.a.batch_stride % 2 == 0 && g.a.ld <= 2 * longest_in_place;
}

/// Chooses which operands are used in place, without packing, and which operands are packed in
/// advance for several tasks.
void choose_packing(const Gemm& g, GemmPlan& plan) {
  const PanelFormat& format = *plan.format;
  plan.group_cols = g.n;
  if (plan.share_b) {
    const std::int64_t fit = group_bytes / packed_row_bytes(g, plan);
    plan.group_cols =
        std::min(g.n, std::max<std::int64_t>(1, fit / plan.task_cols) * plan.task_cols);
  }
  plan.a_in_place = use_a_in_place(g, format);
  plan.b_in_place = format.in_place_f32 && g.b.type == DType::f32 && !g.b.transposed &&
                    !plan.share_b && plan.task_rows <= std::int64_t{8} * format.mr;
  plan.share_a = plan.share_b && !plan.a_in_place && g.n > plan.task_cols &&
                 round_up(g.m, format.mr) * packed_row_bytes(g, plan) <= shared_a_bytes;
}

}  // namespace

GemmPlan plan_gemm(const Gemm& g, const GemmKernels& kernels) {
  GemmPlan plan;
  const auto math = static_cast<std::size_t>(g.math);
  // If a product has few rows, columns or steps along k, tile registers would be mostly empty. Such
  // a product uses the format for small products.
  const bool small = std::min(g.m, g.n) < smallest_for_tiles || g.k < smallest_for_tiles;
  plan.format = small ? kernels.small[math] : kernels.format[math];

  const Epilogue& e = g.epilogue;
  plan.direct = g.c.type == DType::f32 && g.k > 0 && !e.bias && !e.f && !e.pre.data &&
                !e.residual.data && !e.at.data;

  plan.dots = g.b.transposed && g.m <= most_dot_rows && g.k >= least_dot_k;
  if (plan.dots) {
    plan.task_cols = std::clamp<std::int64_t>(
        dot_bytes / (static_cast<std::int64_t>(size_of(g.b.type)) * g.k) / 4 * 4, 4, 1024);
    return plan;
  }

  const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) *
                       static_cast<double>(g.k) * static_cast<double>(g.batch);
  const auto wanted = static_cast<std::int64_t>(
      std::clamp(flops / task_flops, 1.0, static_cast<double>(enough_tasks)));
  choose_blocks(g, plan);
  choose_tasks(g, plan);
  divide_k(g, wanted, plan);
  shrink_tasks(g, wanted, plan);
  plan.tasks_at_once = length_of_turn(flops, tasks_of(g, plan));
  choose_packing(g, plan);
  return plan;
}

}  // namespace longhand::cpu
