#include "tests/check.h"

namespace longhand::test {

void report(const char* file, std::size_t line, std::string_view condition, bool passed,
            std::string_view sides) {
  using namespace boost;
  unit_test::unit_test_log.set_checkpoint(file, line);
  test_tools::assertion_result result(passed);
  if (!sides.empty()) result.message() << "[" << std::string(sides) << "]";
  test_tools::tt_detail::report_assertion(
      result, unit_test::lazy_ostream::instance() << std::string(condition), file, line,
      test_tools::tt_detail::CHECK, test_tools::tt_detail::CHECK_MSG, 0);
}

}  // namespace longhand::test
