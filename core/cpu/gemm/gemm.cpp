#include "core/cpu/gemm/gemm.h"

#include <algorithm>

#include "core/cpu/chunks.h"
#include "core/cpu/gemm/kernels.h"
#include "core/cpu/gemm/plan.h"
#include "core/error.h"

namespace longhand::cpu {
namespace {

std::int64_t size_in(DType type, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(size_of(type));
}

/// Address of element `index` of an array whose elements have the type `type`.
const void* at(const void* data, DType type, std::int64_t index) {
  return static_cast<const std::byte*>(data) + size_in(type, index);
}
void* at(void* data, DType type, std::int64_t index) {
  return static_cast<std::byte*>(data) + size_in(type, index);
}

/// A range of rows of A, of columns of B, or of indices along k.
struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};
Range piece(std::int64_t index, std::int64_t step, std::int64_t total) {
  return {index * step, std::min(total, (index + 1) * step)};
}

/// True if the kernels write c with non-temporal stores. They can do so only if k is processed in a
/// single pass, so that c is written once and never read.
bool streams(const Gemm& g, const GemmPlan& plan) {
  constexpr std::int64_t line = 64 / sizeof(float);
  const auto address = reinterpret_cast<std::uintptr_t>(g.c.data);
  const bool aligned = address % 64 == 0 && g.c.ld % line == 0 && g.c.batch_stride % line == 0;
  return plan.direct && plan.chunks == 1 && g.k <= plan.block_k && g.beta == 0 && aligned &&
         static_cast<std::size_t>(g.batch * g.m * g.n) * sizeof(float) >= stream_from;
}

/// Executes one matrix product as its GemmPlan requires: reserves the scratch memory, packs the
/// operands, multiplies them block by block, and computes c from the sums.
class GemmRun {
 public:
  GemmRun(const Gemm& g, const GemmKernels& kernels, ThreadPool& pool, GemmWorkspace& workspace)
      : g_(g),
        kernels_(kernels),
        plan_(plan_gemm(g, kernels)),
        format_(*plan_.format),
        stream_(streams(g, plan_)),
        pool_(pool),
        workspace_(workspace) {
    if (plan_.dots) {
      workspace_.reserve(pool_.threads(),
                         static_cast<std::size_t>(padded(g_.m * plan_.task_cols * 4)),
                         static_cast<std::size_t>(padded(g_.batch * g_.m * g_.k * 4)), 0);
      return;
    }
    const std::int64_t panel_units = units(plan_.block_k), bytes = format_.unit_bytes;
    if (!plan_.share_a) a_bytes_ = padded(plan_.panel_rows * panel_units * bytes);
    find_kept();
    if (!plan_.share_b && !kept_)
      b_bytes_ = padded(round_up(plan_.task_cols, format_.nr) * panel_units * bytes);
    // The leading dimension of the buffer for sums is not a power of two, so that its rows are in
    // different sets of the cache.
    ld_sums_ = plan_.task_cols + 16;
    const std::int64_t block = plan_.direct ? 0 : plan_.task_rows * ld_sums_ * 4;
    const std::int64_t total = plan_.chunks > 1 ? finish_rows() * g_.n * 4 : 0;
    const std::int64_t all_units = divide_up(g_.k, plan_.block_k) * panel_units;
    if (plan_.share_b && !kept_)
      shared_b_bytes_ = padded(round_up(plan_.group_cols, format_.nr) * all_units * bytes);
    const std::int64_t shared_a =
        plan_.share_a ? padded(round_up(g_.m, format_.mr) * all_units * bytes) : 0;
    const std::int64_t partial = plan_.chunks > 1 ? plan_.chunks * g_.batch * g_.m * g_.n * 4 : 0;
    workspace_.reserve(
        pool_.threads(),
        static_cast<std::size_t>(a_bytes_ + b_bytes_ + padded(std::max(block, total))),
        static_cast<std::size_t>(shared_b_bytes_ + shared_a),
        static_cast<std::size_t>(padded(partial)));
  }

  void run() {
    if (plan_.dots) {
      run_dots();
      return;
    }
    if (kept_ && !kept_->packed) {
      pack_b_ahead(0, {0, g_.n}, kept_->data);
      kept_->packed = true;
    }
    if (plan_.share_b) {
      for (std::int64_t batch = 0; batch < g_.batch; ++batch) {
        for (std::int64_t j = 0; j < g_.n; j += plan_.group_cols) {
          run_shared(batch, {j, std::min(g_.n, j + plan_.group_cols)});
        }
      }
      return;
    }
    run_private();
    if (plan_.chunks > 1) add_chunks();
  }

