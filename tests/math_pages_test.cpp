#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "autograd/catalog/catalog.h"

using namespace longhand;

BOOST_AUTO_TEST_SUITE(math_pages_test)

namespace {

const std::filesystem::path pages = std::filesystem::path(LONGHAND_TEST_DATA) / "../docs/math";

std::string contents(const std::string& page) {
  std::ifstream file(pages / page);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_op_of_the_catalog_is_named_on_its_page) {
  for (const catalog::Operation& operation : catalog::operations()) {
    const std::string page = operation.page + ".md";
    const std::regex name("\\b" + operation.name + "\\b");
    BOOST_TEST(std::regex_search(contents(page), name),
               "docs/math/" << page << " does not speak of " << operation.name);
  }
}

BOOST_AUTO_TEST_CASE(the_index_names_every_page) {
  const std::string index = contents("README.md");
  for (const auto& entry : std::filesystem::directory_iterator(pages)) {
    const std::string page = entry.path().filename().string();
    if (page == "README.md") continue;
    BOOST_TEST(index.find("(" + page + ")") != std::string::npos,
               "docs/math/README.md does not name " << page);
  }
}

BOOST_AUTO_TEST_SUITE_END()
