#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/file_descriptor.h"
#include "core/json.h"

namespace longhand::app {

/// Neighbouring values of a figure, thinned to one.
struct Bucket {
  std::int64_t first = 0, last = 0;  // steps
  double sum = 0;
  float low = std::numeric_limits<float>::infinity(), high = -low;
  std::uint32_t count = 0;

  void add(std::int64_t step, double value);
  void add(const Bucket& next);
  double mean() const { return sum / count; }
};

/// A figure's course in bounded room: once there are `most` buckets, two become one each.
class Course {
 public:
  static constexpr std::size_t most = 4096;
  void add(std::int64_t step, double value);
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  std::vector<Bucket> buckets_;
  std::uint32_t each_ = 1;  // values in a full bucket
};

/// At most so many buckets, of neighbours.
std::vector<Bucket> thinned(const std::vector<Bucket>& buckets, std::size_t points);

/// The figures of a run's metrics.jsonl, read on as it grows: room does not grow with the file, but
/// for an entry in some hundred lines. A damaged line is left out. What there is of "tokens" and
/// "seconds" in a line also makes "tokens_per_second".
class Curves {
 public:
  explicit Curves(std::filesystem::path file) : file_(std::move(file)) {}

  /// Reads until that moment, or all there is: then true.
  bool read(std::chrono::steady_clock::time_point until);
  std::vector<std::string> figures() const;
  /// A figure between two steps in at most so many buckets. Where thinned values are too coarse for
  /// that the file's own are read again, if they are in a few MiB.
  std::vector<Bucket> between(const std::string& figure, std::int64_t from, std::int64_t to,
                              std::size_t points) const;
  /// The last line with intervals, as an evaluation writes it, and the latest with samples.
  const std::optional<Json>& evaluation() const { return evaluation_; }
  const std::vector<Json>& samples() const { return samples_; }
  std::int64_t step() const { return step_; }  // of the last line
  /// A figure's value in the last line that has it.
  std::optional<double> last(const std::string& figure) const;
  double seconds() const { return seconds_; }  // of all steps

 private:
  struct Mark {
    std::int64_t step;
    std::uint64_t offset;
  };
  void restart();
  void take(std::string_view line, std::uint64_t offset);

  std::filesystem::path file_;
  dev_t device_ = 0;
  ino_t node_ = 0;
  std::uint64_t offset_ = 0, lines_ = 0;
  std::map<std::string, Course, std::less<>> courses_;
  std::map<std::string, double, std::less<>> last_;
  std::vector<Mark> marks_;
  std::optional<Json> evaluation_;
  std::vector<Json> samples_;
  std::int64_t step_ = 0;
  double seconds_ = 0;
};

}  // namespace longhand::app
