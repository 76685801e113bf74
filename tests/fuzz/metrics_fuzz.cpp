// Any bytes, read as the metrics.jsonl of a run, as `serve` does while it grows and as every other
// command does: curves in bounded room, and damaged lines by their numbers.
#include <algorithm>

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
  // Half of the file, then all of it: what was read first stays as it is.
  const auto file = folder.write("metrics.jsonl", input.substr(0, size / 2));
  app::Curves curves(file);
  require(curves.read(soon()), "a short file is read at once");
  folder.write("metrics.jsonl", input);
  require(curves.read(soon()), "a short file is read at once");
  for (const std::string& figure : curves.figures()) {
    require(figure.size() <= 100, "a figure's name is short");
    require(curves.last(figure).has_value(), "a figure has a last value");
  }
  for (const char* figure : {"loss", "tokens_per_second"}) {
    for (const std::size_t points : {std::size_t{1}, std::size_t{1000}}) {
      check(curves.between(figure, INT64_MIN, INT64_MAX, points), points);
    }
    check(curves.between(figure, 2, 5, 3), 3);
  }
  require(curves.samples().size() <= 6, "few samples are kept");
  done_or_refused(
      [&] {
        const app::Metrics metrics = app::read_metrics(Folder(folder.path()));
        require(metrics.sound().size() + metrics.damage().size() == metrics.lines.size(),
                "a line is sound or damaged");
        for (const Json& line : metrics.sound()) (void)line["step"].integer();
      },
      folder.path().string());
  return 0;
}
