#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/serve/curves.h"

namespace longhand::app {

/// Who holds a run's lock on this machine, as the system knows it.
struct Writer {
  pid_t process = 0;
  double seconds = 0;         // of processor time
  double resident_bytes = 0;  // of memory
};

/// A run below the folder that is shown, and what was read of it so far.
struct LiveRun {
  std::filesystem::path path;
  std::string name;  // its path below that folder
  Curves curves;
  Json settings = Json::object();  // of config.ini
  std::string error = {};          // why that cannot be read
  std::string metric = {};
  std::int64_t steps = 0, evaluate_samples = 0;
  std::filesystem::file_time_type configured = {};
  bool present = true;
  pid_t child = 0;           // what this server started for it, and still runs
  std::string doing = {};    // its command
  std::string trouble = {};  // the last line of what it said, where it failed
};

/// The runs below some folders, found again as they come and go, with numbers that stay theirs.
class LiveRuns {
 public:
  explicit LiveRuns(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

  /// Looks for runs, at most every few seconds, and for children that have ended.
  void refresh();
  std::map<int, LiveRun>& all() { return runs_; }
  /// An Error where there is none of that number.
  LiveRun& at(std::string_view number);
  /// Who trains it now: nobody, a process of this machine, or one elsewhere (process 0).
  static std::optional<Writer> writer(const LiveRun& run);

  /// Asks the process that trains it to write a checkpoint and end.
  static void stop(const LiveRun& run);
  /// Starts `longhand train --resume RUN`, or another command on it, which outlives this server.
  static void start(LiveRun& run, const std::vector<std::string>& words);

  static constexpr std::size_t most_runs = 1000;

 private:
  void find_runs();
  void add(const std::filesystem::path& path, const std::filesystem::path& below);

  std::vector<std::filesystem::path> folders_;
  std::map<int, LiveRun> runs_;
  std::map<std::filesystem::path, int> numbers_;
  std::chrono::steady_clock::time_point looked_ = {};
};

}  // namespace longhand::app
