#include "tests/check.h"

#include "core/error.h"
#include "tests/cuda_parity.h"

BOOST_AUTO_TEST_SUITE(cuda_test)

using namespace longhand;

// Tests the CUDA backend on this machine's device. Tests that need no device are in
// cuda_emulated_test.cpp. Without a device, each test is skipped and the reason is printed.

namespace {

boost::test_tools::assertion_result device_at_hand(boost::unit_test::test_unit_id) {
  try {
    make_cuda_backend();
    return true;
  } catch (const Error& error) {
    boost::test_tools::assertion_result no(false);
    no.message() << error.what();
    return no;
  }
}

const auto needs_device = boost::unit_test::precondition(device_at_hand);

}  // namespace

BOOST_AUTO_TEST_CASE(without_a_device_one_line_says_why) {
  try {
    make_cuda_backend();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    BOOST_TEST(message.starts_with("cuda: "));
    BOOST_TEST(message.find('\n') == message.npos);
    BOOST_TEST_MESSAGE("the tests of this suite are skipped: " << message);
  }
}

BOOST_AUTO_TEST_CASE(small_cases_agree_with_the_reference, *needs_device) {
  cuda_parity::check_operations(make_cuda_backend, cuda_parity::Cases::small);
}

BOOST_AUTO_TEST_CASE(all_cases_agree_with_the_reference, *needs_device) {
  cuda_parity::check_operations(make_cuda_backend, cuda_parity::Cases::all);
}

BOOST_AUTO_TEST_CASE(whole_models_agree_with_the_reference, *needs_device) {
  cuda_parity::check_models(make_cuda_backend);
}

BOOST_AUTO_TEST_CASE(training_repeats_bit_for_bit, *needs_device) {
  cuda_parity::check_training_repeats(make_cuda_backend);
}

BOOST_AUTO_TEST_CASE(uploads_of_any_size_download_unchanged, *needs_device) {
  const auto backend = make_cuda_backend();
  for (const std::int64_t size : {0, 1, 1000, 70'000, 600'000, 20'000'000}) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 7);
    const Tensor x = Tensor::from(*backend, {size}, values);
    BOOST_TEST((x.to_ints() == values));
  }
}

BOOST_AUTO_TEST_SUITE_END()
