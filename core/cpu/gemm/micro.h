#pragma once

#include <utility>

#include "core/cpu/gemm/panels.h"

/// The innermost loops of matrix products. They compute a tile of the result c in registers, with
/// one step along k at a time.
namespace longhand::cpu::LONGHAND_ISA {

/// One step along k with operands in f32: apply() returns sum + a b in each lane.
struct PlainStep {
  [[gnu::always_inline]] static FloatLanes apply(FloatLanes a, FloatLanes b, FloatLanes sum) {
    return fma(Vec(a), Vec(b), Vec(sum)).v;
  }
};

#if defined(LONGHAND_HAS_BF16_PAIRS)
/// One step along k with two bf16 values, 0 and 1, in each lane of the operands: apply() returns
/// sum + a_0 b_0 + a_1 b_1 in each lane.
struct PairStep {
  [[gnu::always_inline]] static FloatLanes apply(FloatLanes a, FloatLanes b, FloatLanes sum) {
    return reinterpret_cast<FloatLanes>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum),
                                                         reinterpret_cast<__m512bh>(a),
                                                         reinterpret_cast<__m512bh>(b)));
  }
};
#endif

[[gnu::always_inline]] inline FloatLanes broadcast(const float* from) {
  float x;
  __builtin_memcpy(&x, from, sizeof x);
  return x - FloatLanes{};
}

/// Cache lines that are prefetched during the steps along k, one line per step. There are `passes`
/// passes. Each pass prefetches `count` lines that are `stride` floats apart. After a pass, `from`
/// advances by `next` floats.
struct Ahead {
  const float* from;
  std::int64_t stride, next, count, passes;
};

struct MicroJob {
  const float* a;
  const float* b;
  float* c;
  std::int64_t units, a_row, a_unit, b_unit, ldc;
  int cols;
  float alpha, beta;
  bool stream;
  Ahead ahead;  // cache lines to prefetch, which contain later rows of A
};

/// Computes c = alpha a b + beta c for a tile of M rows and job.cols columns of c. The columns fill
/// V vectors, of which only the last may be partly empty. A unit is one f32 value or two bf16
/// values that are adjacent along k. If Rows is true, the next unit in memory is the next unit of
/// the same row of A (a_unit = 1). Otherwise, it is the unit of the next row of A at the same k
/// (a_row = 1).
template <class Step, int M, int V, bool Rows>
void micro(const MicroJob& job) {
  // The loops are fully unrolled, because indexing the accumulators at run time would spill all of
  // them to memory.
  const auto each = [](auto body) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) body(i, v);
    }
  };
  FloatLanes sum[M][V];
  each([&](int i, int v) __attribute__((always_inline)) { sum[i][v] = FloatLanes{}; });
  const float* a = job.a;
  const float* b = job.b;
  const std::int64_t a_row = job.a_row, a_unit = job.a_unit, b_unit = job.b_unit;
  const auto step = [&](const float* const* group, std::int64_t offset)
      __attribute__((always_inline)) {
    FloatLanes row[V];
    for (int v = 0; v < V; ++v) row[v] = load_raw<FloatLanes>(b + v * lanes);
    b += b_unit;
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      // Only every third row of A has a pointer. The two rows after it are addressed relative to
      // this pointer. In this way, all pointers fit into registers.
      const FloatLanes x =
          Rows ? broadcast(group[i / 3] + (i % 3) * a_row + offset) : broadcast(a + i);
      for (int v = 0; v < V; ++v) sum[i][v] = Step::apply(x, row[v], sum[i][v]);
    }
  };
  const float* group[(M + 2) / 3];
  for (int g = 0; g < (M + 2) / 3; ++g) group[g] = a + 3 * g * a_row;
  std::int64_t left = job.units;
  const auto steps = [&](const float* line, std::int64_t stride, std::int64_t count)
      __attribute__((always_inline)) {
    count = count < left ? count : left;
    left -= count;
    for (; count > 0; --count) {
      __builtin_prefetch(line);
      line += stride;
      step(group, 0);
      if constexpr (Rows) {
        for (int g = 0; g < (M + 2) / 3; ++g) ++group[g];
      } else {
        a += a_unit;
      }
    }
  };
  // The steps along k first prefetch the tile of c, which is needed at the end, and then the next
  // rows of A (`ahead`). Each step prefetches only one cache line. If more requests were
  // outstanding than the core supports, the loads for this tile would be delayed.
  Ahead ahead = job.ahead;
  for (int pass = job.stream ? V : 0; left > 0; ++pass) {
    if (pass < V) {
      steps(job.c + (pass == 0 ? 0 : job.cols - 1), job.ldc, M);
    } else if (ahead.passes > 0) {
      steps(ahead.from, ahead.stride, ahead.count);
      ahead.from += ahead.next;
      --ahead.passes;
    } else {
      steps(b, 0, left);
    }
  }

  if (job.alpha != 1) {
    const Vec alpha(job.alpha);
    each([&](int i, int v)
             __attribute__((always_inline)) { sum[i][v] = (alpha * Vec(sum[i][v])).v; });
  }
  const int last = job.cols - (V - 1) * lanes;
  const auto c = [&](int i, int v) __attribute__((always_inline)) {
    return job.c + i * job.ldc + v * lanes;
  };
  if (last < lanes) {
    const Vec beta(job.beta);
    each([&](int i, int v) __attribute__((always_inline)) {
      const int n = v == V - 1 ? last : lanes;
      Vec value(sum[i][v]);
      if (job.beta != 0) value = fma(beta, load_first(c(i, v), n), value);
      store_first(c(i, v), value, n);
    });
    return;
  }
  if (job.stream) {
    each([&](int i, int v) __attribute__((always_inline)) { stream(c(i, v), Vec(sum[i][v])); });
    return;
  }
  if (job.beta != 0) {
    const Vec beta(job.beta);
    each([&](int i, int v) __attribute__((always_inline)) {
      sum[i][v] = fma(beta, load(c(i, v)), Vec(sum[i][v])).v;
    });
  }
  each([&](int i, int v) __attribute__((always_inline)) { store(c(i, v), Vec(sum[i][v])); });
}

