#include "autograd/lstm.h"

#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "autograd/tape.h"
#include "core/contract/lstm.h"
#include "core/error.h"
#include "core/formulas.h"

namespace longhand {

Var lstm(const HeadVars& x, const Segments& segments, const Var& u, const LstmOptions& options) {
  const Heads y = output_heads(x, x.width / 4);
  const std::int64_t tokens = y.data.rows();
  const DType master = master_type(y.data.dtype());
  Tensor gates, cells;
  if (recorded({&x.data, &u})) {
    LONGHAND_CHECK(!options.before && !options.after,
                   "lstm: a state from a cache has no gradient; run lstm without a `Recording`");
    gates = Tensor(y.data.backend(), {tokens, x.heads * x.width}, master);
    cells = Tensor(y.data.backend(), {tokens, x.heads * x.width / 4}, master);
  }
  y.data.backend()(Lstm{.x = x.value(),
                        .segments = segments,
                        .u = u.value(),
                        .before = options.before,
                        .y = y,
                        .gates = gates,
                        .cells = cells,
                        .after = options.after});
  return record_heads(
      "lstm", {&x.data, &u}, y,
      [x, segments, u, gates, cells, sole_reader = options.sole_reader](const Heads& dy, bool) {
        dy.data.backend()(LstmBackward{.segments = segments,
                                       .u = u.value(),
                                       .gates = gates,
                                       .cells = cells,
                                       .dy = dy,
                                       .dx = targets(x, {}, {}, sole_reader).q,
                                       .du = u.sink().target()});
      });
}

Var composed_lstm(const HeadVars& x, const Segments& segments, const Var& u) {
  const std::int64_t heads = x.heads, n = x.width / 4;
  const DType type = x.data.value().dtype(), master = u.value().dtype();
  const auto sigmoid = [](const Var& z) { return activate(Activation::sigmoid, z); };
  const auto tanh = [](const Var& z) { return activate(Activation::tanh, z); };
  const Var all = cast(columns(x.data, x.first_column, heads * x.width), master);
  const Var of_heads = reshape(u, {heads, 4 * n, n});
  std::vector<Var> rows{Tensor(x.data.backend(), {0, heads * n}, type)};
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    const std::int64_t begin = segments.begins()[static_cast<std::size_t>(s)];
    const std::int64_t tokens = segments.lengths()[static_cast<std::size_t>(s)];
    Var h = Tensor::zeros(x.data.backend(), {heads, 1, n}, master), c = h;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const Var now = reshape(slice(all, begin + t, 1), {heads, 1, 4 * n});
      const Var a = now + matmul(h, of_heads, {.transpose_b = true, .math = Math::exact});
      const std::vector<Var> part = split(a, -1, {n, n, n, n});
      c = sigmoid(part[1]) * c + sigmoid(part[0]) * tanh(part[3]);
      h = sigmoid(part[2]) * tanh(c);
      rows.push_back(cast(reshape(h, {1, heads * n}), type));
    }
  }
  return concat(rows);
}

}  // namespace longhand
