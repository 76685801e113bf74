#include "core/contract/dropout.h"

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Dropout& op) {
  const Rows x(op.x);
  const Result y(op.y);
  const auto step = static_cast<std::uint32_t>(*op.step.data<std::int32_t>());
  for (std::int64_t i = 0; i < op.x.size(); ++i) {
    const auto block = static_cast<std::uint32_t>(i / 4);
    const auto words = philox(dropout_counter(block, op.index, step), op.key());
    const bool dropped = words[static_cast<std::size_t>(i % 4)] < op.threshold();
    y.put(i, dropped ? 0 : x(i) * op.kept());
  }
}

}  // namespace longhand::reference
