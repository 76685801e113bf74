#include "autograd/cumulate.h"

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand {

Var cumulate(const Var& x, const Segments& segments, bool reverse) {
  const Tensor y = empty_like(x.value());
  y.backend()(Cumulate{.x = x.value(), .segments = segments, .reverse = reverse, .y = y});
  return record("cumulate", {&x}, y, [segments, reverse, dx = x.sink()](const Tensor& dy) {
    dy.backend()(Cumulate{.x = dy, .segments = segments, .reverse = !reverse, .y = dx.target()});
  });
}

Var cumulate_on(const Var& x, const Segments& segments, const Tensor& memory) {
  LONGHAND_CHECK(
      !x.wants_grad(),
      "cumulate: a sum from a cache has no gradient; run cumulate without a `Recording`");
  const Tensor y = empty_like(x.value());
  y.backend()(
      Cumulate{.x = x.value(), .segments = segments, .before = memory, .y = y, .after = memory});
  return y;
}

Tensor log_counts(Backend& backend, DType type, const Segments& queries, const Segments& keys,
                  std::int64_t columns, bool whole) {
  const Tensor y(backend, {queries.tokens(), columns}, type);
  backend(LogCounts{.queries = queries, .keys = keys, .whole = whole, .y = y});
  return y;
}

}  // namespace longhand
