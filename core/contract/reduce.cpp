#include "core/contract/reduce.h"

#include <array>

#include "core/contract/require.h"

namespace longhand {

std::string_view name_of(Reduction reduction) {
  constexpr std::array<std::string_view, 5> names{"sum", "largest", "smallest", "square_sum",
                                                  "nonfinite"};
  return names[static_cast<std::size_t>(reduction)];
}

void check(const ColumnSum& op) {
  Arguments are(ColumnSum::name);
  are.floats("x", op.x, 1);
  are.out("y", op.y, Shape{op.x.columns()}, master_type(op.x.dtype()));
}

void check(const Reduce& op) {
  Arguments are(Reduce::name);
  are.floats("x", op.x, 1);
  are.out("y", op.y, Shape{op.x.rows()}, master_type(op.x.dtype()));
}

}  // namespace longhand
