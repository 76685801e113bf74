#include "core/contract/rope.h"

#include <cmath>

#include "core/contract/require.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Rope& op) {
  if (op.dims > 0) require_indices(Rope::name, "positions", op.positions, op.table.shape()[0]);
  const Rows x(op.x), table(op.table);
  const Result y(op.y);
  const auto* positions = op.positions.data<std::int32_t>();
  const std::int64_t half = op.dims / 2;

  for (std::int64_t i = 0; i < op.x.rows(); ++i) {
    for (std::int64_t column = 0; column < op.x.columns(); ++column) {
      const std::int64_t from_first = column - op.first_column;
      const bool in_head = from_first >= 0 && from_first < op.heads * op.width;
      if (!in_head || from_first % op.width >= op.dims) y.put(i, column, x(i, column));
    }
    for (std::int64_t h = 0; h < op.heads; ++h) {
      const std::int64_t head = op.first_column + h * op.width;
      for (std::int64_t p = 0; p < half; ++p) {
        const double cos_t = table(positions[i], p);
        const double sin_t = table(positions[i], half + p) * (op.inverse ? -1 : 1);
        const std::int64_t column_u = head + (op.interleaved ? 2 * p : p);
        const std::int64_t column_v = head + (op.interleaved ? 2 * p + 1 : p + half);
        // Reads both entries of the rotated pair before writing y, because y may share x's memory.
        const double u = x(i, column_u), v = x(i, column_v);
        y.put(i, column_u, u * cos_t - v * sin_t);
        y.put(i, column_v, u * sin_t + v * cos_t);
      }
    }
  }
}

void run(ReferenceBackend&, const Rotate& op) {
  const Rows x(op.x), angles(op.angles);
  const Result y(op.y);
  const std::int64_t half = op.width / 2, groups = op.angles.columns() / half;

  for (std::int64_t i = 0; i < op.x.rows(); ++i) {
    for (std::int64_t column = 0; column < op.x.columns(); ++column) {
      const std::int64_t from_first = column - op.first_column;
      if (from_first < 0 || from_first >= op.heads * op.width) y.put(i, column, x(i, column));
    }
    for (std::int64_t h = 0; h < op.heads; ++h) {
      const std::int64_t head = op.first_column + h * op.width, group = h % groups;
      for (std::int64_t p = 0; p < half; ++p) {
        const double t = angles(i, group * half + p) * (op.inverse ? -1 : 1);
        const double u = x(i, head + p), v = x(i, head + half + p);
        y.put(i, head + p, u * std::cos(t) - v * std::sin(t));
        y.put(i, head + half + p, u * std::sin(t) + v * std::cos(t));
      }
    }
  }
}

void run(ReferenceBackend&, const RotateBackward& op) {
  if (!op.dangles) return;
  const Rows y(op.y), dy(op.dy);
  const Result dangles(op.dangles);
  const std::int64_t half = op.width / 2, groups = op.dangles.tensor.columns() / half;

  for (std::int64_t i = 0; i < op.y.rows(); ++i) {
    for (std::int64_t group = 0; group < groups; ++group) {
      for (std::int64_t p = 0; p < half; ++p) {
        double sum = 0;
        for (std::int64_t h = group; h < op.heads; h += groups) {
          const std::int64_t u = op.first_column + h * op.width + p, v = u + half;
          sum += dy(i, v) * y(i, u) - dy(i, u) * y(i, v);
        }
        dangles.put(i, group * half + p, sum);
      }
    }
  }
}

}  // namespace longhand::reference
