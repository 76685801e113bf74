#pragma once

#include <cstdint>
#include <vector>

#include "nn/batch.h"

namespace longhand::nn {

/// Everything about a step's batch that decides which operations run and on which shapes. Steps
/// whose batches agree in this differ only in the contents of the backend's memory, so one can be
/// repeated for the other. Anything else that the host decides by the contents of a batch must be a
/// member here or reach the operations as a tensor.
struct BatchShape {
  std::int64_t place = 0;  // place among the step's batches
  std::int64_t tokens = 0, sequences = 0;
  std::int64_t longest = 0;  // rounded up to a power of two, as tables of positions are
  std::int64_t groups = 1, head = 0;
  std::int64_t counted = 0;  // number of listed rows
  bool weighted = false;
  Shape features = {0}, values = {0};

  bool operator==(const BatchShape&) const = default;
};
using StepShape = std::vector<BatchShape>;

BatchShape shape_of(const Batch& batch, std::int64_t place = 0);
StepShape shape_of(const std::vector<Batch>& batches, const std::vector<std::int64_t>& places);

/// Fills up a batch whose sequences differ in length, so that batches of similar size have the same
/// shape. Adds empty sequences, up to a multiple of an eighth of their number, and a last filling
/// sequence, up to a multiple of a thirty-second of the tokens, at least 256. Other batches are
/// returned unchanged.
Batch filled_up(Batch batch);

}  // namespace longhand::nn
