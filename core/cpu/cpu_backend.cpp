#include "core/cpu/cpu_backend.h"

namespace longhand::cpu {

CpuBackend::CpuBackend(BackendOptions options, Isa isa)
    : reference::ReferenceBackend(options), isa_(isa), threads_(options.threads) {}

}  // namespace longhand::cpu

namespace longhand {

std::shared_ptr<Backend> make_cpu_backend(BackendOptions options) {
  return std::make_shared<cpu::CpuBackend>(options, cpu::choose_isa());
}

}  // namespace longhand
