#pragma once

#include <functional>
#include <memory>

#include "nn/training/recent.h"
#include "nn/training/step.h"
#include "nn/training/step_shape.h"

namespace longhand::nn {

/// If the backend can repeat recorded work (Repeat in core/backend.h), steps whose shape was
/// recorded are replayed: the host uploads the batch, starts the replay and does not wait. The
/// recordings of a few shapes are kept. Each has its own memory for a batch.
class RecordedSteps {
 public:
  /// `shapes` is the maximum number of recorded shapes; 0: record nothing.
  explicit RecordedSteps(std::size_t shapes) : shapes_(shapes), kept_(shapes) {}

  /// True if the model's steps can be recorded and no observer is set.
  bool possible(const Model& model) const { return shapes_ > 0 && model.recordable(); }
  /// Uploads the step's batch. Then executes `operations`, or replays a recording of them. Returns
  /// true if a recording was replayed. Sets step.numbers.
  bool take(Model& model, Step& step, const std::function<void(PlacedStep&)>& operations);

 private:
  struct Recorded {
    PlacedStep step;
    std::unique_ptr<Repeat> repeat;
  };
  std::size_t shapes_;
  Recent<StepShape, Recorded> kept_;
};

}  // namespace longhand::nn