 private:
  /// Looks for the right operand B in the cache of packed operands (KeptPanels). A cached B has the
  /// same layout as a B that is packed in advance for all tasks.
  void find_kept() {
    KeptPanels* const all = workspace_.kept();
    if (!all || g_.batch != 1 || g_.m > KeptPanels::most_rows || plan_.b_in_place) return;
    const std::int64_t all_units = divide_up(g_.k, plan_.block_k) * units(plan_.block_k);
    kept_ = all->find({.data = g_.b.data,
                       .type = g_.b.type,
                       .transposed = g_.b.transposed,
                       .ld = g_.b.ld,
                       .n = g_.n,
                       .k = g_.k,
                       .format = &format_},
                      static_cast<std::size_t>(
                          padded(round_up(g_.n, format_.nr) * all_units * format_.unit_bytes)));
  }

  static std::int64_t padded(std::int64_t bytes) { return round_up(bytes, 64) + 64; }
  std::int64_t units(std::int64_t k) const { return plan_.units(k); }
  std::int64_t finish_rows() const { return std::clamp<std::int64_t>((1 << 16) / g_.n, 1, g_.m); }

  PackJob source_a(std::int64_t batch) const {
    return {.data = at(g_.a.data, g_.a.type, batch * g_.a.batch_stride),
            .is_bf16 = g_.a.type == DType::bf16,
            .k_contiguous = !g_.a.transposed,
            .ld = g_.a.ld,
            .first = 0,
            .count = 0,
            .k_first = 0,
            .k_count = 0,
            .out = nullptr};
  }
  PackJob source_b(std::int64_t batch) const {
    return {.data = at(g_.b.data, g_.b.type, batch * g_.b.batch_stride),
            .is_bf16 = g_.b.type == DType::bf16,
            .k_contiguous = g_.b.transposed,
            .ld = g_.b.ld,
            .first = 0,
            .count = 0,
            .k_first = 0,
            .k_count = 0,
            .out = nullptr};
  }

  /// Returns the byte offset of a panel within an operand that is packed for several tasks. The
  /// panel begins at row `index` of A or column `index` of B and belongs to the block of k that
  /// begins at k_first. All blocks of k before this one are full, so their size is known.
  std::int64_t shared_offset(std::int64_t k_first, std::int64_t k_size, std::int64_t padded_width,
                             std::int64_t index) const {
    const std::int64_t before = k_first / plan_.block_k * units(plan_.block_k);
    return (before * padded_width + index * units(k_size)) * format_.unit_bytes;
  }

  /// Multiplies the rows `rows` of A by the columns `cols` of B over the range `ks` of k, one block
  /// of k at a time. The first block computes sums = alpha a b + beta sums. Each later block adds
  /// its alpha a b. If B is packed in advance for several tasks, `group` is the range of its
  /// columns that are packed.
  void multiply(std::int64_t batch, Range rows, Range cols, Range ks, float* sums, std::int64_t ld,
                float beta, int worker, Range group) {
    std::byte* scratch = workspace_.of_worker(worker);
    BlockProduct block{};
    block.ldc = ld;
    block.alpha = g_.alpha;
    block.beta = beta;
    block.stream = stream_;
    for (std::int64_t k = ks.begin; k < ks.end; k += plan_.block_k) {
      const Range part{k, std::min(ks.end, k + plan_.block_k)};
      block.units = units(part.size());
      block.b_panel = format_.nr * block.units;
      block.b_unit = format_.nr;
      if (kept_) {
        block.b =
            kept_->data + shared_offset(k, part.size(), round_up(g_.n, format_.nr), cols.begin);
        multiply_rows(block, batch, rows, cols, part, sums, scratch);
      } else if (plan_.share_b) {
        block.b =
            workspace_.packed() + shared_offset(k, part.size(), round_up(group.size(), format_.nr),
                                                cols.begin - group.begin);
        multiply_rows(block, batch, rows, cols, part, sums, scratch);
      } else {
        // Only full panels of B can be used in place. If the last panel is not full, its columns
        // are packed and padded, because the kernels read whole panels.
        const std::int64_t whole = plan_.b_in_place ? cols.size() / format_.nr * format_.nr : 0;
        if (whole > 0) {
          BlockProduct direct = block;
          direct.b = at(g_.b.data, g_.b.type,
                        batch * g_.b.batch_stride + part.begin * g_.b.ld + cols.begin);
          direct.b_panel = format_.nr;
          direct.b_unit = g_.b.ld;
          multiply_rows(direct, batch, rows, {cols.begin, cols.begin + whole}, part, sums, scratch);
        }
        if (whole < cols.size()) {
          PackJob job = source_b(batch);
          job.first = cols.begin + whole;
          job.count = cols.size() - whole;
          job.k_first = part.begin;
          job.k_count = part.size();
          job.out = scratch + a_bytes_;
          format_.pack_b(job);
          block.b = job.out;
          multiply_rows(block, batch, rows, {job.first, cols.end}, part, sums + whole, scratch);
        }
      }
      block.beta = 1;
    }
  }

