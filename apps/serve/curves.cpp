#include "apps/serve/curves.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "core/json_reader.h"

namespace longhand::app {
namespace {

constexpr std::size_t chunk = 1 << 20;  // bytes read at once; the longest line
constexpr std::size_t most_figures = 200, longest_name = 100;
constexpr std::uint64_t lines_a_mark = 256;
constexpr std::uint64_t most_bytes_again = 8u << 20;
constexpr std::size_t samples_kept = 6;
constexpr std::size_t largest_evaluation = 1 << 16;  // bytes

/// The numbers of a line, by name; false where it is damaged.
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
    numbers.emplace_back("tokens_per_second", find("tokens") / find("seconds"));
  }
  return has_step;
}

/// Calls `take` for the whole lines of a file from `offset` on, until it says false; the offset
/// behind the last of them. A line longer than a chunk is passed over.
std::uint64_t each_line(const FileDescriptor& file, std::uint64_t offset,
                        const std::function<bool(std::string_view, std::uint64_t)>& take) {
  std::string buffer(chunk, '\0');
  for (bool skipping = false;;) {
    const ssize_t got = ::pread(file.get(), buffer.data(), chunk, static_cast<off_t>(offset));
    if (got <= 0) return offset;
    const std::string_view all(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = all.find('\n', begin)) != std::string_view::npos;
         begin = end + 1) {
      const bool whole = !std::exchange(skipping, false);
      if (whole && !take(all.substr(begin, end - begin), offset + begin)) {
        return offset + end + 1;
      }
    }
    if (begin == 0) {
      if (all.size() < chunk) return offset;  // a line that is being written
      skipping = true;
      begin = all.size();
    }
    offset += begin;
  }
}

FileDescriptor open_to_read(const std::filesystem::path& file) {
  return FileDescriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace

void Bucket::add(std::int64_t step, double value) {
  if (count == 0) first = step;
  last = step;
  sum += value;
  low = std::min(low, static_cast<float>(value));
  high = std::max(high, static_cast<float>(value));
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
  offset_ = lines_ = 0;
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
  if (!numbers_of(line, step, numbers)) return;
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

bool Curves::read(std::chrono::steady_clock::time_point until) {
  const FileDescriptor file = open_to_read(file_);
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    restart();
    return true;
  }
  const bool replaced = status.st_dev != device_ || status.st_ino != node_;
  if (replaced || static_cast<std::uint64_t>(status.st_size) < offset_) restart();
  device_ = status.st_dev;
  node_ = status.st_ino;
  bool whole = true;
  std::uint64_t taken = 0;
  offset_ = each_line(file, offset_, [&](std::string_view line, std::uint64_t offset) {
    take(line, offset);
    whole = ++taken % 64 != 0 || std::chrono::steady_clock::now() < until;
    return whole;
  });
  return whole;
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

std::vector<Bucket> Curves::between(const std::string& figure, std::int64_t from, std::int64_t to,
                                    std::size_t points) const {
  const auto course = courses_.find(figure);
  if (course == courses_.end()) return {};
  std::vector<Bucket> inside;
  bool coarse = false;
  for (const Bucket& bucket : course->second.buckets()) {
    if (bucket.last < from || bucket.first > to) continue;
    inside.push_back(bucket);
    coarse = coarse || bucket.count > 1;
  }
  if (!coarse || inside.size() >= points) return thinned(inside, points);

  auto mark = std::ranges::upper_bound(marks_, from, {}, &Mark::step);
  if (mark != marks_.begin()) --mark;
  const auto after = std::ranges::upper_bound(marks_, to, {}, &Mark::step);
  const std::uint64_t begin = mark == marks_.end() ? 0 : mark->offset;
  const std::uint64_t end = after == marks_.end() ? offset_ : after->offset;
  const FileDescriptor file = open_to_read(file_);
  if (!file.valid() || end <= begin || end - begin > most_bytes_again) {
    return thinned(inside, points);
  }
  std::vector<Bucket> exact;
  std::vector<std::pair<std::string, double>> numbers;
  each_line(file, begin, [&](std::string_view line, std::uint64_t offset) {
    std::int64_t step = 0;
    if (offset >= end) return false;
    if (!numbers_of(line, step, numbers) || step < from || step > to) return true;
    for (const auto& [name, value] : numbers) {
      if (name == figure) exact.emplace_back().add(step, value);
    }
    return true;
  });
  return thinned(exact, points);
}

}  // namespace longhand::app
