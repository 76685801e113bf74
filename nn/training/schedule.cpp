#include "nn/training/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace longhand::nn {
namespace {

constexpr std::array<std::string_view, 4> names{"constant", "linear", "cosine", "one_cycle"};

/// From 0 to 1 along half a cosine.
double half_cosine(double u) { return (1 - std::cos(std::numbers::pi * u)) / 2; }

double share(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 1
                    : std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0);
}

}  // namespace

double Schedule::at(std::int64_t step) const {
  LONGHAND_CHECK(steps > 0 || curve == Curve::constant, "schedule: ", name_of(curve),
                 ": expected the number of steps, got ", steps);
  if (step < warm_up) {
    const double u = share(step, warm_up);
    return first + (peak - first) * (curve == Curve::one_cycle ? half_cosine(u) : u);
  }
  const double v = share(step - warm_up, steps - warm_up);
  switch (curve) {
    case Curve::constant:
      return peak;
    case Curve::linear:
      return peak + (last - peak) * v;
    default:
      return last + (peak - last) * (1 - half_cosine(v));
  }
}

std::string_view name_of(Schedule::Curve curve) { return names[static_cast<std::size_t>(curve)]; }

std::optional<Schedule::Curve> schedule_from_name(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Schedule::Curve>(found - names.begin());
}

}  // namespace longhand::nn