  void multiply_rows(BlockProduct block, std::int64_t batch, Range rows, Range cols, Range part,
                     float* sums, std::byte* scratch) {
    for (std::int64_t i = rows.begin; i < rows.end; i += plan_.panel_rows) {
      block.rows = std::min(plan_.panel_rows, rows.end - i);
      if (plan_.a_in_place) {
        const std::int64_t shift =
            g_.a.transposed ? part.begin * g_.a.ld + i : i * g_.a.ld + part.begin;
        const std::int64_t ld = g_.a.ld / format_.k_per_unit;
        block.a = at(g_.a.data, g_.a.type, batch * g_.a.batch_stride + shift);
        block.a_row = g_.a.transposed ? 1 : ld;
        block.a_unit = g_.a.transposed ? ld : 1;
        block.a_panel = format_.mr * block.a_row;
      } else {
        block.a_row = 1;
        block.a_unit = format_.mr;
        block.a_panel = format_.mr * block.units;
        if (plan_.share_a) {
          block.a =
              shared_a() + shared_offset(part.begin, part.size(), round_up(g_.m, format_.mr), i);
        } else {
          pack_a(batch, {i, i + block.rows}, part, scratch);
          block.a = scratch;
        }
      }
      BlockProduct narrow = block;
      for (std::int64_t j = 0; j < cols.size(); j += plan_.block_cols) {
        narrow.cols = std::min(plan_.block_cols, cols.size() - j);
        narrow.b = static_cast<const std::byte*>(block.b) +
                   j / format_.nr * block.b_panel * format_.unit_bytes;
        narrow.c = sums + (i - rows.begin) * block.ldc + j;
        format_.multiply(narrow);
      }
    }
  }

  void pack_a(std::int64_t batch, Range rows, Range ks, std::byte* out) {
    PackJob job = source_a(batch);
    job.first = rows.begin;
    job.count = rows.size();
    job.k_first = ks.begin;
    job.k_count = ks.size();
    job.out = out;
    format_.pack_a(job);
  }

  std::byte* shared_a() { return workspace_.packed() + shared_b_bytes_; }

  /// Applies the epilogue (bias, activation, residual) to the sums of a block and stores them in c.
  void finish(std::int64_t batch, Range rows, Range cols, const float* sums, std::int64_t ld) {
    const Epilogue& e = g_.epilogue;
    const auto corner = [&](const auto& matrix) {
      return matrix.data ? at(matrix.data, matrix.type,
                              batch * matrix.batch_stride + rows.begin * matrix.ld + cols.begin)
                         : nullptr;
    };
    kernels_.epilogue({.rows = rows.size(),
                       .cols = cols.size(),
                       .sums = sums,
                       .ld_sums = ld,
                       .bias = e.bias ? e.bias + cols.begin : nullptr,
                       .has_f = e.f.has_value(),
                       .f = e.f.value_or(Activation::identity),
                       .pre = corner(e.pre),
                       .pre_bf16 = e.pre.type == DType::bf16,
                       .ld_pre = e.pre.ld,
                       .residual = corner(e.residual),
                       .residual_bf16 = e.residual.type == DType::bf16,
                       .ld_residual = e.residual.ld,
                       .at = corner(e.at),
                       .at_bf16 = e.at.type == DType::bf16,
                       .ld_at = e.at.ld,
                       .c = corner(g_.c),
                       .c_bf16 = g_.c.type == DType::bf16,
                       .ldc = g_.c.ld,
                       .beta = g_.beta});
  }

