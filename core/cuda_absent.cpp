#include "core/backend.h"
#include "core/error.h"

namespace longhand {

/// Stands in for cuda/ where the build has none.
std::shared_ptr<Backend> make_cuda_backend(BackendOptions) {
  fail("cuda: this build has no CUDA backend");
}

}  // namespace longhand
