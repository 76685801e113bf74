#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>
#include "tests/check.h"

#include "core/error.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "tests/contents.h"
#include "tests/paths.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace longhand {

/// Runs the built program `longhand` as a user does, in a temporary folder of its own.
struct Program {
  struct Outcome {
    int status;
    std::string out, err;
  };
  TemporaryFolder folder;

  std::string path(const std::string& name) const { return (folder / name).string(); }

  Outcome operator()(const std::string& words, const std::string& environment = "") const {
    const std::string line = "cd " + folder.path().string() + " && " + environment + " " +
                             std::string(built_program) + " " + words + " >stdout 2>stderr";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(path("stdout")),
            contents(path("stderr"))};
  }

  /// Checks that the program exits with this status, prints nothing to standard output, and prints
  /// one line that contains `message` to standard error.
  void refuses(int status, const std::string& words, const std::string& message) const {
    const Outcome outcome = (*this)(words);
    BOOST_TEST_CONTEXT("longhand " << words << " says: " << outcome.err) {
      BOOST_TEST(outcome.status == status);
      BOOST_TEST(outcome.out == "");
      const bool bare = words.find(' ') == std::string::npos && contains(outcome.err, "\nusage\n");
      BOOST_TEST((bare || std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1));
      BOOST_TEST(outcome.err.starts_with("longhand"));
      BOOST_TEST(contains(outcome.err, message));
    }
  }

  /// Runs the program and returns the single JSON object that it prints to standard output.
  Json json(const std::string& words) const {
    const Outcome outcome = (*this)(words);
    BOOST_TEST_CONTEXT("longhand " << words << " says: " << outcome.err) {
      BOOST_TEST(outcome.status == 0);
      BOOST_TEST(outcome.err == "");
      BOOST_TEST(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 1);
      const Json object = Json::parse(outcome.out).value_or(nullptr);
      BOOST_REQUIRE(object.is_object());
      return object;
    }
    return {};
  }

  /// The lines of metrics.jsonl in the folder of a run.
  std::vector<Json> metrics(const std::string& run) const {
    std::vector<Json> all;
    std::istringstream lines(contents(folder / run / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line).value());
    return all;
  }
  /// The bytes of the checkpoint of a run at this step: first the model, then the optimizer.
  std::string checkpoint(const std::string& run, int step) const {
    const auto at = folder / run / "checkpoints" / ("step-" + std::to_string(step));
    return contents(at / "model.safetensors") + contents(at / "optimizer.safetensors");
  }
  SafetensorsFile model(const std::string& run, int step) const {
    return SafetensorsFile::open(
        path(run + "/checkpoints/step-" + std::to_string(step) + "/model.safetensors"));
  }
  /// Waits until metrics.jsonl of a run has at least `lines` lines.
  void wait_for_lines(const std::string& run, int lines) const {
    for (int tries = 0; tries < 6000; ++tries) {
      const std::string text = contents(folder / run / "metrics.jsonl");
      if (std::count(text.begin(), text.end(), '\n') >= lines) return;
      ::usleep(10'000);
    }
    BOOST_FAIL("the run does not get on");
  }

  /// Starts the program in the background and discards its output. Arguments must not contain
  /// spaces.
  pid_t start(const std::string& line) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    // The child process inherits ignored signals. Some are ignored if the tests run under nohup or
    // as a background job of a script.
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_DFL);
    const int nowhere = ::open("/dev/null", O_RDWR);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    std::istringstream split(line);
    std::vector<std::string> words{std::istream_iterator<std::string>(split), {}};
    std::vector<char*> all{const_cast<char*>(built_program)};
    for (std::string& word : words) all.push_back(word.data());
    all.push_back(nullptr);
    if (::chdir(folder.path().c_str()) == 0) ::execv(built_program, all.data());
    ::_exit(127);
  }
  /// The peak memory of the program in MiB. Its exit status must be 0.
  std::int64_t peak_mib(const std::string& line) const {
    int status = 0;
    rusage usage{};
    const pid_t child = start(line);
    LONGHAND_CHECK(::wait4(child, &status, 0, &usage) == child, "cannot wait for the program");
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0), "longhand " << line);
    return usage.ru_maxrss / 1024;
  }
  /// Waits for the program to end and returns its exit status. If a signal ended the program,
  /// returns minus the number of the signal.
  static int finish(pid_t child) {
    int status = 0;
    LONGHAND_CHECK(::waitpid(child, &status, 0) == child, "cannot wait for the program");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

}  // namespace longhand
