#include "core/shape.h"

#include "tests/check.h"

#include "core/error.h"

BOOST_AUTO_TEST_SUITE(shape_test)

using namespace longhand;

BOOST_AUTO_TEST_CASE(size_is_the_product_of_the_extents) {
  BOOST_TEST(Shape{}.size() == 1);
  BOOST_TEST((Shape{3, 4, 5}.size()) == 60);
  BOOST_TEST((Shape{3, 0, 5}.size()) == 0);
}

BOOST_AUTO_TEST_CASE(rows_count_all_axes_but_the_last) {
  const Shape shape{2, 3, 5};
  BOOST_TEST(shape.rows() == 6);
  BOOST_TEST(shape.columns() == 5);
  BOOST_TEST((Shape{2, 3, 0}.rows()) == 6);
  BOOST_TEST(Shape{7}.rows() == 1);
}

BOOST_AUTO_TEST_CASE(overflowing_negative_and_too_many_extents_are_refused) {
  const std::int64_t huge = std::int64_t{1} << 32;
  BOOST_CHECK_THROW((Shape{huge, huge}), Error);
  BOOST_CHECK_THROW((Shape{-1}), Error);
  BOOST_CHECK_THROW((Shape{1, 1, 1, 1, 1}), Error);
}

BOOST_AUTO_TEST_CASE(axes_count_from_either_end) {
  const Shape shape{2, 3, 5};
  BOOST_TEST(shape[-1] == 5);
  BOOST_TEST(shape[1] == 3);
  BOOST_CHECK_THROW(shape[3], Error);
  BOOST_CHECK_THROW(shape[-4], Error);
}

BOOST_AUTO_TEST_CASE(a_shape_is_printed_as_its_extents) {
  BOOST_TEST(text(Shape{2, 3}) == "[2, 3]");
}

BOOST_AUTO_TEST_SUITE_END()
