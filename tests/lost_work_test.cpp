#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <thread>

#include "tests/program.h"
#include "tests/refusal.h"

namespace lost_work_test {

/// Tests that the command train loses no work and does not wrongly report a run as finished, even
/// if it is killed or its files are changed.

using namespace longhand;
namespace fs = std::filesystem;

const std::string tiny =
    "train --task flip-flop --task.instructions 8 --width 16 --layers 1 --heads softmax:1,fal:1 "
    "--batch 4 --evaluate_samples 5 --threads 1 --quiet ";

struct Disturbed : Program {
  std::set<std::string> checkpoints(const std::string& run) const {
    std::set<std::string> names;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder / run / "checkpoints", missing)) {
      names.insert(entry.path().filename());
    }
    return names;
  }
  /// Starts a long training and waits until it has executed some steps.
  pid_t start_training(const std::string& out, const std::string& more = "") const {
    const pid_t child = start(tiny + "--steps 1000000 --out " + out + " " + more);
    wait_for_lines(out, 5);
    return child;
  }
  void wait_for_checkpoint(const std::string& run, int step) const {
    for (int tries = 0; tries < 6000; ++tries) {
      if (checkpoints(run).contains("step-" + std::to_string(step))) return;
      ::usleep(2'000);
    }
    BOOST_FAIL("the run does not get on");
  }
  /// The state of the run as reported by `longhand runs`.
  std::string state(const std::string& run) const {
    return json("runs " + run + " --json")["rows"][0]["state"].string();
  }
  int shell(const std::string& line) const {
    const int status = std::system(("cd " + folder.path().string() + " && " + line).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Sets the last number of a safetensors file to NaN. Also removes the checksums from its header,
  /// as in files of older versions, because they would reveal the change.
  void put_nan(const std::string& file) const {
    std::string bytes = contents(folder / file);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    const std::size_t begin = bytes.find("\"crc32c\""), end = bytes.find("\"step\"");
    BOOST_REQUIRE((begin < end && end < length));
    bytes.erase(begin, end - begin).insert(8 + length - (end - begin), end - begin, ' ');
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bytes.data() + bytes.size() - sizeof nan, &nan, sizeof nan);
    std::ofstream(folder / file, std::ios::binary) << bytes;
  }
  void flip(const std::string& file, std::size_t byte) const {
    std::string bytes = contents(folder / file);
    bytes.at(byte) = static_cast<char>(bytes[byte] ^ 4);
    std::ofstream(folder / file, std::ios::binary) << bytes;
  }
};

}  // namespace lost_work_test

BOOST_FIXTURE_TEST_SUITE(lost_work_test, Disturbed)

BOOST_AUTO_TEST_CASE(distributions_too_long_for_the_model_are_skipped_by_name) {
  const std::string learned = tiny + "--steps 4 --positions learned ";
  const Json result = json(learned + "--json --out a");
  BOOST_TEST(result["finished"] == true);
  BOOST_TEST(result["scores"].contains("sparse/reads"));
  BOOST_TEST(!result["scores"].contains("2x/reads"));
  BOOST_TEST(result["scores"]["too_long"].dump() == R"(["2x","4x","drift"])");
  BOOST_TEST(checkpoints("a").contains("step-4"));
  const Outcome table = (*this)("eval a --samples 5");
  BOOST_TEST(table.status == 0);
  BOOST_TEST(contains(table.out,
                      "4x            skipped: samples of up to 64 tokens, but the model reads at "
                      "most 16"));
  refuses(1, "eval a --samples 5 --on 2x", "2x: samples of up to 32 tokens");
  refuses(1, learned + "--longest 8 --out b",
          "the model cannot read every sample of the task: the task has samples of up to 16");
  BOOST_TEST(!fs::exists(folder / "b"));
}

