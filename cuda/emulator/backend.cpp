#include "cuda/emulator/backend.h"

#include "cuda/cuda_backend.h"

namespace longhand {

std::shared_ptr<Backend> make_emulated_cuda_backend(BackendOptions options) {
  return cuda::make_device_backend(options);
}

}  // namespace longhand
