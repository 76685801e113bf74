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

/// Several successive values of a figure (a number that metrics.jsonl contains for many steps),
/// combined into one entry.
struct Bucket {
  std::int64_t first = 0, last = 0;  // range of steps
  double sum = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::uint32_t count = 0;

  void add(std::int64_t step, double value);
  void add(const Bucket& next);
  double mean() const;  // the middle of [low, high] if `sum` has overflowed
};

/// The values of one figure (a number that metrics.jsonl contains for many steps) in bounded
/// memory. When there are `most` buckets, pairs of neighbouring buckets are combined.
class Course {
 public:
  static constexpr std::size_t most = 4096;
  void add(std::int64_t step, double value);
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  std::vector<Bucket> buckets_;
  std::uint32_t each_ = 1;  // number of values in a full bucket
};

/// Combines neighbouring buckets until at most `points` buckets are left.
std::vector<Bucket> thinned(const std::vector<Bucket>& buckets, std::size_t points);

/// The curves of all figures (the numbers in the lines of metrics.jsonl) of a run. The file is read
/// incrementally while it grows. Memory does not grow with the file, except for one entry per 256
/// lines. Damaged lines are skipped, and reading stops after 1,000 damaged lines.
/// "tokens_per_second" is computed from the "tokens" and "seconds" of a line.
class Curves {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Place {
    std::uint64_t offset = 0;
    bool inside_long_line = false;  // the rest of an overlong line is being skipped
  };

  /// Reads further lines of the file until the clock reaches `until`. Returns true if the whole
  /// file has been read. If the descriptor is invalid, there are no figures.
  bool read(const FileDescriptor& file, Time until);
  std::vector<std::string> figures() const;
  /// The buckets of each figure between two steps, at most `points` per figure. If the buckets in
  /// memory are too coarse, the values are read from the file again, in one pass for all figures.
  /// This is done only if at most 8 MiB must be read and the pass ends before `until`.
  std::vector<std::vector<Bucket>> between(const FileDescriptor& file,
                                           const std::vector<std::string>& figures,
                                           std::int64_t from, std::int64_t to, std::size_t points,
                                           Time until) const;
  /// True if reading stopped because the file has too many damaged lines.
  bool damaged() const { return damaged_lines_ > most_damaged_lines; }
  /// The last line of metrics.jsonl that an evaluation wrote. Such lines have the member
  /// "intervals".
  const std::optional<Json>& evaluation() const { return evaluation_; }
  /// The members "step" and "samples" of the lines that the last few evaluations wrote.
  const std::vector<Json>& samples() const { return samples_; }
  std::int64_t step() const { return step_; }  // step of the last line
  /// The last value of a figure (a number in the lines of metrics.jsonl).
  std::optional<double> last(const std::string& figure) const;
  double seconds() const { return seconds_; }  // total duration of the steps

 private:
  struct Mark {
    std::int64_t step;
    std::uint64_t offset;
  };
  static constexpr std::uint64_t most_damaged_lines = 1000;

  void restart();
  void take(std::string_view line, std::uint64_t offset);
  /// Reads the lines of the file between two steps again, and adds their values to `courses`, the
  /// points of each curve. Returns false if there are too many values or the time is up.
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
