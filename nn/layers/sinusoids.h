#pragma once

#include <vector>

#include "core/backend.h"

namespace longhand::nn {

/// The table of sinusoidal positions, which is not trained. The row of position p is
///   sin(p f_0), cos(p f_0), sin(p f_1), ...
/// with the frequencies f_i = base^(-2i/width). The table grows in the same way as RopeTables.
class Sinusoids {
 public:
  Sinusoids() = default;
  Sinusoids(double base, std::int64_t rows) : base_(base), rows_(rows) {}

  const Tensor& table(Backend& backend, DType type, std::int64_t width, std::int64_t longest);

 private:
  double base_ = 10000;
  std::int64_t rows_ = 0;
  Tensor table_;
  std::vector<Tensor> replaced_;
};

}  // namespace longhand::nn
