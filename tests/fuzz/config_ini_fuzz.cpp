// Fuzz target: parses any bytes as a config.ini. They are refused, or the settings are the same
// after they are written as text and parsed again.
#include "apps/run/config.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  done_or_refused([&] {
    const app::Config config = app::Config::parse(text, source);
    const std::string ini = config.ini();
    require(app::Config::parse(ini, "again").ini() == ini,
            "what is written reads back as the same settings");
    config.check();
  });
  return 0;
}
