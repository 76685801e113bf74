#pragma once

#include <memory>

#include "core/backend.h"
#include "cuda/device_facts.h"
#include "cuda/products.h"
#include "cuda/stream.h"
#include "cuda/uploads.h"

namespace longhand::cuda {

/// The contract on an NVIDIA GPU: f32 and bf16.
///
/// An operation is a function run(CudaBackend&, const Op&) in the file of its family. It gives
/// kernels to one stream and returns; only downloads wait. Memory for intermediate results is a
/// Tensor of this backend: what is freed while the device still works on it is used again only by
/// what comes later in the stream. Sums are cut by the problem and combined in a fixed order:
/// results are bitwise the same from run to run on one kind of device.
class CudaBackend : public Backend {
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

 private:
  void require_no_recording(const char* what) const;

  DeviceFacts device_;
  std::unique_ptr<MemorySource> own_memory_;  // of what is held for as long as the backend lives
  Stream stream_;
  Uploads uploads_;
  Products products_;
};

/// Such a backend with its operations.
std::shared_ptr<Backend> make_device_backend(BackendOptions options);

}  // namespace longhand::cuda
