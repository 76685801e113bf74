#include "tasks/tally.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {

Interval wilson(double hits, double trials) {
  LONGHAND_CHECK(hits >= 0 && hits <= trials, "wilson: expected 0 to ", trials, " hits, got ",
                 hits);
  if (trials == 0) return {0, 1};
  const double z = 1.959963984540054;
  const double share = hits / trials;
  const double middle = share + z * z / (2 * trials);
  const double half = z * std::sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials));
  const double scale = 1 + z * z / trials;
  // Without hits, the lower bound is exactly 0. If all trials are hits, the upper bound is exactly
  // 1. Rounding could give other values.
  return {hits == 0 ? 0 : std::max(0.0, (middle - half) / scale),
          hits == trials ? 1 : std::min(1.0, (middle + half) / scale)};
}

bool lower_is_better(std::string_view metric) {
  constexpr std::array metrics{"loss", "perplexity", "bits_per_byte", "edit-distance"};
  return std::ranges::find(metrics, metric) != metrics.end();
}

Metric& Tally::metric(std::string_view name, bool is_share) {
  const auto place = std::ranges::find(metrics_, name, &Metric::name);
  if (place == metrics_.end()) {
    return metrics_.emplace_back(Metric{.name = std::string(name), .is_share = is_share});
  }
  LONGHAND_CHECK(place->is_share == is_share, "tally: ", quote(name),
                 " was added both as a share and as a value");
  return *place;
}

void Tally::add_share(std::string_view name, std::int64_t hits, std::int64_t trials) {
  Metric& sum = metric(name, true);
  sum.sum += static_cast<double>(hits);
  sum.count += trials;
}

void Tally::add_value(std::string_view name, double value) {
  Metric& sum = metric(name, false);
  sum.sum += value;
  sum.count += 1;
}

void Tally::add_ratio(std::string_view name, double sum, std::int64_t count) {
  Metric& of = metric(name, false);
  of.sum += sum;
  of.count += count;
}

void Tally::add(const Tally& other) {
  for (const Metric& more : other.metrics_) {
    Metric& sum = metric(more.name, more.is_share);
    sum.sum += more.sum;
    sum.count += more.count;
  }
}

const Metric& Tally::at(std::string_view name) const {
  const auto place = std::ranges::find(metrics_, name, &Metric::name);
  LONGHAND_CHECK(place != metrics_.end(), "tally: there is no metric ", quote(name));
  return *place;
}

}  // namespace longhand::tasks
