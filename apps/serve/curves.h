#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_descriptor.h"
#include "core/json.h"

namespace longhand::app {

/// Neighbouring values of a figure, combined.
struct Bucket {
  std::int64_t first = 0, last = 0;  // steps
  double sum = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::uint32_t count = 0;

  void add(std::int64_t step, double value);
  void add(const Bucket& next);
  double mean()
      const;  // finite, since the values are: if the sum overflows, the middle of the range
};

/// The values of a figure in bounded memory: once there are `most` buckets, pairs are combined.
class Course {
 public:
  static constexpr std::size_t most = 4096;
  void add(std::int64_t step, double value);
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  std::vector<Bucket> buckets_;
  std::uint32_t each_ = 1;  // values per full bucket
};

/// Combines neighbours until there are at most `most` buckets.
std::vector<Bucket> thinned(const std::vector<Bucket>& buckets, std::size_t points);

/// The figures of a run's metrics.jsonl, read on as it grows: memory does not grow with the file,
/// except for one entry in 256 lines. A damaged line is left out; after 1,000 of them the file is
/// read no further. "tokens" and "seconds" of a line also make "tokens_per_second".
class Curves {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Place {
    std::uint64_t offset = 0;
    bool inside_long_line = false;  // of which no more is kept
  };

  /// Reads on in the file, which may not be valid: then there are no figures. Stops at `until`;
  /// true if all of it is read.
  bool read(const FileDescriptor& file, Time until);
  std::vector<std::string> figures() const;
  /// Each of the figures between two steps, in at most so many buckets. If the thinned values are
  /// too coarse, those of the file are read again, in one pass for all figures: at most 8 MiB, and
  /// only if that takes no longer than `until`.
  std::vector<std::vector<Bucket>> between(const FileDescriptor& file,
                                           const std::vector<std::string>& figures,
                                           std::int64_t from, std::int64_t to, std::size_t points,
                                           Time until) const;
  /// True if the file has too many damaged lines to be read further.
  bool damaged() const { return damaged_lines_ > most_damaged_lines; }
  /// The last line with intervals, which an evaluation writes, and the last line with samples.
  const std::optional<Json>& evaluation() const { return evaluation_; }
  const std::vector<Json>& samples() const { return samples_; }
  std::int64_t step() const { return step_; }  // of the last line
  /// The value of a figure in the last line that has it.
  std::optional<double> last(const std::string& figure) const;
  double seconds() const { return seconds_; }  // of all steps

 private:
  struct Mark {
    std::int64_t step;
    std::uint64_t offset;
  };
  static constexpr std::uint64_t most_damaged_lines = 1000;

  void restart();
  void take(std::string_view line, std::uint64_t offset);
  /// Adds the file's values between two steps to the courses; false if they are too many or take
  /// too long.
  bool read_again(const FileDescriptor& file, std::int64_t from, std::int64_t to, Time until,
                  std::map<std::string_view, Course>& courses) const;

  dev_t device_ = 0;
  ino_t node_ = 0;
  Place place_;
  std::uint64_t lines_ = 0, damaged_lines_ = 0;
  std::map<std::string, Course, std::less<>> courses_;
  std::map<std::string, double, std::less<>> last_;
  std::vector<Mark> marks_;
  std::optional<Json> evaluation_;
  std::vector<Json> samples_;
  std::int64_t step_ = 0;
  double seconds_ = 0;
};

}  // namespace longhand::app
