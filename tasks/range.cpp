#include "tasks/range.h"

#include <charconv>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {

Range Range::of(const OptionValues& options, std::string_view name, std::int64_t low,
                std::int64_t high) {
  const std::string& value = options.text(name);
  const char* const last = value.data() + value.size();
  Range range;
  auto read = std::from_chars(value.data(), last, range.least);
  bool sound = read.ec == std::errc();
  range.most = range.least;
  if (sound && read.ptr != last && *read.ptr == '-') {
    read = std::from_chars(read.ptr + 1, last, range.most);
    sound = read.ec == std::errc();
  }
  LONGHAND_CHECK(sound && read.ptr == last && low <= range.least && range.least <= range.most &&
                     range.most <= high,
                 "task ", options.task(), ": option ", name, ": expected a number from ", low,
                 " to ", high, ", or a range such as ", low, '-', high, ", got ", quote(value));
  return range;
}

std::int64_t Range::draw(Rng& rng) const {
  return least + rng.below(static_cast<std::uint32_t>(most - least + 1));
}

}  // namespace longhand::tasks
