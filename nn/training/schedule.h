#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace longhand::nn {

/// The learning rate as a function of the step s = 1 .. T, where T = steps. It rises during the
/// first W = warm_up steps and falls afterwards. The progress of the rise is u, and the progress of
/// the fall is v; both are clamped to [0, 1]. The rates are:
///   rise: first + (peak - first) u;  one_cycle: first + (peak - first) (1 - cos(pi u)) / 2;
///   fall: constant: peak;  linear: peak + (last - peak) v;
///         cosine, one_cycle: last + (peak - last) (1 + cos(pi v)) / 2.
///
/// With Place::start, the rate of step s is that of step s in PyTorch's OneCycleLR (for one_cycle)
/// or in transformers' get_*_schedule_with_warmup (for all other curves):
///   rise while s <= W:  u = (s - 1) / W;            one_cycle: u = (s - 1) / (W - 1);
///   fall while s > W:   v = (s - 1 - W) / (T - W);  one_cycle: v = (s - W) / (T - W).
/// If `first` is 0, the first step of a warm-up has rate 0. The linear and cosine curves do not
/// reach `last`, because v < 1 in the last step.
///
/// With Place::end, as in runs of version 0.1, every curve except `constant` reaches `last` in the
/// last step:
///   rise while s < W:   u = s / W;
///   fall while s >= W:  v = (s - W) / (T - W).
struct Schedule {
  enum class Curve {
    constant,
    linear,  // falls linearly to `last`
    cosine,  // falls to `last` along half a cosine
    // Rises along half a cosine during the warm-up, then falls to `last` along half a cosine.
    one_cycle,
  };
  /// Selects the rate of a step: the rate of the curve at the start of the step or at its end.
  enum class Place { start, end };

  Curve curve = Curve::linear;
  double peak = 1e-3;
  /// The rates at the two ends of the curve. The default is 0. For one_cycle with Place::start, the
  /// defaults are peak / 25 and peak / 250000, as in OneCycleLR.
  std::optional<double> first = {}, last = {};
  std::int64_t warm_up = 0;  // number of warm-up steps
  std::int64_t steps = 0;    // number of steps of the whole run; 0: TrainerOptions::steps
  Place place = Place::start;

  /// The rate of step s = 1 .. steps. Throws an Error if the curve depends on `steps` and `steps`
  /// is 0.
  double at(std::int64_t step) const;
};
std::string_view name_of(Schedule::Curve curve);
std::optional<Schedule::Curve> schedule_from_name(std::string_view name);

}  // namespace longhand::nn
