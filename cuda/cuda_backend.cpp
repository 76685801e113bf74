#include "cuda/cuda_backend.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/forwarding.h"
#include "cuda/graph_repeat.h"

namespace longhand::cuda {

CudaBackend::CudaBackend(BackendOptions options)
    : Backend("cuda", options, device_memory()),
      device_(find_devices().front()),
      own_memory_(device_memory()),
      uploads_(stream_, *own_memory_),
      products_(stream_, *own_memory_) {}

std::int64_t CudaBackend::blocks_for(std::int64_t items, int threads) const {
  constexpr std::int64_t rounds = 16;  // maximum number of blocks per multiprocessor in one launch
  return std::min((items + threads - 1) / threads, device_.multiprocessors * rounds);
}

void CudaBackend::require_dtype(DType dtype) const {
  LONGHAND_CHECK(dtype != DType::f64, "cuda: expected f32 or bf16, got ", dtype);
}

std::vector<std::string> CudaBackend::devices() const {
  std::vector<std::string> lines;
  for (const DeviceFacts& facts : find_devices()) lines.push_back(text_of(facts));
  return lines;
}

void CudaBackend::require_no_recording(const char* what) const {
  LONGHAND_CHECK(!stream_.recording(), "cuda: ", what,
                 " is not possible while a CUDA graph is recorded");
}

void CudaBackend::upload(void* device, const void* host, std::size_t bytes) {
  require_no_recording("an upload");
  uploads_.upload(device, host, bytes);
}

void CudaBackend::download(void* host, const void* device, std::size_t bytes) {
  require_no_recording("a download");
  stream_.download(host, device, bytes);
  stream_.synchronize();
}

void CudaBackend::synchronize() {
  require_no_recording("waiting for the device");
  stream_.synchronize();
}

std::unique_ptr<Repeat> CudaBackend::repeat() { return std::make_unique<GraphRepeat>(*this); }

/// Calls the function run() for Op, which is defined in another file of this folder, such as
/// dropout.cu. The linker reports a missing definition.
template <class Op>
void dispatch(CudaBackend& backend, const Op& op) {
  void run(CudaBackend&, const Op&);
  run(backend, op);
}

std::shared_ptr<Backend> make_device_backend(BackendOptions options) {
  LONGHAND_CHECK(options.math != Math::portable,
                 "cuda: expected --math exact, fast or bf16, got portable, which only the CPU "
                 "backend supports");
  return std::make_shared<Forwarding<CudaBackend>>(options);
}

}  // namespace longhand::cuda
