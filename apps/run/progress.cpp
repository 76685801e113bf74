#include "apps/run/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "apps/terminal.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::app {
namespace {

std::string duration(double seconds) {
  char buffer[32];
  const auto whole = static_cast<long>(seconds);
  if (whole < 3600) {
    std::snprintf(buffer, sizeof buffer, "%ld:%02ld", whole / 60, whole % 60);
  } else {
    std::snprintf(buffer, sizeof buffer, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  }
  return buffer;
}

std::string percent(double share) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%.1f%%", 100 * share);
  return buffer;
}

/// The width of the terminal minus one, because a line that fills the last column would wrap.
std::size_t terminal_columns() {
  winsize size = {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 79;
  return size.ws_col - 1u;
}

/// A progress bar for this share: "[####......]".
std::string bar(double share, std::size_t cells) {
  const auto full = static_cast<std::size_t>(share * static_cast<double>(cells));
  return "[" + std::string(full, '#') + std::string(cells - full, '.') + "]";
}

std::string rounded(const char* form, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, form, value);
  return buffer;
}

}  // namespace

std::string progress_line(const ProgressState& s, std::size_t columns) {
  struct Field {
    std::string text;
    int rank;  // if the line is too long, the field with the highest rank is dropped first
  };
  const auto left = static_cast<double>(s.steps - s.step);
  std::vector<Field> fields{
      {text("step ", s.step, "/", s.steps), 0},
      {"loss " + rounded("%.4f", s.loss), 1},
      {"accuracy " + (s.accuracy ? percent(*s.accuracy) : "-"), 3},
      {rounded("%.1f ms/step", 1e3 * s.seconds), 6},
      {s.slowest ? text("slowest rank ", s.slowest->rank, ": ") +
                       rounded("%.1f ms", 1e3 * s.slowest->seconds)
                 : "",
       8},
      {rounded("%.0f tokens/s", s.tokens / s.seconds), 4},
      {s.peak ? percent(*s.peak) + " of peak" : "peak unknown", 5},
      {rounded("%.0f MiB", static_cast<double>(s.memory) / (1 << 20)), 7},
      {duration(s.seconds * left) + " left", 2},
  };
  const auto joined = [&] {
    std::string line;
    for (const Field& field : fields) {
      if (!field.text.empty()) line += (line.empty() ? "" : "  ") + field.text;
    }
    return line;
  };
  std::string line = joined();
  if (columns == 0) return line;
  while (line.size() > columns && fields.size() > 1) {
    fields.erase(std::ranges::max_element(fields, {}, &Field::rank));
    line = joined();
  }
  constexpr std::size_t least_cells = 8, most_cells = 30;
  const std::size_t around = 4;  // brackets and spaces around the bar
  if (line.size() + around + least_cells <= columns && s.steps > 0) {
    const std::size_t cells = std::min(most_cells, columns - line.size() - around);
    const double share = static_cast<double>(s.step) / static_cast<double>(s.steps);
    line = bar(std::clamp(share, 0.0, 1.0), cells) + "  " + line;
  }
  return line.substr(0, columns);
}

Progress::Progress(std::int64_t steps, bool quiet, double peak)
    : steps_(steps), peak_(peak), quiet_(quiet), terminal_(is_rich_terminal(STDERR_FILENO)) {}

void Progress::show(const nn::StepReport& r, double operations) {
  if (quiet_) return;
  mean_seconds_ = mean_seconds_ == 0 ? r.seconds : 0.95 * mean_seconds_ + 0.05 * r.seconds;
  since_ += r.seconds;
  const bool last = r.step == steps_;
  if (!last && shown_ && since_ < (terminal_ ? 0.2 : 10.0)) return;
  since_ = 0;
  shown_ = true;
  ProgressState state{.step = r.step,
                      .steps = steps_,
                      .loss = r.loss,
                      .accuracy = r.accuracy,
                      .seconds = mean_seconds_,
                      .tokens = static_cast<double>(r.tokens),
                      .slowest = r.slowest,
                      .memory = r.memory.peak};
  if (peak_ > 0) state.peak = operations / mean_seconds_ / peak_;
  const std::string line = progress_line(state, terminal_ ? terminal_columns() : 0);
  if (terminal_) {
    std::fprintf(stderr, "\r%s\033[K%s", line.c_str(), last ? "\n" : "");
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  open_ = terminal_ && !last;
}

void Progress::say(std::string_view text) {
  if (quiet_) return;
  std::fprintf(stderr, "%s%s\n", open_ ? "\n" : "", printable_lines(text).c_str());
  open_ = false;
}

}  // namespace longhand::app
