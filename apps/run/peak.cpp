#include "apps/run/peak.h"

#include <algorithm>
#include <chrono>

#include "core/contract/elementwise.h"
#include "core/contract/matmul.h"

namespace longhand::app {

double measure_peak(Backend& backend) {
  if (backend.name() == "reference") return 0;
  // The size of the matrices is chosen so that a product takes about 10 ms.
  const std::int64_t n = backend.name() == "cuda" ? 8192 : 1024;
  const DType type = backend.options().math == Math::bf16 ? DType::bf16 : DType::f32;
  double best = 0;
  {
    const Tensor a(backend, {n, n}, type), b = empty_like(a), c = empty_like(a);
    backend(Fill{.value = 1, .y = a});
    backend(Fill{.value = 1, .y = b});
    for (int round = 0; round < 4; ++round) {
      const auto start = std::chrono::steady_clock::now();
      backend(Matmul{.a = a, .b = b, .c = c});
      backend.synchronize();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      best = std::max(best, 2.0 * static_cast<double>(n * n * n) / seconds.count());
    }
  }
  backend.memory().drop_cached();
  backend.memory().reset_peak();
  return best;
}

}  // namespace longhand::app
