#pragma once

#include "core/backend.h"

namespace longhand::reference {

/// The contract in plain loops, to be read and audited: f64 and f32 floats, i32 and u8, one thread,
/// every sum and formula in f64, and Math is always exact. It is the only backend with f64, so
/// gradients are checked here, and the other backends are compared with it.
///
/// An operation is a function run(ReferenceBackend&, const Op&) in the file of its family.
class ReferenceBackend : public Backend {
 public:
  explicit ReferenceBackend(BackendOptions options);

  void require_dtype(DType dtype) const override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void synchronize() override {}
};

}  // namespace longhand::reference
