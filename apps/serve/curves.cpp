#include "apps/serve/curves.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <memory>

#include "core/error.h"
#include "core/json_reader.h"

namespace longhand::app {
namespace {

// Number of bytes read at a time, which is also the maximum length of a line.
constexpr std::size_t chunk = 1 << 20;
constexpr std::size_t most_figures = 200, longest_name = 100;
constexpr std::uint64_t lines_a_mark = 256;
constexpr std::uint64_t most_bytes_again = 8u << 20;
constexpr std::size_t samples_kept = 6;
constexpr std::size_t largest_evaluation = 1 << 16;  // maximum bytes of a stored evaluation line

/// Parses the named numbers of a line. Returns false if the line is damaged.
bool numbers_of(std::string_view line, std::int64_t& step,
                std::vector<std::pair<std::string, double>>& numbers) {
  numbers.clear();
  bool has_step = false;
  try {
    JsonReader reader(line, "metrics");
    for (reader.open_object(); reader.next_member();) {
      if (!reader.at_number()) {
        reader.skip();
        continue;
      }
      const std::string name(reader.name());
      const std::string_view digits = reader.number();
      double value = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (name == "step") {
        has_step = std::abs(value) < 0x1p53;
        step = has_step ? static_cast<std::int64_t>(value) : 0;
      } else if (name.size() <= longest_name && std::isfinite(value)) {
        numbers.emplace_back(name, value);
      }
    }
    reader.finish();
  } catch (const Error&) {
    return false;
  }
  const auto find = [&](const char* name) {
    const auto found = std::ranges::find(numbers, name, &std::pair<std::string, double>::first);
    return found == numbers.end() ? 0.0 : found->second;
  };
  if (find("seconds") > 0 && find("tokens") > 0) {
    const double rate = find("tokens") / find("seconds");
    if (std::isfinite(rate)) numbers.emplace_back("tokens_per_second", rate);
  }
  return has_step;
}

/// Calls `take` for each complete line of a file, beginning at `place`. Ends when `take` returns
/// false or the clock reaches `until`. A line of more than `chunk` bytes is skipped. `place` is
/// moved to the end of the last processed line. Returns true at the end of the file.
bool each_line(const FileDescriptor& file, Curves::Place& place, Curves::Time until,
               const std::function<bool(std::string_view, std::uint64_t)>& take) {
  const auto buffer = std::make_unique_for_overwrite<char[]>(chunk);
  while (std::chrono::steady_clock::now() < until) {
    const ssize_t got = ::pread(file.get(), buffer.get(), chunk, static_cast<off_t>(place.offset));
    if (got <= 0) return true;
    const std::string_view all(buffer.get(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = all.find('\n', begin)) != std::string_view::npos;
         begin = end + 1) {
      const bool whole = !std::exchange(place.inside_long_line, false);
      const bool go_on = (!whole || take(all.substr(begin, end - begin), place.offset + begin)) &&
                         std::chrono::steady_clock::now() < until;
      if (!go_on) {
        place.offset += end + 1;
        return false;
      }
    }
    if (begin == 0) {
      if (all.size() < chunk) return true;  // the last line is not yet complete
      place.inside_long_line = true;
      begin = all.size();
    }
    place.offset += begin;
  }
  return false;
}

}  // namespace

double Bucket::mean() const { return std::isfinite(sum) ? sum / count : low / 2 + high / 2; }

void Bucket::add(std::int64_t step, double value) {
  if (count == 0) first = step;
  last = step;
  sum += value;
  low = std::min(low, value);
  high = std::max(high, value);
  ++count;
}

void Bucket::add(const Bucket& next) {
  if (count == 0) first = next.first;
  last = next.last;
  sum += next.sum;
  low = std::min(low, next.low);
  high = std::max(high, next.high);
  count += next.count;
}

void Course::add(std::int64_t step, double value) {
  if (buckets_.empty() || buckets_.back().count >= each_) {
    if (buckets_.size() == most) {
      for (std::size_t i = 0; i < most / 2; ++i) {
        Bucket both = buckets_[2 * i];
        both.add(buckets_[2 * i + 1]);
        buckets_[i] = both;
      }
      buckets_.resize(most / 2);
      each_ *= 2;
    }
    buckets_.emplace_back();
  }
  buckets_.back().add(step, value);
}

std::vector<Bucket> thinned(const std::vector<Bucket>& buckets, std::size_t points) {
  const std::size_t group = (buckets.size() + points - 1) / std::max<std::size_t>(1, points);
  if (group <= 1) return buckets;
  std::vector<Bucket> few;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (i % group == 0) few.emplace_back();
    few.back().add(buckets[i]);
  }
  return few;
}

