#include "nn/training/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/elementary.h"
#include "core/error.h"

namespace longhand::nn {
namespace {

constexpr std::array<std::string_view, 4> schedule_names{"constant", "linear", "cosine",
                                                         "one_cycle"};

/// Rises from 0 to 1 along half a cosine, for u in [0, 1].
double half_cosine(double u) { return (1 - elementary::cos(std::numbers::pi * u)) / 2; }

double share(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 1
                    : std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0);
}

}  // namespace

double Schedule::at(std::int64_t step) const {
  LONGHAND_CHECK(steps > 0 || curve == Curve::constant, "schedule: ", name_of(curve),
                 ": expected a number of steps above 0, got ", steps);
  const bool cycles = curve == Curve::one_cycle;
  // If true, the rates are those of PyTorch's OneCycleLR.
  const bool published = cycles && place == Place::start;
  const double low = first.value_or(published ? peak / 25 : 0);
  const double end = last.value_or(published ? peak / 25 / 1e4 : 0);
  for (const double rate : {peak, low, end}) {
    LONGHAND_CHECK(std::isfinite(rate) && rate >= 0, "schedule: ", name_of(curve),
                   ": expected rates of at least 0, got ", rate);
  }
  // If `published` is true, the rate reaches its peak in the last step of the warm-up, as in
  // PyTorch's OneCycleLR. Otherwise, the curve reaches its peak at the end of this step. With
  // Place::start, a step has the rate at its start, so the next step is the first with the peak
  // rate.
  const std::int64_t rise = published ? warm_up - 1 : warm_up;
  const std::int64_t point = place == Place::start ? step - 1 : step;
  if (published ? point <= rise : point < rise) {
    const double u = share(point, rise);
    return low + (peak - low) * (cycles ? half_cosine(u) : u);
  }
  const double v = share(point - rise, steps - warm_up);
  switch (curve) {
    case Curve::constant:
      return peak;
    case Curve::linear:
      return peak + (end - peak) * v;
    default:
      return end + (peak - end) * (1 - half_cosine(v));
  }
}

std::string_view name_of(Schedule::Curve curve) {
  return schedule_names[static_cast<std::size_t>(curve)];
}

std::optional<Schedule::Curve> schedule_from_name(std::string_view name) {
  const auto found = std::find(schedule_names.begin(), schedule_names.end(), name);
  if (found == schedule_names.end()) return std::nullopt;
  return static_cast<Schedule::Curve>(found - schedule_names.begin());
}

}  // namespace longhand::nn
