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
///
/// Where the norm of the gradients or a loss is not finite, nothing changes in that step nor in any
/// later one until go_on(): whoever reads norm() and the losses may come late.
class AdamOptimizer {
 public:
  AdamOptimizer(const Parameters& parameters, AdamOptions options);

  /// Brings what differs from step to step to the backend's memory; steps count from 1.
  void prepare(double rate, std::int64_t step);
  /// Takes the step that was prepared, without looking at anything, and clears the gradients.
  /// losses [n]
  void step(const Tensor& losses);
  /// The global norm of the last step's gradients, before clipping. [1]
  const Tensor& norm() const { return norm_; }
  void go_on();

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
  Tensor norm_, factor_, now_;
};

}  // namespace longhand::nn
