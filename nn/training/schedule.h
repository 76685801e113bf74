#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace longhand::nn {

/// The learning rate as a function of the step.
///
/// With Place::start, step s = 1 .. steps has the rate of the s-th optimizer step of PyTorch's
/// OneCycleLR (one_cycle) or of get_*_schedule_with_warmup in transformers (all other curves). With
/// W = warm_up and T = steps:
///   rise  while s <= W:  u = (s - 1) / W,        one_cycle: u = (s - 1) / (W - 1)
///   fall  after that:    v = (s - 1 - W) / (T - W),  one_cycle: v = (s - W) / (T - W)
/// The rate of the last step is above 0. If a warm-up begins at 0, the first step has rate 0.
///
/// With Place::end, as in runs of version 0.1, every curve has u = s / W and v = (s - W) / (T - W),
/// and rises while s < W. The rate of the last step is `last`.
///
/// u and v are at most 1, and
///   rise: first + (peak - first) u,  one_cycle: first + (peak - first) (1 - cos(pi u)) / 2
///   fall: constant: peak;  linear: peak + (last - peak) v;
///         cosine, one_cycle: last + (peak - last) (1 + cos(pi v)) / 2
struct Schedule {
  enum class Curve {
    constant,
    linear,  // falls linearly to `last`
    cosine,  // falls to `last` along half a cosine
    // Rises along half a cosine during the warm-up, then falls to `last` along half a cosine.
    one_cycle,
  };
  /// The point of the curve within a step that determines the step's rate.
  enum class Place { start, end };

  Curve curve = Curve::linear;
  double peak = 1e-3;
  /// The rates at the two ends of the curve. Default: 0; for one_cycle with Place::start, peak / 25
  /// and peak / 250000, as in OneCycleLR.
  std::optional<double> first = {}, last = {};
  std::int64_t warm_up = 0;  // number of warm-up steps
  std::int64_t steps = 0;    // number of steps of the whole run; 0: the trainer's number of steps
  Place place = Place::start;

  /// The rate of step s = 1 .. steps. Throws an Error if the curve requires `steps` and it is not
  /// set.
  double at(std::int64_t step) const;
};
std::string_view name_of(Schedule::Curve curve);
std::optional<Schedule::Curve> schedule_from_name(std::string_view name);

}  // namespace longhand::nn
