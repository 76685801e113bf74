#pragma once

#include <functional>
#include <memory>

#include "nn/training/recent.h"
#include "nn/training/step.h"
#include "nn/training/step_shape.h"

namespace longhand::nn {

/// Where the backend can repeat recorded work (Repeat in core/backend.h), a step like an earlier
/// one in shape is repeated: the host brings up its batch and waits for nothing. A few shapes are
/// kept, each with memory for its batch.
class RecordedSteps {
 public:
  /// shapes: how many are kept; 0: nothing is recorded.
  explicit RecordedSteps(std::size_t shapes) : shapes_(shapes), kept_(shapes) {}

  /// Whether the model's steps can be recorded, as things are: nobody looks at them from within.
  bool possible(const Model& model) const { return shapes_ > 0 && model.recordable(); }
  /// Brings the step's batch up and runs the operations on it, or the recording of them: true then.
  /// Its numbers are the step's.
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
