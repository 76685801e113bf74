#include "core/cpu/gemm/panels.h"

namespace longhand::cpu::LONGHAND_ISA {
namespace {

template <bool Round, class T>
[[gnu::always_inline]] inline Vec load_b(const T* from) {
  const Vec x = load(from);
  return Round ? round_to(static_cast<const bf16*>(nullptr), x) : x;
}
template <bool Round, class T>
[[gnu::always_inline]] inline Vec load_b_first(const T* from, int n) {
  const Vec x = load_first(from, n);
  return Round ? round_to(static_cast<const bf16*>(nullptr), x) : x;
}

/// M x N entries of c; every vector of B meets all M rows of A at once.
template <int M, int N, bool Round, class T>
void dot_tile(const Dots& d, const float* a, const T* b, float* c) {
  Vec sums[M][N];
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) sums[i][j] = Vec(0.0);
  }
  std::int64_t k = 0;
  for (; k + lanes <= d.k; k += lanes) {
    Vec row[M];
    for (int i = 0; i < M; ++i) row[i] = load(a + i * d.k + k);
    for (int j = 0; j < N; ++j) {
      const Vec x = load_b<Round>(b + j * d.ldb + k);
      for (int i = 0; i < M; ++i) sums[i][j] = fma(row[i], x, sums[i][j]);
    }
  }
  if (k < d.k) {
    const int n = static_cast<int>(d.k - k);
    for (int j = 0; j < N; ++j) {
      const Vec x = load_b_first<Round>(b + j * d.ldb + k, n);
      for (int i = 0; i < M; ++i) sums[i][j] = fma(load_first(a + i * d.k + k, n), x, sums[i][j]);
    }
  }
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float* to = c + i * d.ldc + j;
      const float value = d.alpha * sum(sums[i][j]);
      *to = d.beta == 0 ? value : value + d.beta * *to;
    }
  }
}

template <int N, bool Round, class T>
void dot_columns(const Dots& d, const T* b, float* c) {
  std::int64_t i = 0;
  for (; i + 4 <= d.rows; i += 4) dot_tile<4, N, Round>(d, d.a + i * d.k, b, c + i * d.ldc);
  for (; i + 2 <= d.rows; i += 2) dot_tile<2, N, Round>(d, d.a + i * d.k, b, c + i * d.ldc);
  if (i < d.rows) dot_tile<1, N, Round>(d, d.a + i * d.k, b, c + i * d.ldc);
}

template <bool Round, class T>
void dots_of(const Dots& d) {
  const T* b = static_cast<const T*>(d.b);
  std::int64_t j = 0;
  for (; j + 4 <= d.cols; j += 4) dot_columns<4, Round>(d, b + j * d.ldb, d.c + j);
  for (; j < d.cols; ++j) dot_columns<1, Round>(d, b + j * d.ldb, d.c + j);
}

}  // namespace

void dots(const Dots& d) {
  if (d.b_bf16) {
    dots_of<false, bf16>(d);
  } else {
    d.round ? dots_of<true, float>(d) : dots_of<false, float>(d);
  }
}

namespace {

template <class T>
void copy_rows(const PackJob& job, bool round, float* out) {
  const T* data = static_cast<const T*>(job.data);
  const auto keep = [&](Vec x) {
    return round ? round_to(static_cast<const bf16*>(nullptr), x) : x;
  };
  for (std::int64_t i = 0; i < job.count; ++i, out += job.k_count) {
    if (!job.k_contiguous) {
      for (std::int64_t k = 0; k < job.k_count; ++k) {
        store_first(out + k, keep(load_first(data + k * job.ld + i, 1)), 1);
      }
      continue;
    }
    const T* row = data + i * job.ld;
    std::int64_t k = 0;
    for (; k + lanes <= job.k_count; k += lanes) store(out + k, keep(load(row + k)));
    const int rest = static_cast<int>(job.k_count - k);
    if (rest > 0) store_first(out + k, keep(load_first(row + k, rest)), rest);
  }
}

}  // namespace

void rows_of_a(const PackJob& job, bool round) {
  float* out = static_cast<float*>(job.out);
  job.is_bf16 ? copy_rows<bf16>(job, round, out) : copy_rows<float>(job, round, out);
}

}  // namespace longhand::cpu::LONGHAND_ISA
