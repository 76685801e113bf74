#include "nn/layers/dropout.h"

#include "core/error.h"

namespace longhand::nn {

Dropout::Dropout(const Scope& scope, double share)
    : rate(share), noise_(scope.parameters().noise()), layer_(noise_->add_layer()) {
  LONGHAND_CHECK(rate >= 0 && rate < 1, "dropout: expected 0 <= rate < 1, got ", rate);
}

Var Dropout::operator()(const Var& x) const {
  if (rate == 0) return x;
  const auto draw = noise_->draw(layer_, rate);
  return draw ? dropout(x, *draw) : x;
}

bool Dropout::draws() const { return rate > 0 && noise_->draw(layer_, rate).has_value(); }

}  // namespace longhand::nn
