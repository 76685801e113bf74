#pragma once

#include <vector>

#include "nn/ranks/communicator.h"
#include "nn/training/step.h"

namespace longhand::nn {

/// Steps that were taken but not looked at. To read a number is to wait for the backend, so a few
/// steps are read together.
class UnreadSteps {
 public:
  /// About how many seconds' steps are read together.
  explicit UnreadSteps(double seconds) : seconds_(seconds) {}

  void add(Step step) { steps_.push_back(std::move(step)); }
  bool enough() const { return steps_.size() >= together_; }  // to be read
  /// Waits for all of them. Their reports are then complete.
  std::vector<Step> read(Communicator& ranks);

 private:
  double seconds_;
  std::vector<Step> steps_;
  std::size_t together_ = 1;
};

bool is_finite(const Step& step);  // its loss and its norm

}  // namespace longhand::nn
