#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>
#include "tests/check.h"

#include "core/error.h"
#include "core/json.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace longhand {

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The built program, run as a user runs it, in a folder of its own.
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

  /// Nothing on standard output, one line on standard error, that status.
  void refuses(int status, const std::string& words, const std::string& message) const {
    const Outcome outcome = (*this)(words);
    BOOST_TEST_CONTEXT("longhand " << words << " says: " << outcome.err) {
      BOOST_TEST(outcome.status == status);
      BOOST_TEST(outcome.out == "");
      BOOST_TEST(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
      BOOST_TEST(outcome.err.starts_with("longhand"));
      BOOST_TEST(outcome.err.find(message) != std::string::npos);
    }
  }

  /// The one JSON object on standard output.
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

  /// Starts it in the background; its output is lost.
  pid_t start(const std::vector<std::string>& words) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const int nowhere = ::open("/dev/null", O_RDWR);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    std::vector<char*> all{const_cast<char*>(built_program)};
    for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
    all.push_back(nullptr);
    if (::chdir(folder.path().c_str()) == 0) ::execv(built_program, all.data());
    ::_exit(127);
  }
  /// Its exit status, or minus the signal that ended it.
  static int finish(pid_t child) {
    int status = 0;
    LONGHAND_CHECK(::waitpid(child, &status, 0) == child, "cannot wait for the program");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

}  // namespace longhand
