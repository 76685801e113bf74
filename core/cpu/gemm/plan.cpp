#include "core/cpu/gemm/plan.h"

#include <algorithm>

namespace longhand::cpu {
namespace {

/// Maximum number of bytes in a block of B: half of a second-level cache of 1 MiB. The other half
/// is for rows of A and the sums. For the first-level cache, see PanelFormat::block_units.
constexpr std::int64_t block_bytes = 512 << 10;
constexpr std::int64_t widest_block = 1024;  // maximum number of columns of a block of B
// Maximum number of rows for which a task packs B by itself.
constexpr std::int64_t private_rows = 448;
// Maximum number of columns of a task, without and with a buffer for the sums.
constexpr std::int64_t widest_direct = 2048, widest_buffered = 1024;
constexpr std::int64_t shared_a_bytes = 32 << 20, group_bytes = 64 << 20;
// Maximum number of floats in a row of A that is used in place.
constexpr std::int64_t longest_in_place = 512;
constexpr std::int64_t smallest_for_tiles = 8;
constexpr std::int64_t most_dot_rows = 8, least_dot_k = 64;
constexpr std::int64_t dot_bytes = 64 << 10;  // bytes of B per task
constexpr double task_flops = 2e6;  // about 20 us of work per task, far more than the overhead
constexpr std::int64_t enough_tasks = 32;
constexpr double many_turns = 256;

}  // namespace

GemmPlan plan_gemm(const Gemm& g, const GemmKernels& kernels) {
  GemmPlan plan;
  const auto math = static_cast<std::size_t>(g.math);
  // A product with few rows, columns or steps of k leaves tile registers mostly empty. Such a
  // product uses the format for small products.
  const bool small = std::min(g.m, g.n) < smallest_for_tiles || g.k < smallest_for_tiles;
  plan.format = small ? kernels.small[math] : kernels.format[math];
  const PanelFormat& format = *plan.format;
  const std::int64_t mr = format.mr, nr = format.nr;

  const Epilogue& e = g.epilogue;
  plan.direct = g.c.type == DType::f32 && g.k > 0 && !e.bias && !e.f && !e.pre.data &&
                !e.residual.data && !e.at.data;

  plan.dots = g.b.transposed && g.m <= most_dot_rows && g.k >= least_dot_k;
  if (plan.dots) {
    plan.task_cols = std::clamp<std::int64_t>(
        dot_bytes / (static_cast<std::int64_t>(size_of(g.b.type)) * g.k) / 4 * 4, 4, 1024);
    return plan;
  }

  const std::int64_t units = std::max<std::int64_t>(1, plan.units(g.k));
  const std::int64_t blocks = divide_up(units, format.block_units);
  const std::int64_t block_units = round_up(divide_up(units, blocks), format.granule);
  plan.block_k = block_units * format.k_per_unit;

  const std::int64_t most_cols = std::clamp<std::int64_t>(
      block_bytes / (block_units * format.unit_bytes) / nr * nr, 4 * nr, widest_block);
  plan.block_cols = round_up(divide_up(g.n, divide_up(g.n, most_cols)), nr);
  plan.panel_rows = divide_up(format.block_rows, mr) * mr;
  plan.share_b = g.m > private_rows;
  const std::int64_t tallest =
      plan.share_b ? plan.panel_rows : divide_up(private_rows, plan.panel_rows) * plan.panel_rows;
  plan.task_rows = round_up(std::min(g.m, tallest), mr);
  const std::int64_t widest = !plan.share_b ? plan.block_cols
                              : plan.direct ? widest_direct
                                            : widest_buffered;
  const std::int64_t most = std::min<std::int64_t>(widest, format.most_task_cols);
  plan.task_cols = round_up(divide_up(g.n, divide_up(g.n, most)), nr);

  const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) *
                       static_cast<double>(g.k) * static_cast<double>(g.batch);
  const auto wanted = static_cast<std::int64_t>(
      std::clamp(flops / task_flops, 1.0, static_cast<double>(enough_tasks)));
  const auto tasks = [&] {
    return g.batch * divide_up(g.m, plan.task_rows) * divide_up(g.n, plan.task_cols);
  };

  // If k is long and even the finest division of c gives few blocks, k is divided too.
  const std::int64_t finest = g.batch * divide_up(g.m, 4 * mr) * divide_up(g.n, 8 * nr);
  plan.chunk_k = std::max<std::int64_t>(1, g.k);
  if (finest < 16 && blocks >= 4 && wanted > tasks()) {
    plan.share_b = false;
    const std::int64_t each = divide_up(blocks, divide_up(wanted, tasks()));
    plan.chunk_k = each * plan.block_k;
    plan.chunks = divide_up(g.k, plan.chunk_k);
    plan.direct = plan.direct && plan.chunks == 1;
  }
  // If there are too few tasks, makes them smaller. With a shared B, halves the rows first, but not
  // below 4 panels of rows, so that enough rows use each block of B. Then halves the columns, and
  // then the rows again. If each task packs its own B, halves the columns first.
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
  while (tasks() * plan.chunks < wanted) {
    if (plan.share_b ? !halve_rows(4) && !halve_cols(4) && !halve_rows(2)
                     : !halve_cols(4) && !halve_rows(2)) {
      break;
    }
  }
  plan.block_cols = std::min(plan.block_cols, plan.task_cols);
  plan.panel_rows = std::min(plan.panel_rows, plan.task_rows);
  const double each = flops / static_cast<double>(tasks() * plan.chunks);
  // The tasks of a turn are adjacent, so all tasks except the first find their rows of A in the
  // cache. Turns are therefore longer if there are many tasks.
  const double plenty = std::min(4 * task_flops / std::max(each, 1.0),
                                 static_cast<double>(tasks() * plan.chunks) / many_turns);
  const double least = std::min(task_flops / 8 / std::max(each, 1.0), 1e6);
  plan.tasks_at_once =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::max(least, plenty)));

  const std::int64_t all_units = round_up(units, block_units);
  plan.group_cols = g.n;
  if (plan.share_b) {
    const std::int64_t fit = group_bytes / (all_units * format.unit_bytes);
    plan.group_cols =
        std::min(g.n, std::max<std::int64_t>(1, fit / plan.task_cols) * plan.task_cols);
  }

  // Packing A requires a load and a store per element. This takes as long as about 16 columns of
  // the product, so A is used in place if B is narrow. Long rows are packed nevertheless. In place,
  // 14 parallel rows would overload the prefetchers. If their stride were a power of two, these
  // rows would also share a few sets of the first-level cache.
  const bool narrow = g.n <= 4 * nr;
  plan.a_in_place =
      (format.in_place_f32 && g.a.type == DType::f32 && narrow &&
       (g.a.transposed || g.a.ld <= longest_in_place)) ||
      (format.in_place_bf16_rows && g.a.type == DType::bf16 && !g.a.transposed && g.k % 2 == 0 &&
       g.a.ld % 2 == 0 && g.a.batch_stride % 2 == 0 && narrow && g.a.ld <= 2 * longest_in_place);
  plan.b_in_place = format.in_place_f32 && g.b.type == DType::f32 && !g.b.transposed &&
                    !plan.share_b && plan.task_rows <= 8 * mr;
  plan.share_a = plan.share_b && !plan.a_in_place && g.n > plan.task_cols &&
                 round_up(g.m, mr) * all_units * format.unit_bytes <= shared_a_bytes;
  return plan;
}

}  // namespace longhand::cpu
