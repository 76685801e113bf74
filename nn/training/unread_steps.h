#pragma once

#include <vector>

#include "nn/ranks/communicator.h"
#include "nn/training/step.h"

namespace longhand::nn {

/// Steps that were taken but not read. Reading a number waits for the backend, so several steps are
/// read together.
class UnreadSteps {
 public:
  /// Reads the steps of about this many seconds together.
  explicit UnreadSteps(double seconds) : seconds_(seconds) {}

  void add(Step step) { steps_.push_back(std::move(step)); }
  bool enough() const {
    return steps_.size() >= together_;
  }  // true if the steps should be read now
  /// Waits for all steps. Their reports are then complete.
  std::vector<Step> read(Communicator& ranks);

 private:
  double seconds_;
  std::vector<Step> steps_;
  std::size_t together_ = 1;
};

bool is_finite(const Step& step);  // true if its loss and norm are finite

}  // namespace longhand::nn
