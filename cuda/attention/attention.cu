#include "core/contract/attention.h"
#include "cuda/cuda_backend.h"

namespace longhand::cuda {

/// Calls run(backend, op, rule), which the rule's own .cu file defines. If this file is missing,
/// linking fails.
template <class Op, class Rule>
void dispatch(CudaBackend& backend, const Op& op, const Rule& rule) {
  void run(CudaBackend&, const Op&, const Rule&);
  run(backend, op, rule);
}

template <class Op>
void run_rule(CudaBackend& backend, const Op& op) {
  std::visit([&](const auto& rule) { dispatch(backend, op, rule); }, op.rule);
}

void run(CudaBackend& backend, const Attention& op) { run_rule(backend, op); }
void run(CudaBackend& backend, const AttentionBackward& op) { run_rule(backend, op); }
void run(CudaBackend& backend, const AttentionWeights& op) { run_rule(backend, op); }

}  // namespace longhand::cuda
