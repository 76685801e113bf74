#include "autograd/catalog/catalog.h"

#include <algorithm>

#include "tests/check.h"

BOOST_AUTO_TEST_SUITE(catalog_test)

using namespace longhand;

/// Ops that require equal numbers of key heads and query heads do not have the attribute
/// `key_heads` and are skipped.
BOOST_AUTO_TEST_CASE(every_op_with_key_heads_has_a_case_with_fewer_key_heads_than_query_heads) {
  for (const catalog::Operation& operation : catalog::operations()) {
    if (std::ranges::find(operation.attributes, "key_heads", &catalog::Attribute::name) ==
        operation.attributes.end()) {
      continue;
    }
    Rng rng(1, Purpose::test);
    const bool grouped =
        std::ranges::any_of(catalog::all_cases(operation, rng), [](const catalog::Case& c) {
          const std::string& keys = c.attributes.at("key_heads");
          return keys != "0" && keys != c.attributes.at("heads");
        });
    BOOST_TEST_CONTEXT(operation.name) { BOOST_TEST(grouped); }
  }
}

BOOST_AUTO_TEST_SUITE_END()
