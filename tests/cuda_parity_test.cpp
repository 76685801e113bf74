#include "tests/cuda_parity.h"

#include "cuda/emulator/backend.h"
#include "tests/check.h"

BOOST_AUTO_TEST_SUITE(cuda_parity_test)

using namespace longhand;

// All operations of the catalog on the emulated device, compared with the reference. This finds
// every mistake of a CUDA kernel except low speed.
BOOST_AUTO_TEST_CASE(the_kernels_agree_with_the_reference) {
  cuda_parity::check_operations(make_emulated_cuda_backend, cuda_parity::Cases::small);
}

BOOST_AUTO_TEST_SUITE_END()
