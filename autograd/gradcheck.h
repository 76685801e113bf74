#pragma once

#include <string>
#include <vector>

#include "autograd/catalog/catalog.h"

namespace longhand {

struct GradcheckResult {
  double worst = 0;   // largest relative error over all cases, inputs and entries
  std::string where;  // the case and input it was seen at
  std::int64_t cases = 0;
  std::int64_t entries = 0;  // derivatives compared
};

/// Compares every input gradient of an op with central differences, in f64 on the reference
/// backend. With L = sum_k r_k y_k for random r, each entry x_i is moved by h and
///   (L(x + h e_i) - L(x - h e_i)) / 2h
/// is held against dL/dx_i. The error is relative to the largest derivative of that input (or 1
/// if that is smaller than 1e-6: then it is absolute).
GradcheckResult gradcheck(const catalog::Operation& operation, Backend& reference,
                          std::uint64_t seed = 1);

}  // namespace longhand
