#pragma once

#include <memory>

#include "core/backend.h"
#include "cuda/stream.h"

namespace longhand::cuda {

class CudaBackend;

/// Repeats a body of work as a CUDA graph. The first run executes the body normally: cuBLASLt
/// chooses its algorithms, and the allocator obtains the memory. The second run records the body's
/// work as a graph and launches it. Every later run only launches this graph, with one launch
/// instead of several hundred.
///
/// The kernels of a graph contain the addresses with which they were recorded. The memory of
/// intermediate results is therefore reserved from the first run on.
class GraphRepeat final : public Repeat {
 public:
  explicit GraphRepeat(CudaBackend& backend);
  bool run(const std::function<void()>& body) override;

 private:
  void record(const std::function<void()>& body);

  std::shared_ptr<Backend> owner_;  // keeps the backend alive as long as the graph
  Stream& stream_;
  ReservedBlocks blocks_;
  bool seen_ = false;
  std::unique_ptr<Graph> graph_;
};

}  // namespace longhand::cuda
