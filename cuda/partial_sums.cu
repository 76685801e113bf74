#include "cuda/partial_sums.h"

#include "core/backend.h"
#include "cuda/floats.h"
#include "cuda/launch.h"

namespace longhand::cuda {
namespace {

struct Combined {
  const float* sums;
  Out<float> y;
};

constexpr int block_columns = 32;
// Number of groups of threads in a block. Group g adds up the rows g, g + groups, g + 2 groups, ...
// of partial sums.
constexpr int groups = block_threads / block_columns;

__global__ void __launch_bounds__(block_threads)
    combine_parts(Combined first, Combined second, float alpha, std::int64_t parts,
                  std::int64_t columns) {
  __shared__ float of_group[groups][block_columns];
  const bool is_first = blockIdx.y == 0;
  const float* sums = is_first ? first.sums : second.sums;
  const Out<float> y{is_first ? first.y.y : second.y.y, is_first ? first.y.add : second.y.add};
  const int c = lane_index(), group = warp_index();
  const std::int64_t j = std::int64_t{blockIdx.x} * block_columns + c;
  float sum = 0;
  if (j < columns) {
#pragma unroll 8
    for (std::int64_t p = group; p < parts; p += groups) sum += sums[p * columns + j];
  }
  of_group[group][c] = sum;
  __syncthreads();
  if (group != 0 || j >= columns) return;
  for (int g = 1; g < groups; ++g) sum += of_group[g][c];
  y.put(j, Floats<1>{{alpha * sum}});
}

}  // namespace

PartialSums::PartialSums(Backend& backend, std::array<Target, 2> results, std::int64_t parts,
                         std::int64_t columns)
    : results_(std::move(results)) {
  for (std::size_t r = 0; r < 2; ++r) {
    if (results_[r]) sums_[r] = Tensor(backend, Shape{parts, columns}, DType::f32);
  }
}

float* PartialSums::parts(int result) const {
  const Tensor& sums = sums_[static_cast<std::size_t>(result)];
  return sums ? sums.data<float>() : nullptr;
}

void PartialSums::combine(Stream& stream, double alpha) const {
  Combined wanted[2] = {};
  int count = 0;
  const Tensor* sums = nullptr;
  for (std::size_t r = 0; r < 2; ++r) {
    if (!results_[r]) continue;
    sums = &sums_[r];
    wanted[count++] = {sums->data<float>(), {results_[r].tensor.data<float>(), results_[r].add}};
  }
  if (count == 0) return;
  const std::int64_t columns = sums->columns();
  launch(stream, Grid((columns + block_columns - 1) / block_columns, count), block_threads, 0,
         combine_parts, wanted[0], wanted[1], static_cast<float>(alpha), sums->rows(), columns);
}

}  // namespace longhand::cuda
