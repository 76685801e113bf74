#pragma once

#include <cstdint>
#include <vector>

#include "nn/batch.h"

namespace longhand::nn {

/// All properties of a step's batch that determine which operations are executed and with which
/// shapes. Steps whose batches agree in these properties differ only in the contents of the
/// backend's memory, so a recording of one can be replayed for the other. Any other property of a
/// batch that influences the operations must be added to this struct, or be passed to the
/// operations as a tensor.
struct BatchShape {
  std::int64_t place = 0;  // index among the step's batches
  std::int64_t tokens = 0, sequences = 0;
  /// Maximum position, rounded up to a power of two like the sizes of position tables.
  std::int64_t longest = 0;
  std::int64_t groups = 1, head = 0;
  std::int64_t counted = 0;  // number of listed rows with scored targets
  bool weighted = false;
  Shape features = {0}, values = {0};

  bool operator==(const BatchShape&) const = default;
};
using StepShape = std::vector<BatchShape>;

BatchShape shape_of(const Batch& batch, std::int64_t place = 0);
StepShape shape_of(const std::vector<Batch>& batches, const std::vector<std::int64_t>& places);

/// Pads a batch whose sequences differ in length, so that batches of similar size have the same
/// shape. First adds empty sequences until the number of sequences is a multiple of about an eighth
/// of it. Then adds one padding sequence, so that the number of tokens is a multiple of about a
/// thirty-second of it, but of at least 256. Other batches are returned unchanged.
Batch filled_up(Batch batch);

}  // namespace longhand::nn
