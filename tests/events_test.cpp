#include "apps/run/events.h"

#include <boost/test/unit_test.hpp>

using namespace longhand;

BOOST_AUTO_TEST_SUITE(events_test)

// Check values of RFC 3720, appendix B.4.
BOOST_AUTO_TEST_CASE(crc32c_gives_the_published_values) {
  BOOST_TEST(app::crc32c("123456789") == 0xE3069283u);
  BOOST_TEST(app::crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  BOOST_TEST(app::crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
}

BOOST_AUTO_TEST_SUITE_END()
