#include "nn/layers/sinusoids.h"

#include "core/elementary.h"
#include "nn/layers/rope.h"

namespace longhand::nn {

const Tensor& Sinusoids::table(Backend& backend, DType type, std::int64_t width,
                               std::int64_t longest) {
  if (table_ && table_.rows() >= longest) return table_;
  if (table_) replaced_.push_back(table_);
  const std::vector<double> f = RopeOptions{.base = base_}.frequencies(width + width % 2);
  const std::int64_t count = position_rows(longest, rows_);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count * width));
  for (std::int64_t p = 0; p < count; ++p) {
    for (std::int64_t i = 0; i < width; ++i) {
      const double angle = static_cast<double>(p) * f[static_cast<std::size_t>(i / 2)];
      values.push_back(i % 2 == 0 ? elementary::sin(angle) : elementary::cos(angle));
    }
  }
  table_ = Tensor::from(backend, {count, width}, type, values);
  return table_;
}

}  // namespace longhand::nn
