#include "core/cpu/cpu_backend.h"

#include "core/error.h"

namespace longhand::cpu {

CpuBackend::CpuBackend(BackendOptions options, Isa isa)
    : reference::ReferenceBackend(options), isa_(isa), threads_(options.threads) {}

void CpuBackend::require_dtype(DType dtype) const {
  LONGHAND_CHECK(dtype != DType::f64, "cpu: expected f32 or bf16, got ", dtype);
}

}  // namespace longhand::cpu

namespace longhand {

std::shared_ptr<Backend> make_cpu_backend(BackendOptions options) {
  return std::make_shared<cpu::CpuBackend>(options, cpu::choose_isa());
}

}  // namespace longhand
