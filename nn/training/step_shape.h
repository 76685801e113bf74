#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nn/batch.h"

namespace longhand::nn {

/// All properties of a batch that determine the operations of a step and their shapes. If the
/// batches of two steps have equal properties, the steps differ only in the contents of the
/// backend's memory, so a recording of one can be replayed for the other. A further property that
/// influences the operations must be added to this struct, or be passed to the operations as a
/// tensor.
struct BatchShape {
  std::int64_t place = 0;  // index among the step's batches
  std::int64_t tokens = 0, sequences = 0;
  /// Input::longest, rounded up to a power of two like the sizes of position tables.
  std::int64_t longest = 0;
  std::int64_t groups = 1, head = 0;
  std::int64_t counted = 0;  // length of Batch::counted_rows()
  bool weighted = false;
  Shape features = {0}, values = {0};
  std::map<std::string, Shape> named_features = {};
  struct TokenShape {
    std::int64_t tokens = 0, sequences = 0;
    std::int64_t longest = 0;  // Input::longest of the input, rounded up to a power of two
    bool operator==(const TokenShape&) const = default;
  };
  std::map<std::string, TokenShape> named_tokens = {};

  bool operator==(const BatchShape&) const = default;
};
using StepShape = std::vector<BatchShape>;

BatchShape shape_of(const Batch& batch, std::int64_t place = 0);
StepShape shape_of(const std::vector<Batch>& batches, const std::vector<std::int64_t>& places);

/// Pads a batch whose sequences differ in length, so that batches of similar size have the same
/// shape. Appends empty sequences and, after them, one padding sequence with all padding tokens.
/// The number m of sequences is rounded up to a multiple of about m / 8, but of at least 8. The
/// number n of tokens is rounded up to a multiple of about n / 32, but of at least 256. Named token
/// inputs are padded in the same way.
///
/// Returns the batch unchanged if it has no tokens, no target classes, or any float inputs or
/// targets. Also returns it unchanged if, within each input, all sequences have one length.
Batch filled_up(Batch batch);

}  // namespace longhand::nn