BOOST_AUTO_TEST_CASE(metrics_that_cannot_be_read_are_refused_and_kept) {
  json(tiny + "--steps 4 --checkpoint_every 2 --keep 3 --json --out a");
  fs::remove_all(folder / "a/checkpoints/step-4");
  fs::rename(folder / "a/metrics.jsonl", folder / "a/kept");
  fs::create_directory(folder / "a/metrics.jsonl");
  refuses(1, "train --resume a --quiet", "a/metrics.jsonl: expected a file, got a folder");
  BOOST_TEST(fs::is_directory(folder / "a/metrics.jsonl"));
  fs::remove(folder / "a/metrics.jsonl");

  // A damaged line of metrics.jsonl is reported and kept, and training continues.
  std::string text = contents(folder / "a/kept");
  text[text.find('\n') + 1] = '[';
  std::ofstream(folder / "a/metrics.jsonl") << text;
  const Outcome outcome = (*this)("train --resume a");
  BOOST_TEST(outcome.status == 0);
  BOOST_TEST(contains(outcome.err, "a/metrics.jsonl:2: damaged"));
  BOOST_TEST(contains(contents(folder / "a/metrics.jsonl"), "\n[\"step\":2,"));
  const Outcome check = (*this)("check a");
  BOOST_TEST(check.status == 1);
  BOOST_TEST(contains(check.out, "a/metrics.jsonl:2: damaged"));
}

BOOST_AUTO_TEST_CASE(a_closed_standard_error_is_not_replaced_by_a_file_of_the_run) {
  const std::string loud = tiny.substr(0, tiny.find("--quiet"));
  BOOST_TEST(shell(std::string(built_program) + " " + loud + "--steps 6 --out a <&- >&- 2>&-") ==
             0);
  BOOST_TEST(metrics("a").size() == 7u);
  BOOST_TEST(shell(std::string(built_program) + " op list >&-") == 1);
}

BOOST_AUTO_TEST_CASE(a_folder_that_was_moved_gets_the_checkpoint_and_the_run_ends) {
  const pid_t child = start_training("a");
  fs::rename(folder / "a", folder / "b");
  BOOST_TEST(finish(child) == 1);
  BOOST_TEST(!fs::exists(folder / "a"));
  BOOST_TEST(checkpoints("b").size() == 1u);
  BOOST_TEST(json("train --resume b --max-minutes 0.0001 --quiet --json")["step"].integer() > 5);
}

BOOST_AUTO_TEST_CASE(removing_the_folder_ends_the_run_and_it_is_not_created_again) {
  const pid_t child = start_training("a", "--checkpoint_every 1");
  // The folder of the run is renamed at an arbitrary moment, possibly while the program writes to
  // it.
  fs::rename(folder / "a", folder / "b");
  std::error_code error;
  while (fs::remove_all(folder / "b", error) == static_cast<std::uintmax_t>(-1)) {
  }
  BOOST_TEST(finish(child) == 1);
  BOOST_TEST(!fs::exists(folder / "a"));
  BOOST_TEST(!fs::exists(folder / "b"));
}

BOOST_AUTO_TEST_CASE(every_terminating_signal_saves_a_checkpoint_and_sets_the_exit_status) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU}) {
    const std::string out = "run" + std::to_string(signal);
    const pid_t child = start_training(out);
    ::kill(child, signal);
    BOOST_TEST(finish(child) == 128 + signal);
    BOOST_TEST(checkpoints(out).size() == 1u);
    BOOST_TEST(!fs::exists(folder / out / "lock"));
  }
}

