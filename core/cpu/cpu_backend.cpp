#include "core/cpu/cpu_backend.h"

#include <cstring>

#include "core/error.h"
#include "core/forwarding.h"

namespace longhand::cpu {

CpuBackend::CpuBackend(BackendOptions options, Isa isa)
    : Backend("cpu", options, host_memory()),
      isa_(isa),
      threads_(options.threads),
      kept_panels_(memory()),
      gemm_workspace_(&kept_panels_),
      plain_(make_reference_backend(options)) {}

void CpuBackend::require_dtype(DType dtype) const {
  LONGHAND_CHECK(dtype != DType::f64, "cpu: expected f32 or bf16, got ", dtype);
}

void CpuBackend::upload(void* device, const void* host, std::size_t bytes) {
  kept_panels_.forget(device, bytes);
  if (bytes > 0) std::memcpy(device, host, bytes);
}

void CpuBackend::download(void* host, const void* device, std::size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

void CpuBackend::steady(const std::vector<Tensor>& values) {
  std::vector<KeptPanels::Bytes> bytes;
  for (const Tensor& value : values) {
    bytes.emplace_back(static_cast<const std::byte*>(value.address()), value.bytes());
  }
  kept_panels_.begin(std::move(bytes));
}

/// Discards the cached packed copies (KeptPanels) of the tensors that an operation overwrites.
template <class Op>
void forget_panels(CpuBackend& backend, const Op& op) {
  const auto forget = [&](const Tensor& x) {
    if (x) backend.kept_panels().forget(x.address(), x.bytes());
  };
  if constexpr (requires { forget(op.y); }) forget(op.y);
  if constexpr (requires { forget(op.c); }) forget(op.c);
  if constexpr (requires { op.parameters.size(); }) {
    for (const Tensor& x : op.parameters) forget(x);
  }
}

/// Executes the operation `op` by calling run(backend, op). The source file for each kind of
/// operation defines this function. If a definition is missing, linking fails.
template <class Op>
void dispatch(CpuBackend& backend, const Op& op) {
  void run(CpuBackend&, const Op&);
  forget_panels(backend, op);
  run(backend, op);
}

}  // namespace longhand::cpu

namespace longhand {

std::shared_ptr<Backend> make_cpu_backend(BackendOptions options, cpu::Isa isa) {
  if (options.math == Math::portable && isa == cpu::Isa::portable) isa = cpu::Isa::fused;
  std::string_view reason;
  LONGHAND_CHECK(cpu::supports(isa, &reason), "cpu: instruction set ", name_of(isa), ": ", reason);
  return std::make_shared<Forwarding<cpu::CpuBackend>>(options, isa);
}

std::shared_ptr<Backend> make_cpu_backend(BackendOptions options) {
  return make_cpu_backend(options, cpu::choose_isa());
}

}  // namespace longhand
