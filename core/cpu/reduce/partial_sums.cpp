#include "core/cpu/reduce/partial_sums.h"

#include "core/cpu/chunks.h"
#include "core/cpu/reduce/kernels.h"

namespace longhand::cpu {
std::int64_t partial_rows(std::int64_t rows) {
  return std::max<std::int64_t>(16, (rows + 63) / 64);
}

std::int64_t partial_chunks(std::int64_t rows) {
  const std::int64_t each = partial_rows(rows);
  return (rows + each - 1) / each;
}

PartialSums::PartialSums(const Target& y, std::int64_t chunks, std::int64_t columns)
    : y_(y), columns_(columns), chunks_(std::max<std::int64_t>(1, chunks)) {
  if (y_) sums_.assign(static_cast<std::size_t>(chunks_ * columns), 0.0f);
}

void PartialSums::combine(ThreadPool& threads, Isa isa, double alpha) {
  if (!y_) return;
  const auto& k = kernels_for<ReduceKernels<float>>(isa);
  float* y = y_.tensor.data<float>();
  constexpr std::int64_t block = 1024;
  parallel_for(threads, columns_, block, [&](std::int64_t begin, std::int64_t end) {
    float* sum = sums_.data() + begin;
    k.add_rows(sum + columns_, chunks_ - 1, columns_, end - begin, sum);
    k.put(sum, static_cast<float>(alpha), y + begin, {.add = y_.add}, end - begin);
  });
}

}  // namespace longhand::cpu
