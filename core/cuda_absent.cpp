#include "core/backend.h"
#include "core/error.h"

namespace longhand {

/// Takes the place of the function in cuda/ in builds without CUDA.
std::shared_ptr<Backend> make_cuda_backend(BackendOptions) {
  fail("cuda: this build has no CUDA backend");
}

}  // namespace longhand
