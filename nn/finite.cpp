#include "nn/finite.h"

#include "core/backend.h"

namespace longhand::nn {

std::int64_t count_nonfinite(const Tensor& x) {
  if (x.size() == 0 || !is_float(x.dtype())) return 0;
  const Tensor rows(x.backend(), {x.rows()}, master_type(x.dtype()));
  x.backend()(Reduce{.reduction = Reduction::nonfinite, .x = x, .y = rows});
  const Tensor all(x.backend(), {1}, rows.dtype());
  x.backend()(Reduce{.reduction = Reduction::sum, .x = rows.reshape({1, rows.size()}), .y = all});
  return static_cast<std::int64_t>(all.item());
}

}  // namespace longhand::nn
