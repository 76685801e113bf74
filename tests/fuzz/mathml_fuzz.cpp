// Fuzz target: converts any bytes, as a LaTeX formula of docs/, to MathML. They are refused, or the
// tags of the MathML are closed in the right order.
#include "apps/book/mathml.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/well_formed.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view latex(reinterpret_cast<const char*>(data), size);
  for (const bool display : {false, true}) {
    done_or_refused([&] { require_well_formed(app::book::mathml(latex, display)); }, "formula ");
  }
  return 0;
}
