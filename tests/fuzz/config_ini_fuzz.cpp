// Any bytes are read as a config.ini. They are refused, or give settings whose text is parsed to
// the same settings.
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
