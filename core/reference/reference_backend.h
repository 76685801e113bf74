#pragma once

#include "core/backend.h"

namespace longhand::reference {

/// Implements the contract (the list of operations that every backend has) in plain loops, which
/// are written to be read and audited. It uses one thread, supports the types f64, f32, i32 and u8,
/// and computes every sum and formula in f64 in every math mode. No other backend supports f64, so
/// gradients are checked on this backend, and the other backends are compared with it.
///
/// Each operation is a function run(ReferenceBackend&, const Op&) in a file such as softmax.cpp.
class ReferenceBackend : public Backend {
 public:
  explicit ReferenceBackend(BackendOptions options);

  void require_dtype(DType dtype) const override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void synchronize() override {}
  bool in_host_memory() const override { return true; }
};

}  // namespace longhand::reference
