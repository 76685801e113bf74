#include <algorithm>

#include "core/cpu/gemm/panels.h"
#include "core/cpu/loop.h"

namespace longhand::cpu::LONGHAND_ISA {
namespace {

template <bool Round, class Lanes, class T>
[[gnu::always_inline]] inline Vec load_b(Lanes v, const T* from) {
  const Vec x = v.load(from);
  return Round ? round_to(static_cast<const bf16*>(nullptr), x) : x;
}

/// Prefetch distance, in bytes, of the right operand B. Near the end of a column, this prefetches
/// the start of the next column, which the hardware prefetcher would fetch too late.
constexpr std::int64_t ahead = 1024;
/// Number of vectors that accumulate one dot product. Each vector contains separate partial sums,
/// which hides the latency of additions.
constexpr int partial_sums = 4 * Sums::vectors;
/// Number of rows of A that are processed at a time. The sums of more rows would not fit into the
/// registers.
constexpr int rows_at_once = Sums::vectors == 1 ? 2 : 1;

/// Computes M entries of a column of c: dot products of M rows of A with one column of B. The order
/// of summation does not depend on M.
template <int M, bool Round, class T>
void dot_column(const Dots& d, const float* a, const T* b, float* c) {
  constexpr std::int64_t step = partial_sums * lanes, step_bytes = step * sizeof(T);
  Vec sums[M][partial_sums];
  for (auto& row : sums) {
    for (Vec& part : row) part = Vec(0.0);
  }
  std::int64_t k = 0;
  for (; k + step <= d.k; k += step) {
    for (std::int64_t byte = 0; byte < step_bytes; byte += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(b + k) + ahead + byte);
    }
    for (int p = 0; p < partial_sums; ++p) {
      const Vec x = load_b<Round>(Whole{}, b + k + p * lanes);
      for (int i = 0; i < M; ++i) {
        sums[i][p] = fma(load(a + i * d.k + k + p * lanes), x, sums[i][p]);
      }
    }
  }
  for_each_part(d.k - k, [&](auto at, auto v, int p) {
    const Vec x = load_b<Round>(v, b + k + at);
    for (int i = 0; i < M; ++i) {
      sums[i][p] = fma(v.load(a + i * d.k + k + at), x, sums[i][p]);
    }
  });
  for (int i = 0; i < M; ++i) {
    float* to = c + i * d.ldc;
    Sums whole;
    for (int p = 0; p < Sums::vectors; ++p) {
      const auto at = [&](int group) { return sums[i][group * Sums::vectors + p]; };
      whole.part[p] = (at(0) + at(1)) + (at(2) + at(3));
    }
    const float value = d.alpha * sum(whole);
    *to = d.beta == 0 ? value : value + d.beta * *to;
  }
}

template <bool Round, class T>
void dots_of(const Dots& d) {
  const T* b = static_cast<const T*>(d.b);
  for (std::int64_t j = 0; j < d.cols; ++j, b += d.ldb) {
    // One column of B is multiplied by all rows of A. Only the first rows have to wait for the
    // column; for later rows, it is in the first-level cache.
    std::int64_t i = 0;
    for (; i + rows_at_once <= d.rows; i += rows_at_once) {
      dot_column<rows_at_once, Round>(d, d.a + i * d.k, b, d.c + i * d.ldc + j);
    }
    if (i < d.rows) dot_column<1, Round>(d, d.a + i * d.k, b, d.c + i * d.ldc + j);
  }
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
