#include "apps/run/progress.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

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

/// A line can be written over: not in a file, on a dumb terminal, or where plain text is wanted.
bool can_rewrite() {
  const char* const plain = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (!plain || !*plain) && kind &&
         std::string_view(kind) != "dumb";
}

}  // namespace

Progress::Progress(std::int64_t steps, bool quiet, double peak)
    : steps_(steps), peak_(peak), quiet_(quiet), terminal_(can_rewrite()) {}

void Progress::show(const nn::StepReport& r, double operations) {
  if (quiet_) return;
  mean_seconds_ = mean_seconds_ == 0 ? r.seconds : 0.95 * mean_seconds_ + 0.05 * r.seconds;
  since_ += r.seconds;
  const bool last = r.step == steps_;
  if (!last && shown_ && since_ < (terminal_ ? 0.2 : 10.0)) return;
  since_ = 0;
  shown_ = true;
  const std::string share =
      peak_ > 0 ? percent(operations / mean_seconds_ / peak_) + " of peak" : "peak unknown";
  char line[256];
  std::snprintf(line, sizeof line,
                "step %lld/%lld  loss %.4f  accuracy %s  %.1f ms/step  %.0f tokens/s  "
                "%s  %.0f MiB  %s left",
                static_cast<long long>(r.step), static_cast<long long>(steps_), r.loss,
                r.accuracy ? percent(*r.accuracy).c_str() : "-", 1e3 * mean_seconds_,
                static_cast<double>(r.tokens) / mean_seconds_, share.c_str(),
                static_cast<double>(r.memory.peak) / (1 << 20),
                duration(mean_seconds_ * static_cast<double>(steps_ - r.step)).c_str());
  if (terminal_) {
    std::fprintf(stderr, "\r%s\033[K%s", line, last ? "\n" : "");
  } else {
    std::fprintf(stderr, "%s\n", line);
  }
  open_ = terminal_ && !last;
}

void Progress::say(std::string_view text) {
  if (quiet_) return;
  std::fprintf(stderr, "%s%s\n", open_ ? "\n" : "", printable_lines(text).c_str());
  open_ = false;
}

}  // namespace longhand::app
