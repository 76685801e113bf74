#pragma once

#include <string>

#include "core/error.h"
#include "nn/ranks/communicator.h"
#include "nn/training/step.h"

namespace longhand::nn {

/// Number of infinite or NaN entries; 0 if the tensor's type is not a float.
std::int64_t count_nonfinite(const Tensor& x);

/// Thrown by a training whose loss or gradient is not finite.
struct NotFinite : Error {
  using Error::Error;
};

/// Computes the step's gradients again and checks parameters, activations and gradients on the way.
/// Returns a description of the first tensor that is not finite: "gradient of in.weight (112 of 112
/// entries)". Nothing may have changed since the step was taken.
std::string first_nonfinite(Model& model, const Step& step, Communicator& ranks);

}  // namespace longhand::nn
