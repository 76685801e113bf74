#include "tests/check.h"

#include <cstdlib>

#include "cuda/device_facts.h"
#include "cuda/emulator/watch.h"

BOOST_AUTO_TEST_SUITE(zz_coverage_test)

using namespace longhand;

// This test runs after all other suites of this program. If LONGHAND_KERNEL_TABLE is set in the
// environment, it prints each kernel with its launches and shared memory.
BOOST_AUTO_TEST_CASE(every_kernel_was_launched) {
  const auto all = emulator::watch::kernels();
  std::size_t count = 0, launched = 0;
  std::string missing;
  for (const auto& kernel : all) {
    if (kernel.name.starts_with("watch_test")) continue;
    ++count;
    launched += kernel.launches > 0;
    if (kernel.launches == 0) missing += "\n  " + kernel.name;
    if (std::getenv("LONGHAND_KERNEL_TABLE") != nullptr) {
      std::printf("%8lld %6zu %6zu %s\n", static_cast<long long>(kernel.launches),
                  kernel.static_bytes, kernel.dynamic_bytes, kernel.name.c_str());
    }
  }
  std::printf("%zu of %zu kernels launched\n", launched, count);
  BOOST_TEST(missing.empty(), "never launched:" + missing);
}

// CUDA limits the sum of the static and the dynamic shared memory of a block.
BOOST_AUTO_TEST_CASE(shared_memory_fits_every_architecture) {
  constexpr int capabilities[][2] = {{8, 0},  {8, 6},  {8, 7},  {8, 9},  {9, 0},
                                     {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1}};
  for (const auto& [major, minor] : capabilities) {
    for (const auto& kernel : emulator::watch::kernels()) {
      // Some kernels of watch_test exceed the limit on purpose.
      if (kernel.name.starts_with("watch_test")) continue;
      BOOST_TEST_CONTEXT(major << '.' << minor << ", " << kernel.name) {
        BOOST_TEST(kernel.static_bytes + kernel.dynamic_bytes <=
                   cuda::shared_per_block(major, minor));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
