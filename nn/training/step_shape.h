#pragma once

#include <cstdint>
#include <vector>

#include "nn/batch.h"

namespace longhand::nn {

/// All of a step's batch that decides which operations it takes and on what shapes. Two steps whose
/// batches agree in this differ only in what lies in the backend's memory, and one can be repeated
/// for the other. What else the host decides by a batch's content must stand here or reach the
/// operations as a tensor, like a batch's share of the step's weight.
struct BatchShape {
  std::int64_t place = 0;  // among the step's batches
  std::int64_t tokens = 0, sequences = 0;
  std::int64_t longest = 0;  // the next power of two, as tables of positions have it
  std::int64_t groups = 1, head = 0;
  std::int64_t counted = 0;  // rows that are listed
  bool weighted = false;
  Shape features = {0}, values = {0};

  bool operator==(const BatchShape&) const = default;
};
using StepShape = std::vector<BatchShape>;

BatchShape shape_of(const Batch& batch, std::int64_t place = 0);
StepShape shape_of(const std::vector<Batch>& batches, const std::vector<std::int64_t>& places);

/// A batch whose sequences differ in length, filled up so that batches of about its size have its
/// shape: with empty sequences and a last one of filling to multiples of an eighth of the number of
/// sequences, and of a thirty-second of the tokens, at least 256. Others are returned as they are.
Batch filled_up(Batch batch);

}  // namespace longhand::nn
