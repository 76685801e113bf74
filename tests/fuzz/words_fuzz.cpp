// Fuzz target: parses any bytes as the value of --heads, --sweep or --only, or as a numeric option
// of a task. Each parser must refuse the bytes or return a valid value. A list of heads must be the
// same after it is written as text and parsed again.
#include "apps/recipes/grid.h"
#include "apps/run/sweep.h"
#include "nn/mixer_core/mixer_list.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  done_or_refused(
      [&] {
        const auto layers = nn::parse_layers(text, 768);
        for (const nn::MixerList& mixers : layers) {
          for (const nn::AnyMixer& mixer : mixers) {
            require(mixer->heads >= 1 && mixer->key_heads >= 1 && mixer->width >= 1,
                    "a group has heads, and they a width");
          }
        }
        const std::string written = nn::text_of(layers);
        require(nn::text_of(nn::parse_layers(written, 768)) == written,
                "heads that are written can be read");
      },
      "heads ");
  done_or_refused(
      [&] {
        const app::SweepAxis axis = app::parse_axis(text);
        require(!axis.option.empty() && !axis.values.empty(), "an axis has a name and values");
      },
      "expected ");
  if (const auto part = app::parse_part(text)) {
    require(part->part >= 1 && part->part <= part->parts, "a part is one of the parts");
  }
  done_or_refused(
      [&] {
        tasks::OptionValues values("task", {{"x", "1", "a number"}});
        values.set("x", std::string(text));
        const double x = values.number("x", -10, 10);
        require(x >= -10 && x <= 10, "a number lies in its range");
        require(static_cast<double>(values.integer("x", -10, 10)) == x, "an integer is a number");
      },
      "task task: option x: ");
  return 0;
}
