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

#include "apps/run/run_summary.h"
#include "core/quote.h"

namespace longhand::app {
namespace {

namespace fs = std::filesystem;

const std::string said_file = "serve.log";  // what a started command says, in the run's folder

/// The number in "process 123 on HOST", where HOST is this one; otherwise 0.
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

/// Whether the process has that file open: that a lock's file names it is no proof.
bool has_open(pid_t process, const fs::path& file) {
  struct stat wanted {
  }, there{};
  if (::stat(file.c_str(), &wanted) != 0) return false;
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

std::string last_line(const fs::path& file) {
  std::ifstream said(file);
  std::string last;
  for (std::string line; last.size() < 4096 && std::getline(said, line);) {
    if (!line.empty()) last = line;
  }
  return printable(std::string_view(last).substr(0, 400));
}

}  // namespace

void LiveRuns::add(const fs::path& path, const fs::path& below) {
  auto number = numbers_.find(path);
  if (number == numbers_.end()) {
    if (runs_.size() >= most_runs) return;
    number = numbers_.emplace(path, static_cast<int>(numbers_.size()) + 1).first;
  }
  auto found = runs_.find(number->second);
  if (found == runs_.end()) {
    fs::path name = path.lexically_relative(below);
    if (name.empty() || name == ".") name = fs::absolute(path).lexically_normal();
    if (folders_.size() > 1) name = below.filename() / name;
    found = runs_
                .emplace(number->second, LiveRun{.path = path,
                                                 .name = printable(name.string()),
                                                 .curves = Curves(path / "metrics.jsonl")})
                .first;
  }
  LiveRun& run = found->second;
  run.present = true;
  std::error_code error;
  const auto written = fs::last_write_time(path / "config.ini", error);
  if (error || written == run.configured) return;
  run.configured = written;
  run.settings = Json::object();
  run.error.clear();
  try {
    const RunFolder folder(path);
    const Config& config = folder.config();
    for (const auto& [key, value] : config.settings()) run.settings[key] = value;
    run.steps = config.integer("training.steps", 0, std::int64_t{1} << 40);
    run.evaluate_samples = config.integer("training.evaluate_samples", 0, 1 << 24);
    run.metric = text(config.kind().distributions.front().name, "/", config.task()->main_metric());
  } catch (const std::exception& failure) {
    run.error = printable(failure.what());
  }
}

void LiveRuns::find_runs() {
  for (auto& [number, run] : runs_) run.present = false;
  for (const fs::path& folder : folders_) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) continue;
    try {
      for (const fs::path& path : runs_below(folder)) add(path, folder);
    } catch (const std::exception&) {
      continue;  // it changed as it was read; the next look finds it
    }
  }
  std::erase_if(runs_,
                [](const auto& entry) { return !entry.second.present && entry.second.child == 0; });
}

void LiveRuns::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ > std::chrono::seconds(3)) {
    find_runs();
    looked_ = std::chrono::steady_clock::now();
  }
  for (auto& [number, run] : runs_) {
    int status = 0;
    if (run.child == 0 || ::waitpid(run.child, &status, WNOHANG) != run.child) continue;
    run.child = 0;
    const bool well = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) > 128);
    run.trouble = well ? "" : last_line(run.path / said_file);
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
  std::error_code error;
  if (!fs::exists(run.path / "lock", error)) return std::nullopt;
  std::optional<std::string> holder;
  try {
    holder = writer_of(Folder(run.path));
  } catch (const Error&) {
    return std::nullopt;  // it was removed meanwhile
  }
  if (!holder) return std::nullopt;
  Writer writer{.process = process_here(*holder)};
  if (writer.process != 0 && !has_open(writer.process, run.path / "lock")) writer.process = 0;
  if (writer.process != 0) measure_process(writer);
  return writer;
}

void LiveRuns::stop(const LiveRun& run) {
  const std::optional<Writer> held = writer(run);
  LONGHAND_CHECK(held, run.name, ": nobody trains it now");
  LONGHAND_CHECK(held->process != 0, run.name, ": is trained on another machine");
  LONGHAND_CHECK(::kill(held->process, SIGTERM) == 0, run.name,
                 ": its process cannot be signalled: ", std::strerror(errno));
}

void LiveRuns::start(LiveRun& run, const std::vector<std::string>& words) {
  LONGHAND_CHECK(run.child == 0, run.name, ": is busy: ", run.doing);
  LONGHAND_CHECK(run.error.empty(), run.error);
  const std::string program = "/proc/self/exe", said = (run.path / said_file).string();
  std::vector<std::string> all{"longhand"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const long descriptors = std::min(::sysconf(_SC_OPEN_MAX), 1L << 16);
  const pid_t child = ::fork();
  LONGHAND_CHECK(child >= 0, run.name, ": no process can be started: ", std::strerror(errno));
  if (child == 0) {  // from here on only what is allowed after fork
    ::setsid();
    const int nothing = ::open("/dev/null", O_RDWR);
    const int log = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(log >= 0 ? log : nothing, STDERR_FILENO);
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
