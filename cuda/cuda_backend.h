#pragma once

#include <memory>

#include "core/backend.h"
#include "cuda/device_facts.h"
#include "cuda/products.h"
#include "cuda/stream.h"
#include "cuda/uploads.h"

namespace longhand::cuda {

/// The contract on an NVIDIA GPU: f32 and bf16. A run() gives kernels to one stream and returns;
/// only downloads wait. Memory for intermediate results is a Tensor of this backend: what is freed
/// while the device still works on it is used again only by what comes later in the stream. Sums
/// are cut by the problem and combined in a fixed order: results are bitwise the same from run to
/// run on one kind of device.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(BackendOptions options);

  const DeviceFacts& device() const { return device_; }
  Stream& stream() { return stream_; }
  Products& products() { return products_; }
  /// Enough blocks of `threads` for `items`, one a thread, but no more than fill the device a few
  /// times: kernels go over all items in steps of the grid. 0 for none.
  std::int64_t blocks_for(std::int64_t items, int threads) const;

  void require_dtype(DType dtype) const override;
  std::vector<std::string> devices() const override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void synchronize() override;
  bool repeats() const override { return true; }
  std::unique_ptr<Repeat> repeat() override;

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
  void require_no_recording(const char* what) const;

  DeviceFacts device_;
  std::unique_ptr<MemorySource> own_memory_;  // of what is held for as long as the backend lives
  Stream stream_;
  Uploads uploads_;
  Products products_;
};

}  // namespace longhand::cuda
