#include "core/contract/softmax.h"

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/softmax/kernels.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Softmax& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<SoftmaxKernels<T>>(backend.isa());
    const std::int64_t n = op.x.columns();
    const std::int64_t t = op.causal ? op.x.shape()[-2] : 0;
    // With a causal mask, non-temporal stores are not used, because the zeros behind the visible
    // entries of a row may begin at an unaligned address.
    const Store how = op.causal ? Store{} : store_to(op.y, n);
    const T* x = op.x.data<T>();
    T* y = op.y.data<T>();
    parallel_for(
        backend.threads(), op.x.rows(), rows_per_chunk(n),
        [&](std::int64_t begin, std::int64_t end) { k.forward(x, y, how, begin, end, n, t); });
  });
}

void run(CpuBackend& backend, const SoftmaxBackward& op) {
  if (!op.dx) return;
  visit_activation(op.y.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<SoftmaxKernels<T>>(backend.isa());
    const std::int64_t n = op.y.columns();
    const Store how = store_to(op.dx, n);
    const T *y = op.y.data<T>(), *dy = op.dy.data<T>();
    T* dx = op.dx.tensor.data<T>();
    parallel_for(backend.threads(), op.y.rows(), rows_per_chunk(n),
                 [&](std::int64_t begin, std::int64_t end) {
                   k.backward(y + begin * n, dy + begin * n, dx + begin * n, how, end - begin, n);
                 });
  });
}

}  // namespace longhand::cpu
