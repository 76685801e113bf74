#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace longhand::nn {

/// The learning rate as a pure function of the step.
///
/// With Place::start, step s = 1 .. steps has the rate of the s-th optimizer step of PyTorch's
/// OneCycleLR (one_cycle) and of get_*_schedule_with_warmup in transformers (all other curves).
/// With W = warm_up and T = steps:
///   rise  while s <= W:  u = (s - 1) / W,        one_cycle: u = (s - 1) / (W - 1)
///   fall  after that:    v = (s - 1 - W) / (T - W),  one_cycle: v = (s - W) / (T - W)
/// The last step's rate is above 0. The first step of a warm-up that begins at 0 has rate 0.
///
/// With Place::end, which runs of version 0.1 have, every curve has u = s / W and v = (s - W) /
/// (T - W), and step s rises while s < W. The last step's rate is `last`.
///
/// u and v are at most 1, and
///   rise: first + (peak - first) u,  one_cycle: first + (peak - first) (1 - cos(pi u)) / 2
///   fall: constant: peak;  linear: peak + (last - peak) v;
///         cosine, one_cycle: last + (peak - last) (1 + cos(pi v)) / 2
struct Schedule {
  enum class Curve {
    constant,
    linear,     // falls linearly to `last`
    cosine,     // falls to `last` along half a cosine
    one_cycle,  // rises along half a cosine during warm-up, then falls to `last` along half a
                // cosine
  };
  /// Which point of the curve determines the rate of a step.
  enum class Place { start, end };

  Curve curve = Curve::linear;
  double peak = 1e-3;
  /// The rates at both ends of the curve. Default: 0; for one_cycle with Place::start peak / 25 and
  /// peak / 250000, as in OneCycleLR.
  std::optional<double> first = {}, last = {};
  std::int64_t warm_up = 0;  // length of the warm-up, in steps
  std::int64_t steps = 0;    // length of the whole run; 0: the trainer's own number of steps
  Place place = Place::start;

  /// The rate of step s = 1 .. steps. Throws an Error if the curve needs `steps` and it is not set.
  double at(std::int64_t step) const;
};
std::string_view name_of(Schedule::Curve curve);
std::optional<Schedule::Curve> schedule_from_name(std::string_view name);

}  // namespace longhand::nn
