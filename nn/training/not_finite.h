#pragma once

#include <string>

#include "core/error.h"
#include "nn/ranks/communicator.h"
#include "nn/training/step.h"

namespace longhand::nn {

/// How many entries of a tensor are infinite or NaN; 0 where its type is no float.
std::int64_t count_nonfinite(const Tensor& x);

/// How a training ends whose loss or gradient is not finite.
struct NotFinite : Error {
  using Error::Error;
};

/// Computes the step's gradients once more and looks at everything on the way: parameters,
/// activations, gradients. The first tensor that is not finite, in words: "gradient of in.weight
/// (112 of 112 entries)". Nothing may have changed since the step was taken.
std::string first_nonfinite(Model& model, const Step& step, Communicator& ranks);

}  // namespace longhand::nn
