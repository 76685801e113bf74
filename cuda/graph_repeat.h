#pragma once

#include <memory>

#include "core/backend.h"
#include "cuda/stream.h"

namespace longhand::cuda {

class CudaBackend;

/// The first time the body runs as it is: cuBLASLt is asked for its ways, and the allocator finds
/// the memory. The second time what it gives to the stream is recorded as a graph, which is all
/// that runs from then on: some hundred launches become one.
///
/// A graph's kernels have the addresses they were recorded with, so the blocks that hold
/// intermediate results stay reserved, from the first run on.
class GraphRepeat final : public Repeat {
 public:
  explicit GraphRepeat(CudaBackend& backend);
  bool run(const std::function<void()>& body) override;

 private:
  void record(const std::function<void()>& body);

  std::shared_ptr<Backend> owner_;  // outlives the graph
  Stream& stream_;
  ReservedBlocks blocks_;
  bool seen_ = false;
  std::unique_ptr<Graph> graph_;
};

}  // namespace longhand::cuda
