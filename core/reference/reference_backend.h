#pragma once

#include "core/backend.h"

namespace longhand::reference {

/// The contract in plain loops, to be read and audited: f64 and f32 floats, i32 and u8, one thread,
/// every sum and formula in f64, and Math is exact whatever is asked for. It is the only backend
/// with f64, so gradients are proved here; the others are held against it.
class ReferenceBackend : public Backend {
 public:
  explicit ReferenceBackend(BackendOptions options);

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
  void run(const Rope& op) override;
  void run(const Embedding& op) override;
  void run(const EmbeddingBackward& op) override;
  void run(const Gather& op) override;
  void run(const GatherBackward& op) override;
  void run(const Argmax& op) override;
  void run(const Softmax& op) override;
  void run(const SoftmaxBackward& op) override;
  void run(const CrossEntropy& op) override;
  void run(const CrossEntropyBackward& op) override;
  void run(const BinaryCrossEntropy& op) override;
  void run(const BinaryCrossEntropyBackward& op) override;
  void run(const Triangle& op) override;
  void run(const SolveTriangular& op) override;
  void run(const SwapAxes& op) override;
  void run(const GlobalNorm& op) override;
  void run(const Adam& op) override;
  void run(const Sgd& op) override;
  void run(const Append& op) override;
  void run(const Attention& op) override;
  void run(const AttentionBackward& op) override;
  void run(const AttentionWeights& op) override;
  void run(const FindBadScore& op) override;
  void run(const Fal& op) override;
  void run(const FalBackward& op) override;
  void run(const Chacal& op) override;
  void run(const ChacalBackward& op) override;
};

}  // namespace longhand::reference
