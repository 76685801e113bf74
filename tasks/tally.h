#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::tasks {

/// What was measured over many samples under one name: the mean of `count` values. Where each of
/// them is 0 or 1 the mean is a share, and wilson() gives its interval.
struct Metric {
  std::string name;
  double sum = 0;
  std::int64_t count = 0;
  bool is_share = true;

  double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

struct Interval {
  double low = 0;
  double high = 1;
};

/// The 95% interval of a share (Wilson 1927): with z = 1.96 and n trials,
///   (p + z^2/2n +- z sqrt(p (1 - p) / n + z^2/4n^2)) / (1 + z^2/n).
/// No trials: [0, 1].
Interval wilson(double hits, double trials);

/// Metrics in the order they were first named.
class Tally {
 public:
  /// `hits` of `trials` were right.
  void add_share(std::string_view name, std::int64_t hits, std::int64_t trials);
  /// One more value of a quantity that is no share, such as an edit distance.
  void add_value(std::string_view name, double value);
  /// More of a quantity that is told per unit: loss per token, bits per byte.
  void add_ratio(std::string_view name, double sum, std::int64_t count);
  void add(const Tally& other);

  std::span<const Metric> metrics() const { return metrics_; }
  const Metric& at(std::string_view name) const;  // refused where there is none

 private:
  Metric& metric(std::string_view name, bool is_share);

  std::vector<Metric> metrics_;
};

}  // namespace longhand::tasks
