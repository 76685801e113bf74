#include "core/contract/dropout.h"

#include <algorithm>

#include "core/contract/require.h"

namespace longhand {

std::uint32_t Dropout::threshold() const {
  return static_cast<std::uint32_t>(std::min(rate * 0x1p32, 0x1p32 - 1));
}

void check(const Dropout& op) {
  Arguments are(Dropout::name);
  are.floats("x", op.x);
  are.in("step", op.step, Shape{1}, DType::i32);
  are.require(op.rate >= 0 && op.rate < 1, "rate", "expected 0 <= rate < 1, got ", op.rate);
  are.require(op.x.size() <= std::int64_t{1} << 34, "x", "expected at most 2^34 entries, got ",
              op.x.size());
  are.out("y", op.y, op.x.shape(), op.x.dtype(), {"x"});
}

}  // namespace longhand
