#include "core/reference/reference_backend.h"

#include <cstring>

#include "core/error.h"
#include "core/forwarding.h"

namespace longhand {
namespace reference {

ReferenceBackend::ReferenceBackend(BackendOptions options)
    : Backend("reference", options, host_memory()) {}

void ReferenceBackend::require_dtype(DType dtype) const {
  LONGHAND_CHECK(dtype != DType::bf16, "reference backend: expected the type f64 or f32, got ",
                 dtype);
}

void ReferenceBackend::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
}

void ReferenceBackend::download(void* host, const void* device, std::size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

/// Calls the function run() for the operation Op. The source file that implements Op, such as
/// softmax.cpp, defines this function. Without that file, linking fails.
template <class Op>
void dispatch(ReferenceBackend& backend, const Op& op) {
  void run(ReferenceBackend&, const Op&);
  run(backend, op);
}

}  // namespace reference

std::shared_ptr<Backend> make_reference_backend(BackendOptions options) {
  return std::make_shared<Forwarding<reference::ReferenceBackend>>(options);
}

}  // namespace longhand
