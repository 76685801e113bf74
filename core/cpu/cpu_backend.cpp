#include "core/cpu/cpu_backend.h"

#include <cstring>

#include "core/error.h"

namespace longhand::cpu {

CpuBackend::CpuBackend(BackendOptions options, Isa isa)
    : Backend("cpu", options, host_memory()),
      isa_(isa),
      threads_(options.threads),
      plain_(options) {}

void CpuBackend::require_dtype(DType dtype) const {
  LONGHAND_CHECK(dtype != DType::f64, "cpu: expected f32 or bf16, got ", dtype);
}

void CpuBackend::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
}

void CpuBackend::download(void* host, const void* device, std::size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

}  // namespace longhand::cpu

namespace longhand {

std::shared_ptr<Backend> make_cpu_backend(BackendOptions options) {
  return std::make_shared<cpu::CpuBackend>(options, cpu::choose_isa());
}

}  // namespace longhand
