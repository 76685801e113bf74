#pragma once

#include "core/backend.h"
#include "core/cpu/gemm/gemm.h"
#include "core/cpu/isa.h"
#include "core/parallel.h"

namespace longhand::cpu {

/// The fast implementation of all operations (core/contract) for f32 and bf16. By default, it uses
/// all cores and the strongest supported instruction set.
///
/// An operation is a function run(CpuBackend&, const Op&). Related operations are in one source
/// file, such as norm/norm.cpp. The function divides its work into chunks, which depend only on the
/// operands' shapes, and passes them to the kernels that kernels_for(isa()) selects. Results have
/// the same bits for any number of threads.
class CpuBackend : public Backend {
 public:
  CpuBackend(BackendOptions options, Isa isa);

  Isa isa() const { return isa_; }
  ThreadPool& threads() { return threads_; }
  GemmWorkspace& gemm_workspace() { return gemm_workspace_; }
  KeptPanels& kept_panels() { return kept_panels_; }
  /// The reference backend, which works on the same memory. It is used for inspection, not for
  /// training.
  Backend& plain() { return *plain_; }

  void require_dtype(DType dtype) const override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void synchronize() override {}
  bool in_host_memory() const override { return true; }
  void steady(const std::vector<Tensor>& values) override;

 private:
  Isa isa_;
  ThreadPool threads_;
  KeptPanels kept_panels_;
  GemmWorkspace gemm_workspace_;
  std::shared_ptr<Backend> plain_;
};

}  // namespace longhand::cpu

namespace longhand {

/// Makes a backend with the kernels of the instruction set `isa`. The overload
/// make_cpu_backend(options) uses the instruction set that choose_isa() returns. The math mode
/// Math::portable requires kernels with fused multiply-add. The kernels of Isa::portable have none,
/// so the backend then uses those of Isa::fused instead.
std::shared_ptr<Backend> make_cpu_backend(BackendOptions options, cpu::Isa isa);

}  // namespace longhand
