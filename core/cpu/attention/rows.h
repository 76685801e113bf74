#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/gemm/plan.h"
#include "core/cpu/loop.h"

/// Operations on single rows, such as dot products. Their speed is limited by memory, not by
/// arithmetic.
namespace longhand::cpu::LONGHAND_ISA::attention {

inline void clear(float* at, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes) store(at + i, Vec(0.0f));
}

/// Divides a block of scratch memory into aligned parts. If `begin` is null, it only counts the
/// floats that the parts require.
struct ScratchParts {
  float* begin;
  std::int64_t floats = 0;

  float* operator()(std::int64_t n) {
    float* const here = begin == nullptr ? nullptr : begin + floats;
    floats += round_up(n, 16);
    return here;
  }
};

/// The dot product of a and b, which have n entries.
template <class A, class B>
float dot(const A* a, const B* b, std::int64_t n) {
  Sums sums;
  for_each_part(n, [&](auto c, auto v, int p) {
    sums.part[p] = fma(v.load(a + c), v.load(b + c), sums.part[p]);
  });
  return sum(sums);
}

/// Stores the SIMD vector x in the row y, beginning at column c. Columns from `width` on are not
/// written. If how.add is true, x is added to y.
template <class T>
[[gnu::always_inline]] inline void put(Vec x, T* y, std::int64_t c, std::int64_t width, Store how) {
  if (width - c >= lanes) {
    if (how.stream) return stream(y + c, x);
    store(y + c, how.add ? x + load(y + c) : x);
  } else {
    const int rest = static_cast<int>(width - c);
    store_first(y + c, how.add ? x + load_first(y + c, rest) : x, rest);
  }
}

/// Prefetches a row that will be read soon. The rows of one head are too far apart for the hardware
/// prefetcher. Long rows are fetched only into the second-level cache, because the first-level
/// cache can have only a few pending requests.
template <class T>
[[gnu::always_inline]] inline void fetch(const HeadRows<T>& x, std::int64_t row,
                                         std::int64_t width) {
  constexpr std::int64_t line = 64 / sizeof(T);
  const auto* const at = x.row(row);
  if (width > 2 * line) {
    for (std::int64_t c = 0; c < width; c += line) __builtin_prefetch(at + c, 0, 2);
  } else {
    for (std::int64_t c = 0; c < width; c += line) __builtin_prefetch(at + c);
  }
}

/// Loads a SIMD vector of the row x, from column c on. Lanes beyond the last column are 0.
template <class T>
[[gnu::always_inline]] inline Vec get(const T* x, std::int64_t c, std::int64_t width) {
  return width - c >= lanes ? load(x + c) : load_first(x + c, static_cast<int>(width - c));
}

/// Computes n dot products, s[r] = x[r] . y.
template <int n, class X, class Y>
void dots(const X* const* x, const Y* y, std::int64_t width, float* s) {
  Sums sums[n];
  for_each_part(width, [&](auto c, auto v, int p) {
    const Vec part = v.load(y + c);
#pragma GCC unroll 4
    for (int r = 0; r < n; ++r) {
      sums[r].part[p] = fma(v.load(x[r] + c), part, sums[r].part[p]);
    }
  });
#pragma GCC unroll 4
  for (int r = 0; r < n; ++r) s[r] = sum(sums[r]);
}

/// The largest Euclidean norm of the rows [begin, end) of x, rounded up by about 0.1%.
template <class T>
float longest_row(const HeadRows<const T>& x, std::int64_t begin, std::int64_t end,
                  std::int64_t width) {
  float most = 0;
  for (std::int64_t j = begin; j < end; ++j) {
    const float square = dot(x.row(j), x.row(j), width);
    most = square > most ? square : most;
  }
  return 1.001f * __builtin_sqrtf(most);
}

/// The smallest entry of the column x in the rows [begin, end), or 0 if x is null.
inline float least_entry(const HeadRows<const float>& x, std::int64_t begin, std::int64_t end) {
  if (!x) return 0;
  float least = *x.row(begin);
  for (std::int64_t j = begin + 1; j < end; ++j) least = *x.row(j) < least ? *x.row(j) : least;
  return least;
}

/// Multiplies all entries of `from` by the factor `times` and stores them in `to`. If `add` is
/// true, the products are added to `to` instead.
template <class T>
void write_rows(const float* from, std::int64_t stride, float times, HeadRows<T> to, bool add,
                std::int64_t rows, std::int64_t width) {
  const Vec factor(times);
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t c = 0; c < width; c += lanes) {
      put(factor * load(from + t * stride + c), to.row(t), c, width, {.add = add});
    }
  }
}

inline float first_lane(Vec a) {
  float all[lanes];
  store(all, a);
  return all[0];
}

}  // namespace longhand::cpu::LONGHAND_ISA::attention
