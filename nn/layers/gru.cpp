#include "nn/layers/gru.h"

#include <cmath>

#include "autograd/gru.h"

namespace longhand::nn {

Gru::Gru(const Scope& scope, std::int64_t in, std::int64_t width)
    : input(scope / "input", in, 3 * width),
      u(scope.add("u", {3 * width, width}, normal(1 / std::sqrt(3.0 * static_cast<double>(width))),
                  true, true)),
      bias(scope.add("bias", {width}, constant(0), false)) {}

Var Gru::operator()(const Var& x, const Segments& segments) const {
  return gru(input(x), segments, u, bias);
}

}  // namespace longhand::nn
