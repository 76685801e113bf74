#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/serve/curves.h"
#include "core/folder.h"

namespace longhand::app {

/// The process on this machine that holds a run's lock, according to the operating system.
struct Writer {
  pid_t process = 0;
  double seconds = 0;         // processor time used
  double resident_bytes = 0;  // resident memory
};

/// A run below a served folder, and what has been read from its files so far. Users who can write
/// to that folder are not trusted, so links in it are not followed, and only regular files are
/// opened.
struct LiveRun {
  std::filesystem::path path;
  std::string name;             // path relative to the served folder
  Folder top;                   // the served folder
  std::filesystem::path below;  // the run's path below `top`
  Curves curves = {};
  Json settings = Json::object();         // settings in config.ini
  std::string error = {};                 // reason why config.ini cannot be read
  std::string unread = {};                // reason why metrics.jsonl cannot be read
  std::vector<std::string> ranking = {};  // ranking_scores()
  std::int64_t steps = 0, evaluate_samples = 0;
  std::int64_t configured = 0;  // time at which config.ini was written, in nanoseconds
  /// True if the checkpoint of the run's final step existed when the folders were last scanned. In
  /// a run with evaluations, this checkpoint also had a score.
  bool complete = false;
  std::string idle = "stopped";  // state at the last scan if no process trains the run
  bool present = true;

  /// Opens the run's folder. Throws an Error if the folder is gone or a link leads to it.
  Folder folder() const { return top.below(below); }
  /// Opens one of the run's files for reading. The descriptor is invalid if there is no such file.
  FileDescriptor open(const std::string& file) const {
    return folder().open_file(file, O_RDONLY, Links::refuse);
  }
  /// Reads config.ini again if it has changed.
  void read_config();
  bool has_last_checkpoint() const;
  std::string find_idle_state() const;
  /// Opens metrics.jsonl. If the file cannot be read, the descriptor is invalid, and `unread`
  /// states the reason.
  FileDescriptor open_metrics();
  /// Reads further lines of metrics.jsonl until the time `until`. Returns true if all lines have
  /// been read.
  bool read_curves(Curves::Time until);
  /// Calls Curves::between on metrics.jsonl.
  std::vector<std::vector<Bucket>> curves_between(const std::vector<std::string>& figures,
                                                  std::int64_t from, std::int64_t to,
                                                  std::size_t points, Curves::Time until);
  pid_t child = 0;           // running process that this server started for the run; 0: none
  std::string doing = {};    // command of the process `child`
  std::string trouble = {};  // last line of the child's output, if the child failed
};

/// All runs below some folders. The list is updated when runs appear or disappear. A run keeps its
/// number.
class LiveRuns {
 public:
  explicit LiveRuns(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

  /// Scans the folders for runs, at most every few seconds and using at most 5% of the time. Also
  /// collects the exit statuses of child processes that have ended.
  void refresh();
  std::map<int, LiveRun>& all() { return runs_; }
  /// Messages about the links and unreadable entries that the last scan skipped.
  const std::vector<std::string>& skipped() const { return skipped_; }
  /// The run with this number. Throws an Error if there is no such run.
  LiveRun& at(std::string_view number);
  /// The process that is training a run, if there is one. The process id is 0 if the process is on
  /// another machine.
  static std::optional<Writer> writer(const LiveRun& run);

  /// Sends SIGTERM to the process that trains the run. The process then writes a checkpoint and
  /// exits.
  static void stop(const LiveRun& run);
  /// Starts `longhand train --resume RUN` or another command on the run. The process continues if
  /// this server ends.
  static void start(LiveRun& run, const std::vector<std::string>& words);

  static constexpr std::size_t most_runs = 1000;

 private:
  void find_runs();
  void add(const std::filesystem::path& path, const Folder& top);

  std::vector<std::filesystem::path> folders_;
  std::map<int, LiveRun> runs_;
  std::map<std::filesystem::path, int> numbers_;
  std::vector<std::string> skipped_;
  std::chrono::steady_clock::time_point next_look_ = {};
};

}  // namespace longhand::app
