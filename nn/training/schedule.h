#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace longhand::nn {

/// The learning rate as a pure function of the step.
struct Schedule {
  enum class Curve {
    constant,
    linear,     // straight down to `last`
    cosine,     // half a cosine down to `last`
    one_cycle,  // half a cosine up during warm-up, half a cosine down to `last`
  };
  Curve curve = Curve::linear;
  double peak = 1e-3;
  double first = 0;          // where warm-up begins
  double last = 0;           // at step `steps`
  std::int64_t warm_up = 0;  // steps
  std::int64_t steps = 0;    // of the whole run; 0: those of the trainer that is given it

  /// The rate of step s = 1 .. steps (0 gives `first`, where there is a warm-up). With
  /// u = s / warm_up while s < warm_up:
  ///   rate = first + (peak - first) u,  one_cycle: first + (peak - first) (1 - cos(pi u)) / 2
  /// and after that with v = (s - warm_up) / (steps - warm_up), at most 1:
  ///   constant: peak;  linear: peak + (last - peak) v;
  ///   cosine, one_cycle: last + (peak - last) (1 + cos(pi v)) / 2
  /// An Error where the curve needs `steps` and has none.
  double at(std::int64_t step) const;
};
std::string_view name_of(Schedule::Curve curve);
std::optional<Schedule::Curve> schedule_from_name(std::string_view name);

}  // namespace longhand::nn
