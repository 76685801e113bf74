#include "core/contract/combine.h"

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Combine& op) {
  if (!op.y) return;
  const Rows a(op.a), b(op.b);
  const Result y(op.y);
  const Shape& shape = op.y.tensor.shape();
  const Steps of_a = repeated(op.a.shape(), shape), of_b = repeated(op.b.shape(), shape);
  const Steps of_y = row_major(shape);
  with_formula(op.f, [&](auto f) {
    for_each_index(shape, [&](const Index& i) { y.put(of_y(i), f.value(a(of_a(i)), b(of_b(i)))); });
  });
}

}  // namespace longhand::reference
