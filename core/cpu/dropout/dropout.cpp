#include "core/contract/dropout.h"

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/dropout/kernels.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Dropout& op) {
  if (!op.y) return;
  const auto step = static_cast<std::uint32_t>(*op.step.data<std::int32_t>());
  const auto counter = dropout_counter(0, op.index, step);
  const DropoutStream stream{.counter = {counter[1], counter[2], counter[3]},
                             .key = {op.key()[0], op.key()[1]},
                             .threshold = op.threshold(),
                             .kept = static_cast<float>(op.kept())};
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& kernels = kernels_for<DropoutKernels<T>>(backend.isa());
    const Store how = store_to(op.y);
    parallel_for(backend.threads(), op.x.size(), grain, [&](std::int64_t begin, std::int64_t end) {
      kernels.dropout(stream, op.x.data<T>(), op.y.tensor.data<T>(), how, begin, end);
    });
  });
}

}  // namespace longhand::cpu
