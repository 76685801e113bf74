#include "core/tensor.h"

#include <cmath>
#include "tests/check.h"

#include "core/backend.h"
#include "core/contract/elementwise.h"
#include "core/error.h"
#include "core/segments.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(tensor_test)

using namespace longhand;

namespace {

struct Fixture {
  std::shared_ptr<Backend> backend = make_reference_backend();
  Tensor counting(const Shape& shape, DType dtype = DType::f32) const {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    return Tensor::from(*backend, shape, dtype, values);
  }
};
using Doubles = std::vector<double>;

}  // namespace

BOOST_FIXTURE_TEST_CASE(values_are_copied_in_and_out_unchanged, Fixture) {
  for (const DType type : {DType::f64, DType::f32, DType::i32, DType::u8}) {
    BOOST_TEST(counting({2, 2}, type).to_doubles() == Doubles({0, 1, 2, 3}));
  }
}

BOOST_FIXTURE_TEST_CASE(a_slice_is_a_view_of_its_rows, Fixture) {
  const Tensor x = counting({4, 3});
  const Tensor rows = x.slice(1, 2);
  BOOST_TEST(rows.to_doubles() == Doubles({3, 4, 5, 6, 7, 8}));
  (*backend)(Fill{.value = -1, .y = rows});
  BOOST_TEST(x.to_doubles() == Doubles({0, 1, 2, -1, -1, -1, -1, -1, -1, 9, 10, 11}));
  BOOST_TEST(x.slice(4, 0).size() == 0);
  BOOST_CHECK_THROW(x.slice(3, 2), Error);
  BOOST_CHECK_THROW(x.slice(-1, 1), Error);
}

BOOST_FIXTURE_TEST_CASE(a_view_keeps_its_memory_alive, Fixture) {
  Tensor view = counting({4, 3}).slice(2, 1).reshape({3, 1});
  // If the memory of the view had been freed, this tensor would reuse it.
  const Tensor other = counting({4, 3});
  BOOST_TEST(view.to_doubles() == Doubles({6, 7, 8}));
  BOOST_TEST(!view.same_memory(other));
}

BOOST_FIXTURE_TEST_CASE(a_tensor_keeps_its_backend_alive, Fixture) {
  const Tensor x = counting({2});
  backend.reset();
  BOOST_TEST(x.to_doubles() == Doubles({0, 1}));
}

BOOST_FIXTURE_TEST_CASE(wrong_shapes_types_and_sizes_are_refused_in_one_line, Fixture) {
  const Tensor x = counting({2, 3});
  BOOST_TEST(refusal([&] { x.reshape({7}); }) ==
             "reshape: expected a shape of 6 elements, like [2, 3], got [7] with 7 elements");
  BOOST_TEST(refusal([&] { x.data<double>(); }) == "tensor [2, 3]: expected f64, got f32");
  BOOST_CHECK_THROW(Tensor::from(*backend, {3}, DType::f32, Doubles{1, 2}), Error);
  BOOST_CHECK_THROW(x.item(), Error);
  BOOST_CHECK_THROW(Tensor().backend(), Error);
}

BOOST_FIXTURE_TEST_CASE(segments_keep_their_lengths_if_the_new_ones_are_refused, Fixture) {
  Segments segments(*backend, std::vector<std::int32_t>{2, 3});
  const std::vector<std::int32_t> three{1, 1, 1}, negative{4, -1};
  BOOST_CHECK_THROW(segments.assign(three), Error);
  BOOST_CHECK_THROW(segments.assign(negative), Error);
  BOOST_CHECK_THROW(segments.assign_lengths(three), Error);
  BOOST_TEST(segments.count() == 2);
  BOOST_TEST(segments.begin().to_doubles() == Doubles({0, 2}));
  BOOST_TEST(segments.length().to_doubles() == Doubles({2, 3}));
}

BOOST_AUTO_TEST_CASE(bf16_rounds_to_nearest_ties_to_even) {
  const auto through = [](float x) { return static_cast<float>(bf16(x)); };
  BOOST_TEST(through(1.0f) == 1.0f);
  // 1 + 2^-8 and 1 + 3 * 2^-8 are midway between two bf16 numbers. Each is rounded to the bf16
  // number with an even significand.
  BOOST_TEST(through(1.0f + 0x1p-8f) == 1.0f);
  BOOST_TEST(through(1.0f + 0x3p-8f) == 1.0f + 0x1p-6f);
  BOOST_TEST(through(1.0f + 0x1.01p-8f) == 1.0f + 0x1p-7f);  // just above a tie
  BOOST_TEST(through(-3.4028235e38f) == -HUGE_VALF);         // below all finite bf16 numbers
  BOOST_TEST(std::isnan(through(std::nanf(""))));
}

BOOST_AUTO_TEST_SUITE_END()
