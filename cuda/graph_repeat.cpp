#include "cuda/graph_repeat.h"

#include "cuda/cuda_backend.h"

namespace longhand::cuda {

GraphRepeat::GraphRepeat(CudaBackend& backend)
    : owner_(backend.shared_from_this()), stream_(backend.stream()), blocks_(backend.memory()) {}

bool GraphRepeat::run(const std::function<void()>& body) {
  if (graph_) {
    graph_->launch(stream_);
    return true;
  }
  const ReservedBlocks::Use use(blocks_);
  if (seen_) {
    record(body);
    graph_->launch(stream_);
  } else {
    body();
    seen_ = true;
  }
  use.check();
  return false;
}

void GraphRepeat::record(const std::function<void()>& body) {
  stream_.begin_recording();
  try {
    body();
  } catch (...) {
    stream_.drop_recording();
    throw;
  }
  graph_ = stream_.end_recording();
}

}  // namespace longhand::cuda
