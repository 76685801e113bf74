#include "core/contract/rope.h"

#include <cmath>
#include <vector>

#include "core/contract/require.h"

namespace longhand {

Tensor rope_table(Backend& backend, DType dtype, std::int64_t longest,
                  std::span<const double> frequencies) {
  constexpr std::int64_t most = std::int64_t{1} << 31;  // number of positions that fit into i32
  LONGHAND_CHECK(longest >= 0 && longest <= most, "rope: expected 0 to 2^31 positions, got ",
                 longest);
  const std::size_t half = frequencies.size();
  std::vector<double> table;
  table.reserve(static_cast<std::size_t>(longest) * 2 * half);
  for (std::int64_t position = 0; position < longest; ++position) {
    const auto t = static_cast<double>(position);
    for (const double frequency : frequencies) table.push_back(std::cos(t * frequency));
    for (const double frequency : frequencies) table.push_back(std::sin(t * frequency));
  }
  return Tensor::from(backend, Shape{longest, static_cast<std::int64_t>(2 * half)}, dtype, table);
}

namespace {

void check_heads(const Arguments& are, const Tensor& x, std::int64_t first_column,
                 std::int64_t heads, std::int64_t width) {
  const bool starts = width >= 0 && heads >= 0 && first_column >= 0 && first_column <= x.columns();
  are.require(starts && (heads == 0 || width <= (x.columns() - first_column) / heads), "heads",
              "expected heads that end within the columns of x, whose shape is ", x.shape(),
              ", got ", heads, " heads of ", width, " columns each, the first from column ",
              first_column);
}

/// Computes the number of groups of heads from the columns of `angles` and checks that it divides
/// `heads`. Returns the number of columns that `angles` must have: width / 2 for each group.
std::int64_t columns_of_angles(const Arguments& are, const Tensor& angles, std::int64_t heads,
                               std::int64_t width) {
  are.require(width > 0 && width % 2 == 0, "width", "expected an even number, got ", width);
  const std::int64_t groups = angles ? angles.columns() / (width / 2) : 0;
  are.require(groups > 0 && heads % groups == 0, "angles", "expected G * ", width / 2,
              " columns, where G, the number of groups of heads, divides ", heads,
              ", the number of heads, got the shape ", angles ? angles.shape() : Shape());
  return groups * (width / 2);
}

}  // namespace

void check(const Rope& op) {
  Arguments are(Rope::name);
  are.floats("x", op.x, 1);
  are.in("positions", op.positions, Shape{op.x.rows()}, DType::i32);
  check_heads(are, op.x, op.first_column, op.heads, op.width);
  are.require(op.dims >= 0 && op.dims % 2 == 0 && op.dims <= op.width, "dims",
              "expected an even number up to ", op.width, ", got ", op.dims);
  const std::int64_t longest = op.table && op.table.shape().rank() == 2 ? op.table.shape()[0] : 0;
  are.in("table", op.table, Shape{longest, op.dims}, master_type(op.x.dtype()));
  are.out("y", op.y, op.x.shape(), op.x.dtype(), {"x"});
}

void check(const Rotate& op) {
  Arguments are(Rotate::name);
  are.floats("x", op.x, 1);
  check_heads(are, op.x, op.first_column, op.heads, op.width);
  are.in("angles", op.angles,
         Shape{op.x.rows(), columns_of_angles(are, op.angles, op.heads, op.width)},
         master_type(op.x.dtype()));
  are.out("y", op.y, op.x.shape(), op.x.dtype(), {"x"});
}

void check(const RotateBackward& op) {
  Arguments are(RotateBackward::name);
  are.floats("y", op.y, 1);
  are.in("dy", op.dy, op.y.shape(), op.y.dtype());
  check_heads(are, op.y, op.first_column, op.heads, op.width);
  if (!op.dangles) return;
  are.out("dangles", op.dangles,
          Shape{op.y.rows(), columns_of_angles(are, op.dangles.tensor, op.heads, op.width)},
          master_type(op.y.dtype()));
}

}  // namespace longhand
