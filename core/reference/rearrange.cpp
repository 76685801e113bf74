#include "core/contract/rearrange.h"

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Rearrange& op) {
  const Rows x(op.x);
  const Result y(op.y);
  for_each_index(op.shape, [&](const Index& i) { y.put(op.to(i), x(op.from(i))); });
}

}  // namespace longhand::reference
