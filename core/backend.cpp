#include "core/backend.h"

#include "core/error.h"

namespace longhand {

std::shared_ptr<Backend> make_backend(std::string_view name, BackendOptions options) {
  if (name == "reference") return make_reference_backend(options);
  if (name == "cpu") return make_cpu_backend(options);
  if (name == "cuda") return make_cuda_backend(options);
  fail("backend: expected reference, cpu or cuda, got ", name);
}

}  // namespace longhand
