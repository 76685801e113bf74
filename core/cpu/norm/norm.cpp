#include "core/contract/norm.h"

#include <vector>

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/norm/kernels.h"
#include "core/cpu/reduce/partial_sums.h"

namespace longhand::cpu {
namespace {

/// The forward pass of LayerNorm and RmsNorm. `mean` is empty for RmsNorm.
template <class Op>
void forward(ThreadPool& threads, Isa isa, const Op& op, const Tensor& bias, const Tensor& mean,
             double offset) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<NormKernels<T>>(isa);
    const std::int64_t n = op.x.columns();
    const typename NormKernels<T>::Forward rows{.x = op.x.template data<T>(),
                                                .gain = op.gain.template data<float>(),
                                                .bias = bias ? bias.data<float>() : nullptr,
                                                .offset = static_cast<float>(offset),
                                                .epsilon = static_cast<float>(op.epsilon),
                                                .y = op.y.template data<T>(),
                                                .mean = mean ? mean.data<float>() : nullptr,
                                                .rstd = op.rstd.template data<float>(),
                                                .how = store_to(op.y, n)};
    parallel_for(threads, op.x.rows(), rows_per_chunk(n),
                 [&](std::int64_t begin, std::int64_t end) { k.forward(rows, begin, end, n); });
  });
}

/// The backward pass of LayerNorm and RmsNorm. `mean` and `dbias` are empty for RmsNorm.
template <class Op>
void backward(ThreadPool& threads, Isa isa, const Op& op, const Tensor& mean, double offset,
              const Target& dbias) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<NormKernels<T>>(isa);
    const std::int64_t n = op.x.columns();
    const typename NormKernels<T>::Backward rows{
        .x = op.x.template data<T>(),
        .dy = op.dy.template data<T>(),
        .gain = op.gain.template data<float>(),
        .mean = mean ? mean.data<float>() : nullptr,
        .rstd = op.rstd.template data<float>(),
        .offset = static_cast<float>(offset),
        .dx = op.dx ? op.dx.tensor.template data<T>() : nullptr,
        .how = op.dx ? store_to(op.dx, n) : Store{}};
    const std::int64_t chunks = partial_chunks(op.x.rows());
    PartialSums dgain(op.dgain, chunks, n), bias_sums(dbias, chunks, n);
    const std::int64_t grain_rows = partial_rows(op.x.rows());
    parallel_for(threads, op.x.rows(), grain_rows, [&](std::int64_t begin, std::int64_t end) {
      k.backward(rows, begin, end, n, dgain.part(begin / grain_rows),
                 bias_sums.part(begin / grain_rows));
    });
    dgain.combine(threads, isa, 1);
    bias_sums.combine(threads, isa, 1);
  });
}

}  // namespace

void run(CpuBackend& backend, const LayerNorm& op) {
  forward(backend.threads(), backend.isa(), op, op.bias, op.mean, 0);
}
void run(CpuBackend& backend, const RmsNorm& op) {
  forward(backend.threads(), backend.isa(), op, {}, {}, op.offset);
}
void run(CpuBackend& backend, const LayerNormBackward& op) {
  backward(backend.threads(), backend.isa(), op, op.mean, 0, op.dbias);
}
void run(CpuBackend& backend, const RmsNormBackward& op) {
  backward(backend.threads(), backend.isa(), op, {}, op.offset, {});
}

}  // namespace longhand::cpu
