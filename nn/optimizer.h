#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/module.h"

namespace longhand::nn {

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0;       // of the parameters that decay (Parameter::decays)
  bool decoupled = true;  // AdamW; false: Adam, decay as an L2 penalty
  double clip = 0;        // largest global norm of the gradients; 0: no clipping
};

/// Adam over all parameters that are not frozen, in two calls of the contract. A parameter that no
/// loss of the step reached (another task's output head) is left alone in that step.
class AdamOptimizer {
 public:
  AdamOptimizer(const Parameters& parameters, AdamOptions options);

  /// The global norm of the gradients, before clipping.
  double measure();
  /// Applies the gradients just measured at step >= 1 and clears them.
  void apply(double rate, std::int64_t step);

  const AdamOptions& options() const { return options_; }

  struct State {
    std::string name;  // the parameter's, with ".m" or ".v"
    Tensor tensor;
  };
  /// The moments, to be saved and restored.
  std::vector<State> state() const;

 private:
  struct Entry {
    Parameter parameter;
    Tensor m, v;
    double decay;
  };
  std::vector<Entry> entries_;
  AdamOptions options_;
  GlobalNorm norm_;
  Adam next_;  // what apply() will run
};

}  // namespace longhand::nn
