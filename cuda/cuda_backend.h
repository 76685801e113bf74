#pragma once

#include <memory>

#include "core/backend.h"
#include "cuda/device_facts.h"
#include "cuda/products.h"
#include "cuda/stream.h"
#include "cuda/uploads.h"

namespace longhand::cuda {

/// Implements the operations of core/contract on an NVIDIA GPU for f32 and bf16.
///
/// Each operation is a function run(CudaBackend&, const Op&) in the file of its family. It enqueues
/// kernels on one stream and returns without waiting for them. Intermediate results are Tensors of
/// this backend. Their memory may be freed while the device still uses it, because only later work
/// of the same stream reuses it. How a sum is divided into partial sums depends only on the problem
/// size and the kind of device, and the partial sums are added in a fixed order. Results are
/// therefore bitwise the same from run to run on one kind of device.
class CudaBackend : public Backend {
 public:
  explicit CudaBackend(BackendOptions options);

  const DeviceFacts& device() const { return device_; }
  Stream& stream() { return stream_; }
  Products& products() { return products_; }
  /// Number of blocks, of `threads` threads each, for a kernel over `items` independent items. It
  /// is large enough for one thread per item, but at most 16 per multiprocessor. The kernel must
  /// therefore loop over the items in steps of the number of all its threads. Returns 0 if there
  /// are no items.
  std::int64_t blocks_for(std::int64_t items, int threads) const;

  void require_dtype(DType dtype) const override;
  std::vector<std::string> devices() const override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void synchronize() override;
  bool repeats() const override { return true; }
  std::unique_ptr<Repeat> repeat() override;

 private:
  void require_no_recording(const char* what) const;

  DeviceFacts device_;
  std::unique_ptr<MemorySource> own_memory_;  // uploads_ and products_ allocate from this source
  Stream stream_;
  Uploads uploads_;
  Products products_;
};

/// Creates a CUDA backend with all its operations.
std::shared_ptr<Backend> make_device_backend(BackendOptions options);

}  // namespace longhand::cuda
