#include "apps/run/rollout.h"

#include <algorithm>

#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "autograd/reduce.h"
#include "core/contract/elementwise.h"
#include "core/contract/matmul.h"
#include "core/error.h"

namespace longhand::app {

Rollout::Rollout(Backend& backend, DType type, std::int64_t tokens, std::int64_t first,
                 std::int64_t rows, std::int64_t panel_columns)
    : tokens_(tokens), first_(first), rows_(rows) {
  LONGHAND_CHECK(first >= 0 && rows >= 1 && first + rows <= tokens && panel_columns >= 1,
                 "rollout: expected rows from 0 to ", tokens - 1, ", one for each token, got rows ",
                 first, " to ", first + rows - 1);
  const std::int64_t after = first + rows;
  for (std::int64_t begin = 0; begin < after; begin += panel_columns) {
    const std::int64_t end = std::min(tokens, begin + panel_columns);
    const std::int64_t row = std::max(first, begin);
    std::vector<double> identity(static_cast<std::size_t>((after - row) * (end - begin)));
    for (std::int64_t i = row; i < std::min(after, end); ++i) {
      identity[static_cast<std::size_t>((i - row) * (end - begin) + i - begin)] = 1;
    }
    panels_.push_back(
        {begin, end, row, Tensor::from(backend, {after - row, end - begin}, type, identity)});
  }
}

void Rollout::add_earlier_layer(const Tensor& attention) {
  const Var sums = row_sum(attention) + 1.0;
  for (Panel& panel : panels_) {
    panel.entries = panel.entries / slice(sums, panel.begin, panel.end - panel.begin);
  }
  // A column panel of the new rollout depends only on the same panel of the old rollout and on
  // later panels. So the old entries of a panel are released as soon as its new entries exist.
  for (auto to = panels_.begin(); to != panels_.end(); ++to) {
    const Tensor product = empty_like(to->entries.value());
    // The new rollout is R (A + I) = R A + R, where A is the layer's attention and R is the old
    // rollout with each column j divided by the sum of row j of A + I.
    product.backend()(Copy{.x = to->entries.value(), .y = product});
    for (auto from = to; from != panels_.end(); ++from) {
      const Var rows = slice(attention, from->begin, from->end - from->begin);
      const Var block = to->begin == 0 && to->end == tokens_
                            ? rows
                            : columns(rows, to->begin, to->end - to->begin);
      const Tensor& x = from->entries.value();
      product.backend()(Matmul{.a = x,
                               .b = block.value(),
                               .c = product.slice(from->row - to->row, x.rows()),
                               .beta = 1,
                               .math = Math::exact});
    }
    to->entries = product;
  }
}

Tensor Rollout::matrix() const {
  std::vector<Var> all;
  const auto zeros = [&](std::int64_t rows, std::int64_t columns) {
    const Tensor& like = panels_.front().entries.value();
    return Tensor::zeros(like.backend(), {rows, columns}, like.dtype());
  };
  for (const Panel& panel : panels_) {
    const std::int64_t above = panel.row - first_;
    all.push_back(above == 0 ? panel.entries
                             : concat({zeros(above, panel.end - panel.begin), panel.entries}));
  }
  const std::int64_t end = panels_.back().end;
  if (end < tokens_) all.emplace_back(zeros(rows_, tokens_ - end));
  return all.size() == 1 ? all.front().value() : concat(all, 1).value();
}

}  // namespace longhand::app
