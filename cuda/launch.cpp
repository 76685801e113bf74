#include "cuda/launch.h"

#include "cuda/device_facts.h"

namespace longhand::cuda {

bool worth_launching(const Grid& grid, int threads, std::size_t shared_bytes) {
  constexpr std::int64_t most_x = (std::int64_t{1} << 31) - 1, most_yz = 65535;
  constexpr std::size_t most_shared = shared_per_block(8, 6);
  LONGHAND_CHECK(
      threads > 0 && threads <= 1024 && threads % 32 == 0, "cuda: ", grid.file, ':', grid.line,
      ": expected a number of threads from 32 to 1024 that is a multiple of 32, got ", threads);
  LONGHAND_CHECK(grid.x <= most_x && grid.y <= most_yz && grid.z <= most_yz, "cuda: ", grid.file,
                 ':', grid.line, ": a grid of ", grid.x, " x ", grid.y, " x ", grid.z,
                 " blocks is too large");
  LONGHAND_CHECK(shared_bytes <= most_shared, "cuda: ", grid.file, ':', grid.line,
                 ": expected at most ", most_shared, " bytes of shared memory, got ", shared_bytes);
  return grid.x > 0 && grid.y > 0 && grid.z > 0;
}

}  // namespace longhand::cuda
