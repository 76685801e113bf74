#pragma once

#include <cstdint>
#include <vector>

#include "nn/batch.h"

namespace longhand::nn {

/// All of a step's part that decides which operations it takes and on what shapes. Two steps whose
/// parts agree in this differ only in what lies in the backend's memory, and one can be repeated
/// for the other. What else the host decides by a batch's content must stand here or reach the
/// operations as a tensor, like a part's share of the step's weight.
struct PartShape {
  std::int64_t tokens = 0, sequences = 0;
  std::int64_t longest = 0;  // the next power of two, as tables of positions have it
  std::int64_t groups = 1, head = 0;
  std::int64_t counted = 0;  // rows that are listed
  bool weighted = false;
  Shape features = {0}, values = {0};

  bool operator==(const PartShape&) const = default;
};
using StepShape = std::vector<PartShape>;

PartShape shape_of(const Batch& batch);
StepShape shape_of(const std::vector<Batch>& parts);

/// A batch whose sequences differ in length, filled up so that batches of about its size have its
/// shape: with empty sequences and a last one of filling to multiples of an eighth of the number of
/// sequences, and of a thirty-second of the tokens, at least 256. Others are returned as they are.
Batch filled_up(Batch batch);

}  // namespace longhand::nn