BOOST_AUTO_TEST_CASE(a_signal_that_is_sent_twice_at_once_saves_a_checkpoint_too) {
  // GNU timeout sends the signal to the program and then to its process group, so the program
  // receives it twice.
  shell("timeout --signal=INT 1 " + std::string(built_program) + " " + tiny +
        "--steps 1000000000 --out a; echo $? >status");
  BOOST_TEST(contents(folder / "status") == "124\n");
  BOOST_TEST(checkpoints("a").size() == 1u);
  BOOST_TEST(!fs::exists(folder / "a/lock"));
  const pid_t child = start_training("b");
  for (int times = 0; times < 3; ++times) {
    ::kill(child, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  BOOST_TEST(finish(child) == 128 + SIGTERM);
  BOOST_TEST(checkpoints("b").size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_closed_pipe_saves_a_training_run_and_ends_a_listing_silently) {
  const std::string loud = tiny.substr(0, tiny.find("--quiet"));
  shell("(" + std::string(built_program) + " " + loud +
        "--steps 1000000 --out a; echo $? >status) 2>&1 | head -1 >/dev/null");
  BOOST_TEST(contents(folder / "status") == "141\n");
  BOOST_TEST(checkpoints("a").size() == 1u);
  shell("(" + std::string(built_program) + " train --help; echo $? >status) 2>err | true");
  BOOST_TEST(contents(folder / "err") == "");
}

BOOST_AUTO_TEST_CASE(a_long_step_is_abandoned_and_the_previous_step_is_saved) {
  // A step that is computed in 65536 batches (--accumulation) takes minutes.
  const pid_t child = start(
      "train --task flip-flop --width 64 --layers 2 --batch 65536 --accumulation 65536 --steps 3 "
      "--threads 1 --quiet --out a");
  for (int tries = 0; tries < 1000 && !fs::exists(folder / "a/metrics.jsonl"); ++tries) {
    ::usleep(10'000);
  }
  ::usleep(500'000);  // waits, so that the signal arrives during a step
  ::kill(child, SIGTERM);
  BOOST_TEST(finish(child) == 128 + SIGTERM);
  BOOST_TEST((checkpoints("a") == std::set<std::string>{"step-0"}));
}

BOOST_AUTO_TEST_CASE(a_grid_stopped_by_a_signal_exits_with_its_status) {
  const pid_t child = start("repro fal/table1 --scale smoke --quiet --threads 1 --out grid");
  for (int tries = 0; tries < 6000; ++tries) {
    bool running = false;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder / "grid", missing)) {
      running = running || !contents(entry.path() / "metrics.jsonl").empty();
    }
    if (running) break;
    ::usleep(10'000);
  }
  ::kill(child, SIGTERM);
  BOOST_TEST(finish(child) == 128 + SIGTERM);
  BOOST_TEST(!fs::exists(folder / "grid/report.html"));
}

BOOST_AUTO_TEST_CASE(
    a_run_stopped_in_its_last_evaluation_is_stopped_everywhere_and_resume_scores_it) {
  const std::string slow =
      "train --task flip-flop --task.instructions 8 --width 16 --layers 1 --heads softmax:1 "
      "--batch 4 --threads 1 --quiet --steps 4 --evaluate-every 2 --evaluate-samples 1500 ";
  const Json whole = json(slow + "--json --out whole");
  for (const int signal : {SIGTERM, SIGKILL}) {
    const std::string run = "run" + std::to_string(signal);
    const pid_t child = start(slow + "--out " + run);
    wait_for_checkpoint(run, 4);
    ::kill(child, signal);
    BOOST_TEST(finish(child) == (signal == SIGKILL ? -SIGKILL : 128 + SIGTERM));
    BOOST_TEST(state(run) == "stopped");
    BOOST_TEST(json("describe " + run + " --json")["state"] == "stopped");
    const Json resumed = json("train --resume " + run + " --quiet --json");
    BOOST_TEST(resumed["finished"] == true);
    BOOST_TEST(resumed["scores"] == whole["scores"]);
    BOOST_TEST(state(run) == "finished");
    const Outcome again = (*this)("train --resume " + run);
    BOOST_TEST(again.status == 0);
    BOOST_TEST(contains(again.err, run + ": finished after step 4; nothing is left to train"));
  }
}

BOOST_AUTO_TEST_CASE(a_sweep_stopped_in_its_last_evaluation_reports_it_and_completes_later) {
  const std::string slow =
      "sweep --task flip-flop --task.instructions 8 --width 16 --layers 1 --heads softmax:1 "
      "--batch 4 --steps 4 --evaluate_samples 1500 --threads 1 --quiet --grid rate=1e-3,3e-3 ";
  const Json whole = json(slow + "--evaluate-every 2 --out whole --json");
  for (const int every : {0, 2}) {
    for (const int signal : {SIGTERM, SIGKILL}) {
      const std::string out = text("s", every, "-", signal);
      const std::string command = text(slow, "--evaluate-every ", every, " --out ", out);
      const std::string first = out + "/rate-1e-3-seed-1";
      const pid_t child = start(command);
      wait_for_checkpoint(first, 4);
      ::kill(child, signal);
      BOOST_TEST(finish(child) == (signal == SIGKILL ? -SIGKILL : 128 + SIGTERM));
      BOOST_TEST(!fs::exists(folder / out / "rate-3e-3-seed-1"));
      BOOST_TEST(state(first) == "stopped");
      const Json rows = json(command + " --json")["rows"];
      BOOST_REQUIRE(rows.size() == 2u);
      for (std::size_t i = 0; i < 2; ++i) {
        BOOST_TEST(rows[i]["scores"] == whole["rows"][i]["scores"]);
      }
      BOOST_TEST(state(first) == "finished");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_text_that_changes_during_training_ends_the_run_after_saving_its_last_step) {
  std::string book;
  for (int i = 0; book.size() < 100'000; ++i) book += text("sentence ", i, " of a book. ");
  const auto change = [&](int number) {
    if (number == 0) return fs::resize_file(folder / "book", 10);
    std::fstream file(folder / "book", std::ios::in | std::ios::out);
    file.seekp(50'000);
    file << "another sentence";
  };
  for (const int number : {0, 1}) {
    const std::string run = text("run", number);
    std::ofstream(folder / "book") << book;
    fs::remove(folder / "status");
    shell("(" + std::string(built_program) +
          " train --task text --text book --task.length 16 --width 16 --layers 1 --heads softmax:1 "
          "--batch 4 --steps 1000000 --evaluate-samples 5 --threads 1 --quiet --out " +
          run + "; echo $? >status) 2>err &");
    wait_for_lines(run, 5);
    change(number);
    for (int tries = 0; tries < 1000 && contents(folder / "status").empty(); ++tries) {
      ::usleep(10'000);
    }
    BOOST_TEST(contents(folder / "status") == "1\n");
    BOOST_TEST(contents(folder / "err") ==
               "longhand train: book: was changed while it was in use\n");
    BOOST_TEST(checkpoints(run).contains(text("step-", metrics(run).size())));

    // A run is resumed only if its training text is the same as when the run began.
    refuses(1, "train --resume " + run + " --max-minutes 0 --quiet",
            text("book: differs from the file with which the run began: expected ", book.size(),
                 " bytes with checksum "));
    std::ofstream(folder / "book") << book;
    BOOST_TEST((*this)("train --resume " + run + " --max-minutes 0 --quiet").status == 0);
    // A run of an older version has no data.json with the checksums of its texts. Resuming it
    // writes this file.
    fs::remove(folder / run / "data.json");
    BOOST_TEST((*this)("train --resume " + run + " --max-minutes 0 --quiet").status == 0);
    BOOST_TEST(contains(contents(folder / run / "data.json"), text("\"bytes\": ", book.size())));
    std::ofstream(folder / run / "data.json") << "[]";
    refuses(1, "train --resume " + run + " --max-minutes 0 --quiet", "data.json: damaged");
  }
}

BOOST_AUTO_TEST_CASE(a_signal_during_tokenization_ends_the_run_with_the_status_of_the_signal) {
  std::string book;
  while (book.size() < 40'000'000) book += "ab abc cab ba ";
  std::ofstream(folder / "book") << book;
  std::ofstream(folder / "t.json")
      << R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},
      "decoder":{"type":"ByteLevel"},"model":{"type":"BPE",
      "vocab":{"a":0,"b":1,"c":2,"\u0120":3,"ab":4},"merges":["a b"]}})";
  const pid_t child = start(
      "train --task text --text book --tokenizer t.json --width 16 --layers 1 --heads softmax:1 "
      "--steps 5 --threads 1 --quiet --out a");
  const auto begun = [&] {
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path().filename().string().starts_with(".longhand-")) return true;
    }
    return false;
  };
  for (int tries = 0; tries < 1000 && !begun(); ++tries) ::usleep(10'000);
  ::kill(child, SIGTERM);
  BOOST_TEST(finish(child) == 128 + SIGTERM);
}

BOOST_AUTO_TEST_CASE(a_damaged_checkpoint_is_reported_with_the_last_undamaged_one) {
  json(tiny + "--steps 8 --checkpoint_every 2 --keep 4 --json --out a");
  BOOST_TEST((*this)("check a").status == 0);
  const std::string bits = checkpoint("a", 8);
  const std::string last = "a/checkpoints/step-8/", before = "a/checkpoints/step-6/";
  flip(last + "optimizer.safetensors",
       contents(folder / last / "optimizer.safetensors").size() - 9);
  flip(before + "model.safetensors", contents(folder / before / "model.safetensors").size() - 1);
  refuses(1, "train --resume a --quiet", "damaged: expected data with the checksum ");
  refuses(1, "train --resume a --quiet",
          "the last undamaged checkpoint is from step 4: resume from this checkpoint with "
          "--from-step 4");
  const Json check = Json::parse((*this)("check a --json").out).value();
  BOOST_TEST(check["damaged"] == 2);
  BOOST_TEST(check["rows"].size() == 7);
  refuses(1, "train --resume a --quiet --from-step 6", "step-6/model.safetensors: tensor ");
  refuses(1, "train --resume a --quiet --from-step 5", "the run has no checkpoint of step 5");
  refuses(2, "train --from-step 4 --out x", "--from-step");
  refuses(1, "eval a --step 6", "damaged");
  BOOST_TEST(json("train --resume a --quiet --from-step 4 --json")["step"] == 8);
  BOOST_TEST((checkpoint("a", 8) == bits));
  BOOST_TEST(checkpoints("a").contains("set-aside-step-8"));
  BOOST_TEST((*this)("check a").status == 0);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_is_not_what_its_name_says_is_found_and_refused) {
  const std::string train = tiny + "--steps 8 --checkpoint_every 2 --keep 4 --json --out ";
  const auto broken = [&](const std::string& run, const std::string& what,
                          const std::vector<std::string>& refusing) {
    const Outcome check = (*this)("check " + run);
    BOOST_TEST(check.status == 1);
    BOOST_TEST(contains(check.out, what));
    for (const std::string& command : refusing) refuses(1, command, what);
  };
  json(train + "a");
  BOOST_TEST((*this)("check a").status == 0);

  fs::rename(folder / "a/checkpoints/step-4", folder / "a/checkpoints/step-3");
  broken("a", "expected 3, the step in the folder's name, got 4",
         {"train --resume a --from-step 3 --quiet", "train --from a --from-step 3 --out b --quiet",
          "eval a --step 3 --samples 2", "export a --step 3 --out e"});
  fs::rename(folder / "a/checkpoints/step-3", folder / "a/checkpoints/step-4");

  const std::string best = contents(folder / "a/checkpoints/best");
  for (const char* damage : {"step-5\n", "x"}) {
    std::ofstream(folder / "a/checkpoints/best") << damage;
    broken("a", "checkpoints/best: ",
           {"generate a --prompt w1 --tokens 1", "eval a --samples 2", "export a --out e",
            "train --from a --out b --quiet", "inspect a --samples 2"});
    BOOST_TEST((*this)("generate a --step 8 --prompt w1 --tokens 1").status == 0);
    BOOST_TEST((*this)("train --resume a --quiet").status == 0);
    BOOST_TEST(contents(folder / "a/checkpoints/best") == best);
  }

  std::ofstream(folder / "a/checkpoints/step-8/score") << "nan\n";
  broken("a", "step-8/score: damaged", {"train --resume a --quiet", "eval a --step 8 --samples 2"});
  std::ofstream(folder / "a/checkpoints/step-8/score") << "0.5\n";

  put_nan("a/checkpoints/step-8/model.safetensors");
  broken(
      "a", "damaged: expected finite numbers, got 1 infinities or NaNs",
      {"generate a --step 8 --prompt w1 --tokens 1", "eval a --step 8 --samples 2",
       "export a --step 8 --out e", "train --resume a --quiet", "inspect a --step 8 --samples 2"});
  BOOST_TEST(!fs::exists(folder / "e"));
  BOOST_TEST(!fs::exists(folder / "b"));
}

BOOST_AUTO_TEST_CASE(a_second_process_in_a_run_folder_is_refused_by_name) {
  const pid_t child = start_training("a");
  refuses(1, "train --resume a --quiet",
          "a: the folder is in use by process " + std::to_string(child));
  ::kill(child, SIGKILL);
  BOOST_TEST(finish(child) == -SIGKILL);
  BOOST_TEST(fs::exists(folder / "a/lock"));  // the killed process has left its lock file
  BOOST_TEST(json("train --resume a --max-minutes 0 --quiet --json")["step"] == 1);
  BOOST_TEST(!fs::exists(folder / "a/lock"));
}

BOOST_AUTO_TEST_CASE(leftovers_of_killed_runs_are_removed_and_empty_checkpoints_ignored) {
  json(tiny + "--steps 4 --checkpoint_every 2 --keep 3 --json --out a");
  fs::remove_all(folder / "a/checkpoints/step-4");
  std::ofstream(folder / "a/.longhand-1-0.tmp") << "half";
  fs::create_directories(folder / "a/checkpoints/step-999999");
  fs::create_directories(folder / "a/checkpoints/.unfinished-1-step-4");
  const Json result = json("train --resume a --quiet --json");
  BOOST_TEST(result["step"] == 4);
  BOOST_TEST(!fs::exists(folder / "a/.longhand-1-0.tmp"));
  BOOST_TEST(!fs::exists(folder / "a/checkpoints/.unfinished-1-step-4"));
  BOOST_TEST(json("eval a --samples 5 --json")["step"] == 4);
}

namespace {

/// Runs the program with a limit of `most` processes and threads for its user, and returns its exit
/// status. Its output and messages are written to the file `said`.
int run_with_limit(rlim_t most, std::vector<const char*> words, const std::string& said) {
  const int err = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  BOOST_REQUIRE(err >= 0);
  words.insert(words.begin(), built_program);
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(err, STDERR_FILENO);
    ::dup2(err, STDOUT_FILENO);
    // Root is exempt from the limit, so a test that runs as root first changes to another user.
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_NPROC, &limit);
    if (::geteuid() == 0 && (::setgid(61234) != 0 || ::setuid(61234) != 0)) ::_exit(126);
    ::setenv("OMP_NUM_THREADS", "4", 1);
    ::alarm(60);  // ends the program if it hangs
    ::execv(built_program, const_cast<char* const*>(words.data()));
    ::_exit(127);
  }
  ::close(err);
  return Program::finish(child);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_that_only_counts_threads_starts_none) {
  BOOST_TEST(run_with_limit(1, {"info", "--json"}, path("err")) == 0);
  const Json info = Json::parse(contents(folder / "err")).value();
  BOOST_TEST(info["threads"].integer() >= 1);
  for (const Json& backend : info["backends"]) {
    BOOST_TEST((backend["name"] == "cuda" || backend["available"].boolean()));
  }
}

BOOST_AUTO_TEST_CASE(a_failure_to_start_threads_is_reported_in_one_line) {
  for (int tries = 0; tries < 5; ++tries) {
    BOOST_TEST(run_with_limit(2,
                              {"train", "--task", "flip-flop", "--threads", "4", "--quiet", "--out",
                               "/nowhere/run"},
                              path("err")) == 1);
    const std::string said = contents(folder / "err");
    BOOST_TEST(std::count(said.begin(), said.end(), '\n') == 1, said);
    BOOST_TEST(contains(said, "threads: expected 4 threads, could start only "));
  }
}

BOOST_AUTO_TEST_SUITE_END()
