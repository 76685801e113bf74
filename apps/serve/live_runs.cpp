#include "apps/serve/live_runs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "apps/run/ranking.h"
#include "apps/run/run_summary.h"
#include "core/exception_message.h"
#include "core/quote.h"

namespace longhand::app {
namespace {

namespace fs = std::filesystem;

// File in the run's folder that receives the output of a started command.
const std::string said_file = "serve.log";

/// The process id in "process 123 on HOST". 0 if HOST is not this machine.
pid_t process_here(std::string_view holder) {
  constexpr std::string_view start = "process ";
  std::array<char, 65> host{};
  if (!holder.starts_with(start) || ::gethostname(host.data(), host.size() - 1) != 0) return 0;
  holder.remove_prefix(start.size());
  pid_t process = 0;
  const char* const end = holder.data() + holder.size();
  const auto [behind, error] = std::from_chars(holder.data(), end, process);
  const std::string_view rest(behind, static_cast<std::size_t>(end - behind));
  return error == std::errc() && process > 1 && rest == text(" on ", host.data()) ? process : 0;
}

/// True if the process has this file open. The contents of the lock file alone prove nothing,
/// because anyone could have written them.
bool has_open(pid_t process, const FileDescriptor& file) {
  struct stat wanted {
  }, there{};
  if (::fstat(file.get(), &wanted) != 0) return false;
  std::error_code error;
  const fs::path held = text("/proc/", process, "/fd");
  for (fs::directory_iterator it(held, error), end; !error && it != end; it.increment(error)) {
    if (::stat(it->path().c_str(), &there) == 0 && there.st_dev == wanted.st_dev &&
        there.st_ino == wanted.st_ino) {
      return true;
    }
  }
  return false;
}

void measure_process(Writer& writer) {
  std::ifstream file(text("/proc/", writer.process, "/stat"));
  std::string all((std::istreambuf_iterator<char>(file)), {});
  const std::size_t name = all.rfind(')');
  if (name == std::string::npos) return;
  std::istringstream fields(all.substr(name + 1));
  std::string field;
  for (int i = 3; i <= 24 && fields >> field; ++i) {
    const double value = std::strtod(field.c_str(), nullptr);
    if (i == 14 || i == 15) writer.seconds += value / static_cast<double>(::sysconf(_SC_CLK_TCK));
    if (i == 24) writer.resident_bytes = value * static_cast<double>(::sysconf(_SC_PAGESIZE));
  }
}

/// The last non-empty line within the last 4 KiB of a file.
std::string last_line(const FileDescriptor& file) {
  std::array<char, 4096> buffer{};
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - off_t{buffer.size()});
  const ssize_t got = ::pread(file.get(), buffer.data(), buffer.size(), from);
  std::string_view text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  text = text.substr(0, text.find_last_not_of("\r\n") + 1);
  return printable(text.substr(text.rfind('\n') + 1).substr(0, 400));
}

}  // namespace

FileDescriptor LiveRun::open_metrics() {
  unread.clear();
  try {
    return open("metrics.jsonl");
  } catch (const Error& failure) {
    unread = failure.what();
    return FileDescriptor();
  }
}

std::vector<std::vector<Bucket>> LiveRun::curves_between(const std::vector<std::string>& figures,
                                                         std::int64_t from, std::int64_t to,
                                                         std::size_t points, Curves::Time until) {
  return curves.between(open_metrics(), figures, from, to, points, until);
}

bool LiveRun::read_curves(Curves::Time until) {
  const bool whole = curves.read(open_metrics(), until);
  if (curves.damaged()) {
    unread =
        text((path / "metrics.jsonl").string(), ": too many damaged lines: the rest is not read");
  }
  return whole;
}

void LiveRuns::add(const fs::path& path, const Folder& top) {
  auto number = numbers_.find(path);
  if (number == numbers_.end()) {
    if (runs_.size() >= most_runs) {
      const std::string full = text("only ", most_runs, " runs are shown");
      if (skipped_.empty() || skipped_.back() != full) skipped_.push_back(full);
      return;
    }
    number = numbers_.emplace(path, static_cast<int>(numbers_.size()) + 1).first;
  }
  const fs::path below = path.lexically_relative(top.path());
  auto found = runs_.find(number->second);
  if (found == runs_.end()) {
    fs::path name = below;
    if (name.empty() || name == ".") name = fs::absolute(path).lexically_normal();
    if (folders_.size() > 1) name = top.path().filename() / name;
    LiveRun run{.path = path, .name = printable(name.string()), .top = top, .below = below};
    found = runs_.emplace(number->second, std::move(run)).first;
  }
  LiveRun& run = found->second;
  run.present = true;
  run.top = top;
  run.read_config();
  run.complete = run.error.empty() && run.has_last_checkpoint();
  run.idle = run.find_idle_state();
}

std::string LiveRun::find_idle_state() const {
  try {
    return idle_state(folder(), false, curves.step(), Links::refuse);
  } catch (const std::exception&) {
    return "stopped";
  }
}

