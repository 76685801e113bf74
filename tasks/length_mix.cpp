#include "tasks/length_mix.h"

#include <string>

#include "core/error.h"

namespace longhand::tasks {

LengthMix::LengthMix(const OptionValues& options)
    : short_(options.integer("short", 2, most - 1)),
      long_(options.integer("long", short_ + 1, most)),
      exact_(options.integer("length", 0, most)) {
  LONGHAND_CHECK(exact_ != 1, "task ", options.task(),
                 ": option length: expected 0 or at least 2, got 1");
}

std::vector<TaskOption> LengthMix::options(int short_length, int long_length) {
  return {
      {"length", "0", "exact length of all inputs; 0: the training mix of short and long inputs"},
      {"short", std::to_string(short_length),
       "training mix: 80% of the inputs have lengths from 2 to X"},
      {"long", std::to_string(long_length),
       "training mix: 20% of the inputs are longer, with lengths up to X"}};
}

Distribution LengthMix::exactly(std::int64_t length) {
  return {text("length-", length),
          [length](OptionValues& values) { values.set("length", std::to_string(length)); }};
}

std::int64_t LengthMix::draw(Rng& rng) const {
  if (!is_mix()) return exact_;
  const auto below = [&](std::int64_t bound) {
    return rng.below(static_cast<std::uint32_t>(bound));
  };
  return below(5) < 4 ? 2 + below(short_ - 1) : short_ + 1 + below(long_ - short_);
}

}  // namespace longhand::tasks
