#pragma once

#include "core/backend.h"
#include "core/cpu/gemm/gemm.h"
#include "core/cpu/isa.h"
#include "core/parallel.h"
#include "core/reference/reference_backend.h"

namespace longhand::cpu {

/// The contract made fast: f32 and bf16, all cores, the strongest instruction set at hand. A run()
/// here cuts its work into chunks by the problem alone and hands ranges to the kernels that
/// kernels_for(isa()) chose; results are bitwise the same for any number of threads.
class CpuBackend final : public Backend {
 public:
  CpuBackend(BackendOptions options, Isa isa);

  Isa isa() const { return isa_; }
  ThreadPool& threads() { return threads_; }

  void require_dtype(DType dtype) const override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void synchronize() override {}

  void run(const Fill& op) override;
  void run(const Copy& op) override;
  void run(const Scale& op) override;
  void run(const Add& op) override;
  void run(const Multiply& op) override;
  void run(const Activate& op) override;
  void run(const ActivateBackward& op) override;
  void run(const Gate& op) override;
  void run(const GateBackward& op) override;
  void run(const AddBias& op) override;
  void run(const Dropout& op) override;
  void run(const Matmul& op) override;
  void run(const ColumnSum& op) override;
  void run(const Reduce& op) override;
  void run(const Expand& op) override;
  void run(const LayerNorm& op) override;
  void run(const LayerNormBackward& op) override;
  void run(const RmsNorm& op) override;
  void run(const RmsNormBackward& op) override;
  void run(const Softmax& op) override;
  void run(const SoftmaxBackward& op) override;
  void run(const CrossEntropy& op) override;
  void run(const CrossEntropyBackward& op) override;
  void run(const BinaryCrossEntropy& op) override;
  void run(const BinaryCrossEntropyBackward& op) override;
  void run(const Embedding& op) override;
  void run(const EmbeddingBackward& op) override;
  void run(const Gather& op) override;
  void run(const GatherBackward& op) override;
  void run(const Argmax& op) override;
  void run(const Rope& op) override;
  void run(const GlobalNorm& op) override;
  void run(const Adam& op) override;
  void run(const Sgd& op) override;
  void run(const Triangle& op) override;
  void run(const SolveTriangular& op) override;
  void run(const SwapAxes& op) override;
  void run(const Append& op) override;
  void run(const Attention& op) override;
  void run(const AttentionBackward& op) override;
  void run(const AttentionWeights& op) override;
  void run(const FindBadScore& op) override;
  void run(const Fal& op) override;
  void run(const FalBackward& op) override;
  void run(const Chacal& op) override;
  void run(const ChacalBackward& op) override;

 private:
  Isa isa_;
  ThreadPool threads_;
  GemmWorkspace gemm_workspace_;
  reference::ReferenceBackend plain_;  // for what is looked at rather than trained with
};

}  // namespace longhand::cpu
