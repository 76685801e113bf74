#include "nn/ranks/plugin_file.h"

#include <cstdlib>
#include <fstream>

#include "core/quote.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_FIXTURE_TEST_SUITE(plugin_file_test, longhand::TemporaryFolder)

using namespace longhand;

BOOST_AUTO_TEST_CASE(the_environment_variable_of_a_plugin_must_name_a_file) {
  constexpr const char* variable = "LONGHAND_PLUGIN_FILE_TEST";
  const auto find = [&](const std::string& value) {
    ::setenv(variable, value.c_str(), 1);
    const auto found = nn::find_plugin(variable, "none.so");
    ::unsetenv(variable);
    return found;
  };
  BOOST_TEST(!nn::find_plugin(variable, "none.so").has_value());
  const std::string file = *this / "plugin.so", missing = *this / "missing.so";
  std::ofstream(file) << "a library";
  BOOST_TEST(find(file).value() == file);
  expect_refusal([&] { find(missing); },
                 text(variable, ": expected a file, got ", quote(missing), ", which does not"));
  expect_refusal([&] { find(path()); },
                 text(variable, ": expected a file, got ", quote(path().string())));
}

BOOST_AUTO_TEST_SUITE_END()
