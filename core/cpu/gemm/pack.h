#pragma once

#include <utility>

#include "core/cpu/gemm/panels.h"

/// Functions that copy operands of matrix products into panels (see kernels.h). They also
/// transpose, convert and pad with zeros.
namespace longhand::cpu::LONGHAND_ISA {

/// PlainUnits, RoundedUnits and PairedUnits convert elements of an operand to units. A unit is one
/// float, or two bf16 values that are adjacent along k (kernels.h). `per_unit` is the number of
/// values in a unit. Each class has two functions, which return a vector of units. If n is too
/// small to fill the vector, the remaining units are 0.
///
/// along(from, n) returns units of one row. `from` points to n elements of the row that are
/// adjacent along k.
///
/// across(from, next, n) returns one unit of each of n rows. `from` points to the elements of the
/// rows at one index of k. If per_unit is 2, `next` points to their elements at the next index of
/// k, or is null if there is no next index.
struct PlainUnits {
  static constexpr int per_unit = 1;
  template <class T>
  [[gnu::always_inline]] static FloatLanes along(const T* from, std::int64_t n) {
    return (n >= lanes ? load(from) : load_first(from, static_cast<int>(n))).v;
  }
  template <class T>
  [[gnu::always_inline]] static FloatLanes across(const T* from, const T*, int n) {
    return (n >= lanes ? load(from) : load_first(from, n)).v;
  }
};

struct RoundedUnits {
  static constexpr int per_unit = 1;
  template <class T>
  [[gnu::always_inline]] static FloatLanes along(const T* from, std::int64_t n) {
    return round_to(static_cast<const bf16*>(nullptr), Vec(PlainUnits::along(from, n))).v;
  }
  template <class T>
  [[gnu::always_inline]] static FloatLanes across(const T* from, const T*, int n) {
    return round_to(static_cast<const bf16*>(nullptr), Vec(PlainUnits::across(from, from, n))).v;
  }
};

/// One step of a transpose of lanes x lanes values. In each square with side 2 * Distance,
/// exchanges the two quarters that are not on the diagonal.
template <int Distance, int... I>
[[gnu::always_inline]] inline void swap_quarters(FloatLanes (&rows)[lanes],
                                                 std::integer_sequence<int, I...>) {
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    if (i & Distance) continue;
    const FloatLanes a = rows[i], b = rows[i + Distance];
    rows[i] = __builtin_shufflevector(a, b, (I & Distance ? lanes + I - Distance : I)...);
    rows[i + Distance] =
        __builtin_shufflevector(a, b, (I & Distance ? lanes + I : I + Distance)...);
  }
}
[[gnu::always_inline]] inline void transpose(FloatLanes (&rows)[lanes]) {
  constexpr auto all = std::make_integer_sequence<int, lanes>();
  if constexpr (lanes >= 16) swap_quarters<8>(rows, all);
  if constexpr (lanes >= 8) swap_quarters<4>(rows, all);
  swap_quarters<2>(rows, all);
  swap_quarters<1>(rows, all);
}

/// Stores the first N lanes of v.
template <int N>
[[gnu::always_inline]] inline void store_lanes(float* to, FloatLanes v) {
  if constexpr (N >= lanes) {
    store(to, Vec(v));
  } else if constexpr (lanes == 16) {
    store_first(to, Vec(v), N);
  } else {
    __builtin_memcpy(to, &v, N * sizeof(float));
  }
}

/// Transposes a part of a panel with W rows. The part has `Rows` rows. Unit u of its row i is
/// stored in out[u W + i]. Rows and units per row are at most `lanes`. There are two cases:
/// - Whole is true: the operand has all of these rows, and `lanes` units are transposed in each of
///   them. The arguments rows_left, k_left and `steps` are not used.
/// - Whole is false: `steps` units are transposed in each row. The operand may have fewer rows
///   (rows_left) and fewer elements per row (k_left). Whatever it lacks becomes 0.
///
/// A panel with W < lanes is narrower than a vector. If Whole is true, full vectors are stored
/// nevertheless. The entries of a vector beyond the panel are overwritten by the next vector.
template <class Units, int W, int Rows, bool Whole, class T>
[[gnu::always_inline]] inline void turn(const T* source, std::int64_t ld, std::int64_t rows_left,
                                        std::int64_t k_left, int steps, float* out) {
  FloatLanes rows[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    if constexpr (Whole) {
      rows[i] = i < Rows ? Units::along(source + i * ld, lanes * Units::per_unit) : FloatLanes{};
    } else {
      rows[i] = i < Rows && i < rows_left ? Units::along(source + i * ld, k_left) : FloatLanes{};
    }
  }
  transpose(rows);
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i, out += W) {
    if (!Whole && i >= steps) break;
    Whole&& W < lanes ? store(out, Vec(rows[i])) : store_lanes<Rows>(out, rows[i]);
  }
}

