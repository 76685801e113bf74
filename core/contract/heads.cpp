#include "core/contract/heads.h"

#include "core/contract/heads_check.h"

namespace longhand {

void check(const Append& op) {
  HeadArguments are(Append::name, op.x);
  are.in("x", op.x, op.from.rows(), op.x.heads, -1);
  are.require(op.from && op.to && op.from.count() == op.to.count(), "segments", "expected ",
              op.from.count(), " segments in the cache, got ", op.to.count());
  for (std::size_t s = 0; s < op.from.lengths().size(); ++s) {
    are.require(op.from.lengths()[s] <= op.to.lengths()[s], "segments", "segment ", s,
                ": expected at most ", op.to.lengths()[s],
                " new tokens, the total length of the cache segment that will contain them, got ",
                op.from.lengths()[s]);
  }
  // `are` accepts only heads of the same type as x. The heads y in the cache may have another type,
  // so the separate object `cache` checks them.
  HeadArguments cache(Append::name, op.y);
  cache.in("y", op.y, op.to.rows(), op.x.heads, op.x.width);
  are.require(op.y.data.address() != op.x.data.address(), "y",
              "expected memory of its own, got memory shared with x");
}

}  // namespace longhand