  /// Executes one task: computes the rows `rows` and columns `cols` of c, summed over all of k.
  void make(std::int64_t batch, Range rows, Range cols, int worker, Range group) {
    const Range all{0, g_.k};
    if (plan_.direct) {
      float* c = static_cast<float*>(
          at(g_.c.data, g_.c.type, batch * g_.c.batch_stride + rows.begin * g_.c.ld + cols.begin));
      multiply(batch, rows, cols, all, c, g_.c.ld, g_.beta, worker, group);
      return;
    }
    float* sums = sums_of(worker);
    if (g_.k == 0) std::fill_n(sums, rows.size() * ld_sums_, 0.0f);
    multiply(batch, rows, cols, all, sums, ld_sums_, 0, worker, group);
    finish(batch, rows, cols, sums, ld_sums_);
  }

  float* sums_of(int worker) {
    return reinterpret_cast<float*>(workspace_.of_worker(worker) + a_bytes_ + b_bytes_);
  }

  void run_shared(std::int64_t batch, Range group) {
    pack_ahead(batch, group);
    const std::int64_t across = divide_up(group.size(), plan_.task_cols);
    parallel_for(divide_up(g_.m, plan_.task_rows) * across, [&](std::int64_t task, int worker) {
      const Range cols = piece(task % across, plan_.task_cols, group.size());
      make(batch, piece(task / across, plan_.task_rows, g_.m),
           {group.begin + cols.begin, group.begin + cols.end}, worker, group);
    });
  }

  void pack_ahead(std::int64_t batch, Range group) {
    const std::int64_t k_blocks = divide_up(g_.k, plan_.block_k);
    if (plan_.share_a && group.begin == 0) {
      const std::int64_t step = 4 * format_.mr;
      workspace_.run(pool_, divide_up(g_.m, step) * k_blocks, [&](std::int64_t task, int) {
        const Range rows = piece(task / k_blocks, step, g_.m);
        const Range ks = piece(task % k_blocks, plan_.block_k, g_.k);
        pack_a(batch, rows, ks,
               shared_a() +
                   shared_offset(ks.begin, ks.size(), round_up(g_.m, format_.mr), rows.begin));
      });
    }
    if (!kept_) pack_b_ahead(batch, group, workspace_.packed());
  }

  void pack_b_ahead(std::int64_t batch, Range group, std::byte* out) {
    const std::int64_t k_blocks = divide_up(g_.k, plan_.block_k);
    const std::int64_t step = 2 * format_.nr;
    workspace_.run(pool_, divide_up(group.size(), step) * k_blocks, [&](std::int64_t task, int) {
      const Range cols = piece(task / k_blocks, step, group.size());
      const Range ks = piece(task % k_blocks, plan_.block_k, g_.k);
      PackJob job = source_b(batch);
      job.first = group.begin + cols.begin;
      job.count = cols.size();
      job.k_first = ks.begin;
      job.k_count = ks.size();
      job.out =
          out + shared_offset(ks.begin, ks.size(), round_up(group.size(), format_.nr), cols.begin);
      format_.pack_b(job);
    });
  }

  void run_dots() {
    const bool round = g_.math == Math::bf16;
    float* rows = reinterpret_cast<float*>(workspace_.packed());
    for (std::int64_t batch = 0; batch < g_.batch; ++batch) {
      PackJob job = source_a(batch);
      job.count = g_.m;
      job.k_count = g_.k;
      job.out = rows + batch * g_.m * g_.k;
      kernels_.rows_of_a(job, round);
    }
    const std::int64_t across = divide_up(g_.n, plan_.task_cols);
    workspace_.run(pool_, g_.batch * across, [&](std::int64_t task, int worker) {
      const std::int64_t batch = task / across;
      const Range cols = piece(task % across, plan_.task_cols, g_.n);
      Dots d{.rows = g_.m,
             .cols = cols.size(),
             .k = g_.k,
             .a = rows + batch * g_.m * g_.k,
             .b = at(g_.b.data, g_.b.type, batch * g_.b.batch_stride + cols.begin * g_.b.ld),
             .b_bf16 = g_.b.type == DType::bf16,
             .round = round,
             .ldb = g_.b.ld,
             .c = sums_of(worker),
             .ldc = plan_.task_cols,
             .alpha = g_.alpha,
             .beta = 0};
      if (plan_.direct) {
        d.c = static_cast<float*>(at(g_.c.data, g_.c.type, batch * g_.c.batch_stride + cols.begin));
        d.ldc = g_.c.ld;
        d.beta = g_.beta;
      }
      kernels_.dots(d);
      if (!plan_.direct) finish(batch, {0, g_.m}, cols, d.c, d.ldc);
    });
  }

