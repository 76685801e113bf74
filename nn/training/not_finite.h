#pragma once

#include <string>

#include "core/error.h"
#include "nn/ranks/communicator.h"
#include "nn/training/step.h"

namespace longhand::nn {

/// Number of entries that are infinite or NaN; 0 for integer tensors.
std::int64_t count_nonfinite(const Tensor& x);

/// Thrown by Trainer::run() if a loss or gradient is not finite.
struct NotFinite : Error {
  using Error::Error;
};

/// Computes the step's gradients again. Returns a description of the first parameter, activation or
/// gradient that is not finite, for example "gradient of in.weight (112 of 112 entries)". The
/// parameters must have the values that they had in the step.
std::string first_nonfinite(Model& model, const Step& step, Communicator& ranks);

}  // namespace longhand::nn
