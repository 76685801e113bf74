#include "core/cpu/gemm/plan.h"

#include <algorithm>

namespace longhand::cpu {
namespace {

/// The caches that blocks are made for: half of a second-level cache of 1 MiB holds a block of B,
/// the rest a panel block of A and the sums. First level: see PanelFormat::block_units.
constexpr std::int64_t block_bytes = 512 << 10;
constexpr std::int64_t widest_block = 1024;     // columns
constexpr std::int64_t panel_block_rows = 112;  // of A, packed at a time: 8 tiles of 14, 18 of 6
constexpr std::int64_t private_rows = 448;      // up to here a task that packs its own B has 4 such
constexpr std::int64_t group_bytes = 64 << 20;
constexpr double task_flops = 2e6;  // about 20 microseconds: far above the cost of a turn
constexpr std::int64_t enough_tasks = 32;

}  // namespace

GemmPlan plan_gemm(const Gemm& g, const GemmKernels& kernels) {
  GemmPlan plan;
  const auto math = static_cast<std::size_t>(g.math);
  plan.format = kernels.format[math];
  const PanelFormat& format = *plan.format;
  const std::int64_t mr = format.mr, nr = format.nr;

  const Epilogue& e = g.epilogue;
  plan.direct = g.c.type == DType::f32 && g.k > 0 && !e.bias && !e.f && !e.pre.data &&
                !e.residual.data && !e.at.data;

  const std::int64_t units = std::max<std::int64_t>(1, plan.units(g.k));
  const std::int64_t blocks = divide_up(units, format.block_units);
  const std::int64_t block_units = round_up(divide_up(units, blocks), format.granule);
  plan.block_k = block_units * format.k_per_unit;

  const std::int64_t most_cols = std::clamp<std::int64_t>(
      block_bytes / (block_units * format.unit_bytes) / nr * nr, 4 * nr, widest_block);
  plan.block_cols = round_up(divide_up(g.n, divide_up(g.n, most_cols)), nr);
  plan.panel_rows = divide_up(panel_block_rows, mr) * mr;
  plan.share_b = g.m > private_rows;
  const std::int64_t tallest =
      plan.share_b ? plan.panel_rows : divide_up(private_rows, plan.panel_rows) * plan.panel_rows;
  plan.block_rows = round_up(std::min(g.m, tallest), mr);

  const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) *
                       static_cast<double>(g.k) * static_cast<double>(g.batch);
  const auto wanted = static_cast<std::int64_t>(
      std::clamp(flops / task_flops, 1.0, static_cast<double>(enough_tasks)));
  const auto tasks = [&] {
    return g.batch * divide_up(g.m, plan.block_rows) * divide_up(g.n, plan.block_cols);
  };

  // Few blocks of c however fine the cut, and a long k: cut k.
  const std::int64_t finest = g.batch * divide_up(g.m, 4 * mr) * divide_up(g.n, 8 * nr);
  plan.chunk_k = std::max<std::int64_t>(1, g.k);
  if (finest < 16 && blocks >= 4 && wanted > tasks()) {
    const std::int64_t each = divide_up(blocks, divide_up(wanted, tasks()));
    plan.chunk_k = each * plan.block_k;
    plan.chunks = divide_up(g.k, plan.chunk_k);
    plan.share_b = false;
    plan.direct = plan.direct && plan.chunks == 1;
  }
  // Rows are halved first where B is shared (that costs nothing but more passes over B), columns
  // first where it is not.
  while (tasks() * plan.chunks < wanted) {
    const bool shorter = plan.block_rows > 2 * mr, narrower = plan.block_cols > 4 * nr;
    if (shorter && (plan.share_b || !narrower)) {
      plan.block_rows = round_up(plan.block_rows / 2, mr);
    } else if (narrower) {
      plan.block_cols = round_up(plan.block_cols / 2, nr);
    } else {
      break;
    }
  }
  plan.panel_rows = std::min(plan.panel_rows, plan.block_rows);
  const double each = flops / static_cast<double>(tasks() * plan.chunks);
  plan.tasks_at_once = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::min(task_flops / 8 / std::max(each, 1.0), 1e6)));

  plan.group_cols = g.n;
  if (plan.share_b) {
    const std::int64_t fit = group_bytes / (round_up(units, block_units) * format.unit_bytes);
    plan.group_cols =
        std::min(g.n, std::max<std::int64_t>(1, fit / plan.block_cols) * plan.block_cols);
  }

  // Packing A costs a load and a store per element, about what the tiles do with it for 16 columns.
  plan.a_in_place = (format.in_place_f32 && g.a.type == DType::f32 && g.n <= 4 * nr) ||
                    (format.in_place_bf16_rows && g.a.type == DType::bf16 && !g.a.transposed &&
                     g.k % 2 == 0 && g.a.ld % 2 == 0 && g.a.batch_stride % 2 == 0 && g.n <= 4 * nr);
  plan.b_in_place = format.in_place_f32 && g.b.type == DType::f32 && !g.b.transposed &&
                    !plan.share_b && plan.block_rows <= 8 * mr;
  return plan;
}

}  // namespace longhand::cpu
