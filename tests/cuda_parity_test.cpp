#include <algorithm>

#include "tests/cuda_parity.h"

#include "cuda/emulator/backend.h"
#include "tests/check.h"

BOOST_AUTO_TEST_SUITE(cuda_parity_test)

using namespace longhand;

// Compares all operations of the catalog on the emulated device with the reference. The comparison
// detects CUDA kernels with wrong results, and host code that reads results without waiting for
// them. Each operation is tested in four settings (activation type and math mode). Two settings
// emulate the tensor cores of compute capability 8.0, and two emulate those of 9.0, which round
// sums of products differently. In one of the four settings, thread blocks are interleaved, so
// that tiles wait for the tiles of other blocks.
BOOST_AUTO_TEST_CASE(the_kernels_agree_with_the_reference) {
  const emulator::DeferredWork deferred;
  const auto choose_device = [](std::size_t turn) {
    emulator::set_tensor_cores(turn % 2 == 0 ? emulator::TensorCores::sm_80
                                             : emulator::TensorCores::sm_90);
    emulator::set_order(turn % 4 == 0 ? emulator::Order::interleaved : emulator::Order::forward,
                        turn);
  };
  cuda_parity::check_operations(make_emulated_cuda_backend, cuda_parity::Cases::small,
                                choose_device);
  emulator::set_tensor_cores(emulator::TensorCores::plain);
  emulator::set_order(emulator::Order::forward);
}

// The uploads together are larger than the ring buffers through which they are copied.
BOOST_AUTO_TEST_CASE(large_uploads_arrive_before_they_are_used) {
  constexpr std::int64_t numbers = std::int64_t{1} << 20;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const emulator::DeferredWork deferred(seed);
    const auto backend = make_emulated_cuda_backend({});
    std::vector<Tensor> all;
    for (int i = 0; i < 4; ++i) {
      const std::vector<double> values(numbers, i);
      all.push_back(Tensor::from(*backend, {numbers}, DType::f32, values));
    }
    for (int i = 0; i < 4; ++i) {
      const std::vector<double> got = all[static_cast<std::size_t>(i)].to_doubles();
      BOOST_TEST(std::ranges::count(got, static_cast<double>(i)) == numbers);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