void Curves::restart() {
  place_ = {};
  lines_ = damaged_lines_ = 0;
  courses_.clear();
  last_.clear();
  marks_.clear();
  evaluation_.reset();
  samples_.clear();
  step_ = 0;
  seconds_ = 0;
}

void Curves::take(std::string_view line, std::uint64_t offset) {
  std::vector<std::pair<std::string, double>> numbers;
  std::int64_t step = 0;
  if (!numbers_of(line, step, numbers)) {
    ++damaged_lines_;
    return;
  }
  if (lines_++ % lines_a_mark == 0) marks_.push_back({step, offset});
  step_ = step;
  for (const auto& [name, value] : numbers) {
    auto course = courses_.find(name);
    if (course == courses_.end()) {
      if (courses_.size() == most_figures) continue;
      course = courses_.emplace(name, Course()).first;
    }
    course->second.add(step, value);
    last_[name] = value;
    if (name == "seconds") seconds_ += value;
  }
  if (line.size() > largest_evaluation || line.find("\"intervals\"") == std::string_view::npos) {
    return;
  }
  const std::optional<Json> json = Json::parse(line);
  if (!json) return;
  evaluation_ = json;
  if (const Json* const samples = json->find("samples"); samples && samples->is_array()) {
    samples_.push_back({{"step", step}, {"samples", *samples}});
    if (samples_.size() > samples_kept) samples_.erase(samples_.begin());
  }
}

bool Curves::read(const FileDescriptor& file, Time until) {
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    restart();
    return true;
  }
  const bool replaced = status.st_dev != device_ || status.st_ino != node_;
  if (replaced || static_cast<std::uint64_t>(status.st_size) < place_.offset) restart();
  device_ = status.st_dev;
  node_ = status.st_ino;
  if (static_cast<std::uint64_t>(status.st_size) == place_.offset || damaged()) return true;
  const bool whole =
      each_line(file, place_, until, [&](std::string_view line, std::uint64_t offset) {
        take(line, offset);
        return !damaged();
      });
  return whole || damaged();
}

std::vector<std::string> Curves::figures() const {
  std::vector<std::string> names;
  for (const auto& [name, course] : courses_) names.push_back(name);
  return names;
}

std::optional<double> Curves::last(const std::string& figure) const {
  const auto found = last_.find(figure);
  return found == last_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::vector<Bucket>> Curves::between(const FileDescriptor& file,
                                                 const std::vector<std::string>& figures,
                                                 std::int64_t from, std::int64_t to,
                                                 std::size_t points, Time until) const {
  std::vector<std::vector<Bucket>> found(figures.size());
  // Figures (numbers in metrics.jsonl) whose values are read from the file again, because memory
  // has fewer than `points` buckets for these steps, and some of the buckets combine several
  // values.
  std::map<std::string_view, Course> again;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const auto course = courses_.find(figures[i]);
    if (course == courses_.end()) continue;
    bool coarse = false;
    for (const Bucket& bucket : course->second.buckets()) {
      if (bucket.last < from || bucket.first > to) continue;
      found[i].push_back(bucket);
      coarse = coarse || bucket.count > 1;
    }
    if (coarse && found[i].size() < points) again.try_emplace(figures[i]);
  }
  if (!again.empty() && read_again(file, from, to, until, again)) {
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const auto exact = again.find(figures[i]);
      if (exact != again.end()) found[i] = exact->second.buckets();
    }
  }
  for (std::vector<Bucket>& buckets : found) buckets = thinned(buckets, points);
  return found;
}

bool Curves::read_again(const FileDescriptor& file, std::int64_t from, std::int64_t to, Time until,
                        std::map<std::string_view, Course>& courses) const {
  auto mark = std::ranges::upper_bound(marks_, from, {}, &Mark::step);
  if (mark != marks_.begin()) --mark;
  const auto after = std::ranges::upper_bound(marks_, to, {}, &Mark::step);
  const std::uint64_t begin = mark == marks_.end() ? 0 : mark->offset;
  const std::uint64_t end = after == marks_.end() ? place_.offset : after->offset;
  if (!file.valid() || end <= begin || end - begin > most_bytes_again) return false;
  std::vector<std::pair<std::string, double>> numbers;
  Place place{.offset = begin};
  bool complete = false;
  const auto add = [&](std::string_view line, std::uint64_t offset) {
    complete = offset >= end;
    std::int64_t step = 0;
    if (complete || !numbers_of(line, step, numbers) || step < from || step > to) return !complete;
    for (const auto& [name, value] : numbers) {
      if (const auto course = courses.find(name); course != courses.end()) {
        course->second.add(step, value);
      }
    }
    return true;
  };
  return each_line(file, place, until, add) || complete;
}

}  // namespace longhand::app