  template <class Body>
  void parallel_for(std::int64_t tasks, Body&& body) {
    const std::int64_t step = plan_.tasks_at_once;
    workspace_.run(pool_, divide_up(tasks, step), [&](std::int64_t chunk, int worker) {
      const Range range = piece(chunk, step, tasks);
      for (std::int64_t task = range.begin; task < range.end; ++task) body(task, worker);
    });
  }

  void run_private() {
    const std::int64_t across = divide_up(g_.n, plan_.task_cols);
    const std::int64_t blocks = divide_up(g_.m, plan_.task_rows) * across;
    parallel_for(g_.batch * blocks * plan_.chunks, [&](std::int64_t task, int worker) {
      const std::int64_t chunk = task % plan_.chunks, block = task / plan_.chunks;
      const std::int64_t batch = block / blocks, in_batch = block % blocks;
      const Range rows = piece(in_batch / across, plan_.task_rows, g_.m);
      const Range cols = piece(in_batch % across, plan_.task_cols, g_.n);
      if (plan_.chunks == 1) {
        make(batch, rows, cols, worker, {});
      } else {
        float* sums = partial(chunk, batch) + rows.begin * g_.n + cols.begin;
        multiply(batch, rows, cols, piece(chunk, plan_.chunk_k, g_.k), sums, g_.n, 0, worker, {});
      }
    });
  }

  float* partial(std::int64_t chunk, std::int64_t batch) {
    return reinterpret_cast<float*>(workspace_.partial()) +
           (chunk * g_.batch + batch) * g_.m * g_.n;
  }

  void add_chunks() {
    const std::int64_t step = finish_rows(), steps = divide_up(g_.m, step);
    workspace_.run(pool_, g_.batch * steps, [&](std::int64_t task, int worker) {
      const std::int64_t batch = task / steps;
      const Range rows = piece(task % steps, step, g_.m);
      float* sums = sums_of(worker);
      kernels_.sum_parts(partial(0, batch) + rows.begin * g_.n, g_.batch * g_.m * g_.n,
                         plan_.chunks, sums, rows.size() * g_.n);
      finish(batch, rows, {0, g_.n}, sums, g_.n);
    });
  }

  const Gemm& g_;
  const GemmKernels& kernels_;
  const GemmPlan plan_;
  const PanelFormat& format_;
  const bool stream_;
  ThreadPool& pool_;
  GemmWorkspace& workspace_;
  KeptPanels::Panels* kept_ = nullptr;
  std::int64_t a_bytes_ = 0, b_bytes_ = 0, shared_b_bytes_ = 0, ld_sums_ = 0;
};

void check_operand(const char* name, DType type, std::int64_t ld, std::int64_t width) {
  LONGHAND_CHECK(type == DType::f32 || type == DType::bf16, "gemm: ", name,
                 ": expected f32 or bf16, got ", type);
  LONGHAND_CHECK(ld >= width, "gemm: ", name, ": expected a leading dimension of at least ", width,
                 ", got ", ld);
}

}  // namespace

void gemm(const Gemm& g, const GemmKernels& kernels, ThreadPool& pool, GemmWorkspace& workspace) {
  LONGHAND_CHECK(g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0,
                 "gemm: expected m, n, k and batch of at least 0, got ", g.m, ", ", g.n, ", ", g.k,
                 " and ", g.batch);
  check_operand("a", g.a.type, g.a.ld, g.a.transposed ? g.m : g.k);
  check_operand("b", g.b.type, g.b.ld, g.b.transposed ? g.k : g.n);
  check_operand("c", g.c.type, g.c.ld, g.n);
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  GemmRun(g, kernels, pool, workspace).run();
}

void gemm(const Gemm& g, Isa isa, ThreadPool& pool, GemmWorkspace& workspace) {
  gemm(g, kernels_for<GemmKernels>(isa), pool, workspace);
}

}  // namespace longhand::cpu
