#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::tasks {

/// A measurement over many samples: the mean of `count` values. If every value is 0 or 1, the mean
/// is a share, and wilson() computes the interval of the share.
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

/// The 95% interval of a share (Wilson 1927). With z = 1.96 and a share p of hits in n trials, it
/// is
///   (p + z^2/2n +- z sqrt(p (1 - p) / n + z^2/4n^2)) / (1 + z^2/n).
/// Without trials, the interval is [0, 1].
Interval wilson(double hits, double trials);

/// True if smaller values of a metric are better: losses and edit distances.
bool lower_is_better(std::string_view metric);

/// Metrics in the order in which they were first added.
class Tally {
 public:
  /// Adds `trials` trials, of which `hits` have the right result, to a share.
  void add_share(std::string_view name, std::int64_t hits, std::int64_t trials);
  /// Adds a value of a quantity that is not a share, such as an edit distance.
  void add_value(std::string_view name, double value);
  /// Adds to a quotient, such as loss per token or bits per byte: `sum` is the total loss or number
  /// of bits, and `count` the number of tokens or bytes.
  void add_ratio(std::string_view name, double sum, std::int64_t count);
  void add(const Tally& other);

  std::span<const Metric> metrics() const { return metrics_; }
  const Metric& at(std::string_view name) const;  // throws an Error if there is no such metric

 private:
  Metric& metric(std::string_view name, bool is_share);

  std::vector<Metric> metrics_;
};

}  // namespace longhand::tasks
