// Fuzz target: reads any bytes as the metrics.jsonl of a run. They are read once as `serve` reads a
// growing file, and once as all other commands read it. A curve must have no more points than
// requested, and every line must be read or reported as damaged.
#include <algorithm>
#include <utility>

#include "apps/run/metrics_file.h"
#include "apps/serve/curves.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/scratch_file.h"

using namespace longhand;
using namespace longhand::fuzz;

namespace {

void check(const std::vector<app::Bucket>& buckets, std::size_t most) {
  require(buckets.size() <= most, "there are no more points than asked for");
  for (const app::Bucket& bucket : buckets) {
    require(bucket.count > 0, "a point has values");
    require(bucket.low <= bucket.high, "the least value is not above the greatest");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ScratchFolder folder;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::seconds(10); };
  // Reads the curves from half of the file, then continues with the whole file.
  const auto file = folder.write("metrics.jsonl", input.substr(0, size / 2));
  app::Curves curves;
  require(curves.read(open_regular_file(file), soon()), "a short file is read at once");
  folder.write("metrics.jsonl", input);
  const FileDescriptor whole = open_regular_file(file);
  require(curves.read(whole, soon()), "a short file is read at once");
  for (const std::string& figure : curves.figures()) {
    require(figure.size() <= 100, "a figure's name is short");
    require(curves.last(figure).has_value(), "a figure has a last value");
  }
  const auto check_between = [&](std::int64_t from, std::int64_t to, std::size_t points) {
    const std::vector<std::string> figures{"loss", "tokens_per_second"};
    for (const auto& buckets : curves.between(whole, figures, from, to, points, soon())) {
      check(buckets, points);
    }
  };
  check_between(INT64_MIN, INT64_MAX, 1);
  check_between(INT64_MIN, INT64_MAX, 1000);
  check_between(2, 5, 3);
  require(curves.samples().size() <= 6, "few samples are kept");
  done_or_refused(
      [&] {
        std::size_t sound = 0;
        const app::Metrics metrics =
            app::read_metrics(Folder(folder.path()), [&](const Json& line) {
              (void)line["step"].integer();
              ++sound;
            });
        require(std::cmp_equal(sound + metrics.damage.size(), metrics.lines),
                "a line is sound or damaged");
      },
      folder.path().string());
  return 0;
}
