#include "apps/run/events.h"

#include <cstring>
#include "tests/check.h"

#include "core/crc32c.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(events_test)

using namespace longhand;

BOOST_AUTO_TEST_CASE(every_record_has_its_length_and_two_checksums) {
  const TemporaryFolder folder;
  const Folder held(folder.path());
  {
    app::EventsFile events(held);
    events.add(1, {{"loss", 0.5}});
    events.add(2, {{"loss", 0.25}, {"rate", 1e-3}});
  }
  const auto masked = [](std::string_view bytes) {
    const std::uint32_t crc = crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  const auto number = [](std::string_view bytes, auto value) {
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  };
  const std::string all = held.read(held.names().at(0), 1 << 20).value();
  int records = 0;
  for (std::string_view rest = all; !rest.empty(); ++records) {
    BOOST_REQUIRE(rest.size() >= 16u);
    const auto length = number(rest, std::uint64_t{});
    BOOST_TEST(number(rest.substr(8), std::uint32_t{}) == masked(rest.substr(0, 8)));
    BOOST_REQUIRE(rest.size() >= 16 + length);
    BOOST_TEST(number(rest.substr(12 + length), std::uint32_t{}) ==
               masked(rest.substr(12, length)));
    rest.remove_prefix(16 + length);
  }
  BOOST_TEST(records == 3);  // the version, and one record for each add()
}

BOOST_AUTO_TEST_SUITE_END()
