// Tests the command audit, which writes a folder with which anyone can verify the operations
// without this program.
#include <cmath>
#include <filesystem>

#include "autograd/catalog/catalog.h"
#include "core/npy.h"
#include "tests/program.h"

BOOST_FIXTURE_TEST_SUITE(audit_command_test, longhand::Program)

using namespace longhand;

BOOST_AUTO_TEST_CASE(every_op_has_cases_and_every_gradient_a_difference_quotient) {
  const Json report = json("audit --out all --json");
  BOOST_TEST(report["rows"].size() == catalog::operations().size());
  const Json audit = Json::parse(contents(path("all/audit.json"))).value();
  const double step = audit["step"].number();
  std::set<std::string> seen;
  std::int64_t gradients = 0;
  const auto backend = make_reference_backend();
  for (const Json& entry : audit["cases"]) {
    seen.insert(entry["op"].string());
    const std::string name = entry["file"].string();
    const auto bytes = numpy_as_safetensors(path("all/" + name), "");
    const SafetensorsFile file = SafetensorsFile::parse(bytes, name);
    const auto values = [&](const std::string& array) {
      return load_tensor(*backend, file, array).to_doubles();
    };
    for (const Json& input : entry["gradients"]) {
      ++gradients;
      const std::string x = input.string();
      const auto gradient = values("d" + x), direction = values(x + ".direction");
      double found = 0, wanted = 0, size = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i) found += gradient[i] * direction[i];
      for (const Json& output : entry["seeded"]) {
        const std::string y = output.string();
        const auto dy = values("d" + y), plus = values(y + ".plus." + x),
                   minus = values(y + ".minus." + x);
        for (std::size_t i = 0; i < dy.size(); ++i) {
          const double term = dy[i] * (plus[i] - minus[i]) / (2 * step);
          wanted += term;
          size += std::abs(term);
        }
      }
      BOOST_TEST(std::abs(found - wanted) <= 1e-6 * size + 1e-8, name << " d" << x);
    }
  }
  BOOST_TEST(seen.size() == catalog::operations().size());
  BOOST_TEST(gradients > 200);
  BOOST_TEST(contents(path("all/verify.py")).starts_with("#!/usr/bin/env python3"));
  BOOST_TEST(contents(path("all/formulas.py")).find("import numpy") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(ops_may_be_chosen_by_name) {
  BOOST_TEST(json("audit softmax add --out some --json")["rows"].size() == 2u);
  BOOST_TEST(std::filesystem::exists(folder / "some/softmax-1.npz"));
  BOOST_TEST(!std::filesystem::exists(folder / "some/matmul-1.npz"));
  refuses(2, "audit sotfmax --out no", "softmax");
  refuses(2, "audit", "--out");
}

BOOST_AUTO_TEST_SUITE_END()
