#pragma once

#include <utility>

#include "core/cpu/gemm/panels.h"

/// The innermost loops: a tile of c in registers, one step along k at a time.
namespace longhand::cpu::LONGHAND_ISA {

/// sum + a b on f32 units.
struct PlainStep {
  [[gnu::always_inline]] static FloatLanes apply(FloatLanes a, FloatLanes b, FloatLanes sum) {
    return fma(Vec(a), Vec(b), Vec(sum)).v;
  }
};

#if defined(LONGHAND_HAS_BF16_PAIRS)
/// sum + a0 b0 + a1 b1 on units of two bf16.
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

struct MicroJob {
  const float* a;
  const float* b;
  float* c;
  std::int64_t units, a_row, a_unit, b_unit, ldc;
  int cols;
  float alpha, beta;
  bool stream;
};

/// c[M][cols] = alpha a b + beta c with M rows and (V - 1) * lanes < cols <= V * lanes. Rows: the
/// units of a row of A are contiguous (a_unit = 1), else the rows of a unit (a_row = 1).
template <class Step, int M, int V, bool Rows>
void micro(const MicroJob& job) {
  FloatLanes sum[M][V];
  for (int i = 0; i < M; ++i) {
    for (int v = 0; v < V; ++v) sum[i][v] = FloatLanes{};
  }
  // c is needed at the end: on its way to the cache meanwhile.
  for (int i = 0; i < M && !job.stream; ++i) {
    __builtin_prefetch(job.c + i * job.ldc, 1);
    if (V > 1) __builtin_prefetch(job.c + i * job.ldc + job.cols - 1, 1);
  }
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
      // Rows are reached from every third by one or two strides: few enough pointers for registers.
      const FloatLanes x =
          Rows ? broadcast(group[i / 3] + (i % 3) * a_row + offset) : broadcast(a + i);
      for (int v = 0; v < V; ++v) sum[i][v] = Step::apply(x, row[v], sum[i][v]);
    }
  };
  if constexpr (Rows) {
    const float* group[(M + 2) / 3];
    for (int g = 0; g < (M + 2) / 3; ++g) group[g] = a + 3 * g * a_row;
    for (std::int64_t k = 0; k < job.units; ++k) {
      step(group, 0);
      for (int g = 0; g < (M + 2) / 3; ++g) ++group[g];
    }
  } else {
    for (std::int64_t k = 0; k < job.units; ++k) {
      step(nullptr, 0);
      a += a_unit;
    }
  }

  const Vec alpha(job.alpha), beta(job.beta);
  const int last = job.cols - (V - 1) * lanes;
  if (last == lanes && job.stream) {
    for (int i = 0; i < M; ++i) {
      for (int v = 0; v < V; ++v) stream(job.c + i * job.ldc + v * lanes, alpha * Vec(sum[i][v]));
    }
    return;
  }
  if (last == lanes) {
    for (int i = 0; i < M; ++i) {
      float* c = job.c + i * job.ldc;
      for (int v = 0; v < V; ++v) {
        Vec value = alpha * Vec(sum[i][v]);
        if (job.beta != 0) value = fma(beta, load(c + v * lanes), value);
        store(c + v * lanes, value);
      }
    }
    return;
  }
  for (int i = 0; i < M; ++i) {
    float* c = job.c + i * job.ldc;
    for (int v = 0; v < V; ++v) {
      const int n = v == V - 1 ? last : lanes;
      Vec value = alpha * Vec(sum[i][v]);
      if (job.beta != 0) value = fma(beta, load_first(c + v * lanes, n), value);
      store_first(c + v * lanes, value, n);
    }
  }
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
               .stream = p.stream};
  // A in place comes from wherever it lies: a strip ahead, a share of it with each tile.
  const bool fetch = p.a_row != 1 || p.a_unit != mr;
  const std::int64_t tiles = (p.cols + nr - 1) / nr;
  constexpr std::int64_t line = 64 / sizeof(float);
  const auto fetch_share = [&](const float* next, std::int64_t tile) {
    if constexpr (Rows) {
      for (std::int64_t i = mr * tile / tiles; i < mr * (tile + 1) / tiles; ++i) {
        for (std::int64_t k = 0; k < p.units; k += line) __builtin_prefetch(next + i * p.a_row + k);
      }
    } else {
      for (std::int64_t k = p.units * tile / tiles; k < p.units * (tile + 1) / tiles; ++k) {
        __builtin_prefetch(next + k * p.a_unit + mr - 1);
      }
    }
  };
  // A panel of A stays in the first-level cache while the block of B passes from the second.
  const float* a = static_cast<const float*>(p.a);
  for (std::int64_t i = 0; i < p.rows; i += mr, a += p.a_panel) {
    const int m = p.rows - i < mr ? static_cast<int>(p.rows - i) : mr;
    job.a = a;
    job.b = static_cast<const float*>(p.b);
    for (std::int64_t j = 0; j < p.cols; j += nr, job.b += p.b_panel) {
      job.cols = p.cols - j < nr ? static_cast<int>(p.cols - j) : nr;
      job.c = p.c + i * p.ldc + j;
      if (fetch) fetch_share(a + p.a_panel, j / nr);
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
