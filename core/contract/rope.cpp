#include "core/contract/rope.h"

#include <cmath>
#include <vector>

#include "core/contract/require.h"

namespace longhand {

Tensor rope_table(Backend& backend, DType dtype, std::int64_t longest,
                  std::span<const double> frequencies) {
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

void check(const Rope& op) {
  Arguments are(Rope::name);
  are.floats("x", op.x, 1);
  are.in("positions", op.positions, Shape{op.x.rows()}, DType::i32);
  are.require(op.width >= 0 && op.heads >= 0 && op.first_column >= 0 &&
                  op.first_column + op.heads * op.width <= op.x.columns(),
              "heads", "expected columns of x ", op.x.shape(), ", got ", op.heads, " heads of ",
              op.width, " columns from ", op.first_column);
  are.require(op.dims >= 0 && op.dims % 2 == 0 && op.dims <= op.width, "dims",
              "expected an even number up to ", op.width, ", got ", op.dims);
  const std::int64_t longest = op.table && op.table.shape().rank() == 2 ? op.table.shape()[0] : 0;
  are.in("table", op.table, Shape{longest, op.dims}, master_type(op.x.dtype()));
  are.out("y", op.y, op.x.shape(), op.x.dtype(), {"x"});
}

}  // namespace longhand
