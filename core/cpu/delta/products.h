#pragma once

#include "core/cpu/simd.h"

/// Products of small f32 matrices. Row lengths and numbers of rows are multiples of `unit`, which
/// is a multiple of every instruction set's vector length. Matrices are padded with zeros.
namespace longhand::cpu::LONGHAND_ISA::delta {

inline constexpr std::int64_t unit = 16;
constexpr std::int64_t padded(std::int64_t n) { return (n + unit - 1) / unit * unit; }

struct Matrix {
  float* at;
  std::int64_t stride;
  float* row(std::int64_t i) const { return at + i * stride; }
};

/// A left operand of a matrix product. Its entry (i, k) is at[i * row + k * step].
struct Left {
  const float* at;
  std::int64_t row, step;
};
inline Left plain(const Matrix& a) { return {a.at, a.stride, 1}; }
inline Left transposed(const Matrix& a) { return {a.at, 1, a.stride}; }

/// The part of a product's left operand that may be nonzero: all entries or one triangle. The
/// kernel reads whole tiles, which may extend beyond a triangle. Therefore, entries outside the
/// triangle must be 0 if they are within `unit` of the diagonal.
enum class Part { all, lower, upper };

template <int rows, int vectors>
[[gnu::always_inline]] inline void tile(const Left& a, std::int64_t i, std::int64_t first,
                                        std::int64_t end, const Matrix& b, const Matrix& c,
                                        std::int64_t column, bool add) {
  Vec sums[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      sums[r][v] = add ? load(c.row(i + r) + column + v * lanes) : Vec(0.0f);
    }
  }
  for (std::int64_t k = first; k < end; ++k) {
    const float* const from = b.row(k) + column;
    Vec right[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) right[v] = load(from + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vec left(a.at[(i + r) * a.row + k * a.step]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = fma(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) store(c.row(i + r) + column + v * lanes, sums[r][v]);
  }
}

/// Computes c = a b, or c += a b if `add` is true, for the rows [from, to) and the first `columns`
/// columns of c. The first `depth` columns of a are used. to - from must be a multiple of 8.
inline void product(const Left& a, Part part, const Matrix& b, const Matrix& c, std::int64_t from,
                    std::int64_t to, std::int64_t columns, std::int64_t depth, bool add) {
  constexpr int few = registers == 32 ? 8 : 4, wide = registers == 32 ? 4 : 2;
  const auto strip = [&]<int rows, int vectors>(std::int64_t column) {
    for (std::int64_t i = from; i < to; i += rows) {
      const std::int64_t first = part == Part::upper ? i : 0;
      const std::int64_t end = part == Part::lower && i + rows < depth ? i + rows : depth;
      tile<rows, vectors>(a, i, first, end, b, c, column, add);
    }
  };
  std::int64_t column = 0;
  for (; column + wide * lanes <= columns; column += wide * lanes) {
    strip.template operator()<4, wide>(column);
  }
  for (; column < columns; column += lanes) strip.template operator()<few, 1>(column);
}

/// Transposes a matrix with the given numbers of rows and columns: to_ji = from_ij.
inline void transpose(const Matrix& from, std::int64_t rows, std::int64_t columns,
                      const Matrix& to) {
  for (std::int64_t i = 0; i < rows; i += lanes) {
    for (std::int64_t j = 0; j < columns; j += lanes) {
      Vec square[lanes], shuffled[lanes];
#pragma GCC unroll 16
      for (int r = 0; r < lanes; ++r) square[r] = load(from.row(i + r) + j);
#pragma GCC unroll 4
      for (int round = 1; round < lanes; round *= 2) {
#pragma GCC unroll 8
        for (int r = 0; r < lanes / 2; ++r) {
          join_pairs(square[r], square[r + lanes / 2], shuffled[2 * r], shuffled[2 * r + 1]);
        }
#pragma GCC unroll 16
        for (int r = 0; r < lanes; ++r) square[r] = shuffled[r];
      }
#pragma GCC unroll 16
      for (int r = 0; r < lanes; ++r) store(to.row(j + r) + i, square[r]);
    }
  }
}

/// Multiplies each row i of x by factors[i] and stores the result in `to`, which may be x itself.
inline void scale_rows(const Matrix& x, const float* factors, std::int64_t rows,
                       std::int64_t columns, const Matrix& to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const Vec factor(factors[i]);
    for (std::int64_t c = 0; c < columns; c += lanes) {
      store(to.row(i) + c, factor * load(x.row(i) + c));
    }
  }
}

inline float dot(const float* a, const float* b, std::int64_t n) {
  Sums sums;
  for (std::int64_t c = 0; c < n; c += Sums::count) {
    for (int p = 0; p < Sums::vectors; ++p) {
      const std::int64_t at = c + p * lanes;
      sums.part[p] = fma(load(a + at), load(b + at), sums.part[p]);
    }
  }
  return sum(sums);
}

}  // namespace longhand::cpu::LONGHAND_ISA::delta