bool LiveRun::has_last_checkpoint() const {
  try {
    // Throws an Error if the path contains a link.
    folder().below(fs::path("checkpoints") / text("step-", steps));
    return is_finished(path, steps, evaluate_samples);
  } catch (const std::exception&) {
    return false;
  }
}

void LiveRun::read_config() {
  try {
    const FileDescriptor file = open("config.ini");
    struct stat status {};
    if (!file.valid() || ::fstat(file.get(), &status) != 0) return;
    const std::int64_t written =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    if (written == configured) return;
    configured = written;
    settings = Json::object();
    error.clear();
    // The settings are read without building the task. Building it would open the files that the
    // settings name.
    const Config config = Config::read(file, (path / "config.ini").string());
    for (const auto& [key, value] : config.settings()) settings[key] = value;
    steps = config.training().schedule.steps;
    evaluate_samples = config.training().evaluate_samples;
    ranking = ranking_scores(config);
  } catch (const std::exception& failure) {
    error = printable(message_of(failure));
    configured = 0;
  }
}

void LiveRuns::find_runs() {
  for (auto& [number, run] : runs_) run.present = false;
  skipped_.clear();
  for (const fs::path& folder : folders_) {
    try {
      const Folder top(folder);
      const FoundRuns found = runs_below(folder, Links::refuse);
      for (const fs::path& path : found.runs) add(path, top);
      for (const std::string& message : found.skipped) skipped_.push_back(printable(message));
    } catch (const std::exception& failure) {
      skipped_.push_back(printable(message_of(failure)));
    }
  }
  std::erase_if(runs_,
                [](const auto& entry) { return !entry.second.present && entry.second.child == 0; });
}

void LiveRuns::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (now >= next_look_) {
    find_runs();
    const auto after = std::chrono::steady_clock::now();
    next_look_ =
        after + std::max<std::chrono::nanoseconds>(std::chrono::seconds(3), 20 * (after - now));
  }
  for (auto& [number, run] : runs_) {
    int status = 0;
    if (run.child == 0 || ::waitpid(run.child, &status, WNOHANG) != run.child) continue;
    run.child = 0;
    const bool well = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) > 128);
    run.trouble.clear();
    if (well) continue;
    try {
      run.trouble = last_line(run.open(said_file));
    } catch (const Error& failure) {
      run.trouble = failure.what();
    }
  }
}

LiveRun& LiveRuns::at(std::string_view number) {
  int key = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), key);
  const bool read = error == std::errc() && end == number.data() + number.size();
  const auto found = read ? runs_.find(key) : runs_.end();
  LONGHAND_CHECK(found != runs_.end(), "there is no run ", quote(number));
  return found->second;
}

std::optional<Writer> LiveRuns::writer(const LiveRun& run) {
  std::optional<std::string> holder;
  FileDescriptor lock;
  try {
    lock = run.open("lock");
    if (lock.valid()) holder = writer_of(run.folder());
  } catch (const Error&) {
    return std::nullopt;  // the run was removed since the last scan, or its lock is no regular file
  }
  if (!holder) return std::nullopt;
  Writer writer{.process = process_here(*holder)};
  if (writer.process != 0 && !has_open(writer.process, lock)) writer.process = 0;
  if (writer.process != 0) measure_process(writer);
  return writer;
}

void LiveRuns::stop(const LiveRun& run) {
  const std::optional<Writer> held = writer(run);
  LONGHAND_CHECK(held, run.name, ": expected a run that is being trained");
  LONGHAND_CHECK(held->process != 0, run.name,
                 ": only the machine that trains the run can stop it");
  LONGHAND_CHECK(::kill(held->process, SIGTERM) == 0, run.name,
                 ": the process of the run cannot be signalled: ", std::strerror(errno));
}

void LiveRuns::start(LiveRun& run, const std::vector<std::string>& words) {
  LONGHAND_CHECK(run.child == 0, run.name, ": the run is busy: ", run.doing);
  LONGHAND_CHECK(run.error.empty(), run.error);
  LONGHAND_CHECK(run.open("config.ini").valid(), run.name, ": the run was removed");
  const FileDescriptor log = run.folder().create_file(said_file);
  const std::string program = "/proc/self/exe";
  std::vector<std::string> all{"longhand"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const long descriptors = std::min(::sysconf(_SC_OPEN_MAX), 1L << 16);
  const pid_t child = ::fork();
  LONGHAND_CHECK(child >= 0, run.name, ": cannot start a process: ", std::strerror(errno));
  if (child == 0) {  // after fork(), only async-signal-safe calls are allowed
    ::setsid();
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(log.get(), STDERR_FILENO);
    for (int i = 3; i < descriptors; ++i) ::close(i);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU}) ::signal(number, SIG_DFL);
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  run.child = child;
  run.doing = words.front();
  run.trouble.clear();
}

}  // namespace longhand::app
