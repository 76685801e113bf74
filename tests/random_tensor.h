#pragma once

#include <vector>

#include "core/backend.h"
#include "core/contract/elementwise.h"
#include "core/rng.h"

namespace longhand {

/// A tensor of normally distributed random numbers with mean 0.
inline Tensor random_tensor(Backend& backend, const Shape& shape, DType type, std::uint64_t seed,
                            double deviation = 1) {
  Rng rng(seed, Purpose::test);
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (double& value : values) value = deviation * rng.normal();
  return Tensor::from(backend, shape, type, values);
}

inline void fill_random(const Tensor& y, std::uint64_t seed) {
  y.backend()(Copy{.x = random_tensor(y.backend(), y.shape(), y.dtype(), seed), .y = y});
}

}  // namespace longhand