/// Packs panels of W rows of A, or of W columns of B, that are contiguous along k in the source.
template <class Units, int W, class T>
void pack_along(const PackJob& job, float* out) {
  const T* source = static_cast<const T*>(job.data) + job.first * job.ld + job.k_first;
  constexpr std::int64_t per_vector = lanes * Units::per_unit;
  constexpr int tail = W % lanes == 0 ? lanes : W % lanes;
  const std::int64_t units = (job.k_count + Units::per_unit - 1) / Units::per_unit;
  for (std::int64_t panel = 0; panel < job.count; panel += W) {
    const T* row = source + panel * job.ld;
    const std::int64_t left = job.count - panel;
    // The first `reach` indices of k may be packed with stores of full vectors. If a panel is
    // narrower than a vector, such a store also writes into the place of the next index. The last
    // index is then excluded, because its store would write beyond the panel.
    const std::int64_t reach = W < lanes ? job.k_count - 1 : job.k_count;
    const std::int64_t whole = left >= W ? reach / per_vector * lanes : 0;
    std::int64_t u = 0;
    for (; u < whole; u += lanes) {
      const T* from = row + u * Units::per_unit;
#pragma GCC unroll 4
      for (int w = 0; w < W; w += lanes) {
        float* to = out + u * W + w;
        w + lanes <= W ? turn<Units, W, lanes, true>(from + w * job.ld, job.ld, 0, 0, 0, to)
                       : turn<Units, W, tail, true>(from + w * job.ld, job.ld, 0, 0, 0, to);
      }
    }
    for (; u < units; u += lanes) {
      const std::int64_t k = u * Units::per_unit;
      const int steps = units - u < lanes ? static_cast<int>(units - u) : lanes;
      for (int w = 0; w < W; w += lanes) {
        const T* from = row + w * job.ld + k;
        float* to = out + u * W + w;
        const std::int64_t k_left = job.k_count - k;
        w + lanes <= W ? turn<Units, W, lanes, false>(from, job.ld, left - w, k_left, steps, to)
                       : turn<Units, W, tail, false>(from, job.ld, left - w, k_left, steps, to);
      }
    }
    out += units * W;
  }
}

/// Packs panels of W rows of A, or of W columns of B, from a source in which the elements of
/// neighbouring rows or columns at the same index of k are contiguous.
template <class Units, int W, class T>
void pack_across(const PackJob& job, float* out) {
  const T* source = static_cast<const T*>(job.data) + job.k_first * job.ld + job.first;
  const std::int64_t units = (job.k_count + Units::per_unit - 1) / Units::per_unit;
  constexpr int tail = W % lanes == 0 ? lanes : W % lanes;
  // Prefetch distance in steps along k. Each step may access a new page of memory.
  constexpr std::int64_t ahead = 8;
  for (std::int64_t u = 0; u < units; ++u) {
    const std::int64_t k = u * Units::per_unit;
    const T* row = source + k * job.ld;
    const T* next = k + 1 < job.k_count ? row + job.ld : nullptr;
    if (k + (ahead + 1) * Units::per_unit <= job.k_count) {
      const T* later = row + ahead * Units::per_unit * job.ld;
      for (std::int64_t i = 0; i < job.count; i += 64 / static_cast<int>(sizeof(T))) {
        __builtin_prefetch(later + i);
      }
    }
    float* to = out + u * W;
    std::int64_t i = 0;
    for (; i + W <= job.count; i += W, to += units * W) {
#pragma GCC unroll 8
      for (int w = 0; w < W; w += lanes) {
        const bool whole = w + lanes <= W;
        // A store of a full vector may write into the place of the next unit, because that unit is
        // stored later. Only the last unit along k requires a store of fewer lanes.
        const int n = whole || i + w + lanes <= job.count ? lanes : tail;
        const FloatLanes v = Units::across(row + i + w, next ? next + i + w : nullptr, n);
        whole || u + 1 < units ? store(to + w, Vec(v)) : store_lanes<tail>(to + w, v);
      }
    }
    if (i < job.count) {
      for (int w = 0; w < W; w += lanes) {
        const std::int64_t left = job.count - i - w;
        const int n = left < 0 ? 0 : left < lanes ? static_cast<int>(left) : lanes;
        const FloatLanes v =
            n == 0 ? FloatLanes{} : Units::across(row + i + w, next ? next + i + w : nullptr, n);
        w + lanes <= W ? store(to + w, Vec(v)) : store_lanes<tail>(to + w, v);
      }
    }
  }
}

template <class Units, int W>
void pack_panels(const PackJob& job) {
  float* out = static_cast<float*>(job.out);
  if (job.is_bf16) {
    job.k_contiguous ? pack_along<Units, W, bf16>(job, out) : pack_across<Units, W, bf16>(job, out);
  } else {
    job.k_contiguous ? pack_along<Units, W, float>(job, out)
                     : pack_across<Units, W, float>(job, out);
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA
