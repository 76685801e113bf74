// Fuzz target: parses any bytes as a formula typed by a user (`gradcheck --expression`). If the
// parser accepts the formula, the formula can be evaluated without an error.
#include "apps/expression.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  done_or_refused(
      [&] {
        const app::Expression read(text);
        std::map<std::string, double> values;
        for (const std::string& name : read.variables()) {
          require(!name.empty() && values.emplace(name, 0.5).second, "a variable has a name");
        }
        (void)read(values);
        (void)read({});
        (void)app::Expression(read.text())(values);
      },
      "");
  return 0;
}
