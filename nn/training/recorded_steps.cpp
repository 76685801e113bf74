#include "nn/training/recorded_steps.h"

#include <utility>

#include "core/contract/elementwise.h"

namespace longhand::nn {

bool RecordedSteps::take(Model& model, Step& step,
                         const std::function<void(PlacedStep&)>& operations) {
  for (Batch& batch : step.batches) batch = filled_up(std::move(batch));
  Backend& backend = model.parameters().backend();
  Recorded& recorded = kept_.at(shape_of(step.batches, step.places), [&] {
    return Recorded{PlacedStep(model, step), backend.repeat()};
  });
  PlacedStep& placed = recorded.step;
  placed.assign(model, step);
  const bool repeated = recorded.repeat->run([&] { operations(placed); });
  step.numbers = placed.numbers;
  if (repeated) {  // the next replay overwrites placed.numbers, so they are copied
    step.numbers = empty_like(placed.numbers);
    backend(Copy{.x = placed.numbers, .y = step.numbers});
  }
  step.choices = placed.choices;
  return repeated;
}

}  // namespace longhand::nn
