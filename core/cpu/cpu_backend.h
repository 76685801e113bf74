#pragma once

#include "core/backend.h"
#include "core/cpu/gemm/gemm.h"
#include "core/cpu/isa.h"
#include "core/parallel.h"

namespace longhand::cpu {

/// The contract made fast: f32 and bf16, all cores, the strongest instruction set at hand.
///
/// An operation is a function run(CpuBackend&, const Op&) in the file of its family. It cuts its
/// work into chunks by the problem alone and hands ranges to the kernels that kernels_for(isa())
/// chose; results are bitwise the same for any number of threads.
class CpuBackend : public Backend {
 public:
  CpuBackend(BackendOptions options, Isa isa);

  Isa isa() const { return isa_; }
  ThreadPool& threads() { return threads_; }
  GemmWorkspace& gemm_workspace() { return gemm_workspace_; }
  KeptPanels& kept_panels() { return kept_panels_; }
  /// Plain loops over the same memory, for what is looked at rather than trained with.
  Backend& plain() { return *plain_; }

  void require_dtype(DType dtype) const override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void synchronize() override {}
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

/// With the kernels of that instruction set; make_cpu_backend(options) takes the strongest.
std::shared_ptr<Backend> make_cpu_backend(BackendOptions options, cpu::Isa isa);

}  // namespace longhand
