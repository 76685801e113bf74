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

/// The holder of a run's lock on this machine, according to the system.
struct Writer {
  pid_t process = 0;
  double seconds = 0;         // processor time
  double resident_bytes = 0;  // resident memory
};

/// A run below the folder that is shown, and what was read of it so far. Whoever can write to that
/// folder is not trusted: no link in it is followed, and only regular files are opened.
struct LiveRun {
  std::filesystem::path path;
  std::string name;             // path relative to that folder
  Folder top;                   // that folder
  std::filesystem::path below;  // the path of the run below it
  Curves curves = {};
  Json settings = Json::object();  // from config.ini
  std::string error = {};          // why config.ini cannot be read
  std::string unread = {};         // why the metrics cannot be read
  std::string metric = {};
  std::int64_t steps = 0, evaluate_samples = 0;
  std::int64_t configured = 0;  // when config.ini was written, in nanoseconds
  bool complete = false;        // its last checkpoint and score are there, as of the last look
  bool present = true;

  /// The run's folder. Throws an Error if it is gone or a link leads to it.
  Folder folder() const { return top.below(below); }
  /// Opens one of its files to read; not valid if there is no such file.
  FileDescriptor open(const std::string& file) const {
    return folder().open_file(file, O_RDONLY, Links::refuse);
  }
  /// Reads config.ini if it has changed.
  void read_config();
  bool has_last_checkpoint() const;
  /// Opens metrics.jsonl; not valid if it cannot be read, and then `unread` says why.
  FileDescriptor open_metrics();
  /// Reads further lines of the metrics until that time. True if all of them are read.
  bool read_curves(Curves::Time until);
  /// Calls Curves::between on the metrics.
  std::vector<std::vector<Bucket>> curves_between(const std::vector<std::string>& figures,
                                                  std::int64_t from, std::int64_t to,
                                                  std::size_t points, Curves::Time until);
  pid_t child = 0;           // a running process that this server started for it
  std::string doing = {};    // command of that process
  std::string trouble = {};  // last line of its output, if it failed
};

/// The runs below some folders, updated as they appear and disappear. Each keeps its number.
class LiveRuns {
 public:
  explicit LiveRuns(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

  /// Looks for runs, at most every few seconds and for at most a twentieth of the time, and for
  /// children that have ended.
  void refresh();
  std::map<int, LiveRun>& all() { return runs_; }
  /// The links and unreadable entries that the last look passed over.
  const std::vector<std::string>& skipped() const { return skipped_; }
  /// Throws an Error if there is no run with that number.
  LiveRun& at(std::string_view number);
  /// The process that trains a run: none, a process of this machine, or one elsewhere (process 0).
  static std::optional<Writer> writer(const LiveRun& run);

  /// Asks the process that trains it to write a checkpoint and end.
  static void stop(const LiveRun& run);
  /// Starts `longhand train --resume RUN`, or another command on it, which outlives this server.
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
