#include "core/backend.h"
#include "core/error.h"

namespace longhand {

/// In builds without CUDA, this function replaces the function of the same name in cuda/.
std::shared_ptr<Backend> make_cuda_backend(BackendOptions) {
  fail("cuda: this build has no CUDA backend");
}

}  // namespace longhand
