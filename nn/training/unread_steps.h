#pragma once

#include <vector>

#include "nn/ranks/communicator.h"
#include "nn/training/step.h"

namespace longhand::nn {

/// Steps that were executed, but whose results are not read yet. Reading waits for the backend, so
/// the results of several steps are read together.
class UnreadSteps {
 public:
  /// Results are read about every `seconds` seconds.
  explicit UnreadSteps(double seconds) : seconds_(seconds) {}

  void add(Step step) { steps_.push_back(std::move(step)); }
  /// True if the results of the unread steps should be read now: these steps took about `seconds`
  /// seconds (see the constructor), or their number has reached its maximum.
  bool enough() const { return steps_.size() >= together_; }
  /// Waits for all unread steps and returns them with complete reports.
  std::vector<Step> read(Communicator& ranks);

 private:
  double seconds_;
  std::vector<Step> steps_;
  std::size_t together_ = 1;
};

bool is_finite(const Step& step);  // true if the loss and the norm are finite

}  // namespace longhand::nn