using Micro = void (*)(const MicroJob&);
struct MicroTable {
  Micro rows[mr];
};

template <class Step, int V, bool Rows, int... M>
constexpr MicroTable micro_table(std::integer_sequence<int, M...>) {
  return MicroTable{{micro<Step, M + 1, V, Rows>...}};
}

template <class Step, bool Rows>
void multiply_layout(const BlockProduct& p) {
  static constexpr auto rows = std::make_integer_sequence<int, mr>();
  static constexpr auto narrow = micro_table<Step, 1, Rows>(rows);
  static constexpr auto wide = micro_table<Step, 2, Rows>(rows);
  MicroJob job{.a = nullptr,
               .b = nullptr,
               .c = nullptr,
               .units = p.units,
               .a_row = p.a_row,
               .a_unit = p.a_unit,
               .b_unit = p.b_unit,
               .ldc = p.ldc,
               .cols = nr,
               .alpha = p.alpha,
               .beta = p.beta,
               .stream = p.stream,
               .ahead = {}};
  // If A is used in place, its panels are not contiguous in memory. Each tile of c then prefetches
  // a part of the next panel of A.
  const bool fetch = p.a_row != 1 || p.a_unit != mr;
  const std::int64_t tiles = (p.cols + nr - 1) / nr;
  constexpr std::int64_t line = 64 / sizeof(float);
  const auto share = [&](const float* next, std::int64_t tile) -> Ahead {
    const std::int64_t all = Rows ? mr : p.units;
    const std::int64_t first = all * tile / tiles, count = all * (tile + 1) / tiles - first;
    if (Rows) return {next + first * p.a_row, p.a_row, line, count, (p.units + line - 1) / line};
    return {next + first * p.a_unit + mr - 1, p.a_unit, 0, count, 1};
  };
  // A panel of A remains in the first-level cache while the block of B is read from the
  // second-level cache.
  const float* a = static_cast<const float*>(p.a);
  for (std::int64_t i = 0; i < p.rows; i += mr, a += p.a_panel) {
    const int m = p.rows - i < mr ? static_cast<int>(p.rows - i) : mr;
    job.a = a;
    job.b = static_cast<const float*>(p.b);
    for (std::int64_t j = 0; j < p.cols; j += nr, job.b += p.b_panel) {
      job.cols = p.cols - j < nr ? static_cast<int>(p.cols - j) : nr;
      job.c = p.c + i * p.ldc + j;
      if (fetch) job.ahead = share(a + p.a_panel, j / nr);
      (job.cols > lanes ? wide : narrow).rows[m - 1](job);
    }
  }
  if (p.stream) stream_fence();
}

template <class Step>
void multiply(const BlockProduct& p) {
  p.a_row == 1 ? multiply_layout<Step, false>(p) : multiply_layout<Step, true>(p);
}

}  // namespace longhand::cpu::LONGHAND_ISA
