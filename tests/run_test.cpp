#include <pty.h>

#include <map>
#include <set>

#include "tests/program.h"
#include "tests/refusal.h"

namespace run_test {

/// Tests the commands train, eval, generate, data and repro. The tests execute the program as a
/// user does.

using namespace longhand;
namespace fs = std::filesystem;

const std::string tiny =
    "--task flip-flop --task.instructions 8 --width 16 --layers 1 --heads softmax:1,fal:1 "
    "--batch 4 --steps 6 --evaluate_samples 5 --threads 1 ";

struct RunCommands : Program {
  Json train(const std::string& out, const std::string& more = "") const {
    return json("train " + tiny + more + " --quiet --json --out " + out);
  }
};

}  // namespace run_test

BOOST_FIXTURE_TEST_SUITE(run_test, RunCommands)

BOOST_AUTO_TEST_CASE(a_run_folder_has_all_its_files) {
  const Json result = train("a");
  BOOST_TEST(result["run"] == "a");
  BOOST_TEST(result["step"] == 6);
  BOOST_TEST(result["finished"] == true);
  BOOST_TEST(result["scores"].contains("train/reads"));
  for (const char* name :
       {"config.ini", "metrics.jsonl", "report.html", "checkpoints/step-6/model.safetensors",
        "checkpoints/step-6/optimizer.safetensors"}) {
    BOOST_TEST(fs::exists(folder / "a" / name), name);
  }
  int steps = 0;
  for (const Json& line : metrics("a")) {
    if (line.contains("loss")) BOOST_TEST(line["step"] == ++steps);
  }
  BOOST_TEST(steps == 6);
  bool events = false;
  for (const auto& entry : fs::directory_iterator(folder / "a")) {
    events = events || entry.path().filename().string().starts_with("events.out.tfevents.");
  }
  BOOST_TEST(events);

  // The run's config.ini alone reproduces the run bit for bit.
  BOOST_TEST(json("train --config a/config.ini --quiet --json --out b")["scores"] ==
             result["scores"]);
  BOOST_TEST(checkpoint("a", 6).size() > 1000);
  BOOST_TEST((checkpoint("b", 6) == checkpoint("a", 6)));
  BOOST_TEST(train("c", "--seed 2")["run"] == "c");
  BOOST_TEST((checkpoint("c", 6) != checkpoint("a", 6)));

  // A run that is stopped by its time limit after every step still ends if it is resumed each time.
  const Json first = json("train --config a/config.ini --max-minutes 0 --quiet --json --out d");
  BOOST_TEST(first["step"] == 1);
  BOOST_TEST(first["finished"] == false);
  for (int step = 2; step <= 6; ++step) {
    // Each resume uses another number of threads, which must change no bit of the checkpoint.
    const std::string threads = " --threads " + std::to_string(1 + step % 3);
    BOOST_TEST(json("train --resume d --max-minutes 0 --quiet --json" + threads)["step"] == step);
  }
  BOOST_TEST((checkpoint("d", 6) == checkpoint("a", 6)));

  // Resuming a finished run changes nothing.
  const Json again = json("train --resume a --quiet --json");
  BOOST_TEST(again["finished"] == true);
  BOOST_TEST(again["scores"] == result["scores"]);
  BOOST_TEST((checkpoint("a", 6) == checkpoint("b", 6)));
}

BOOST_AUTO_TEST_CASE(progress_shows_the_share_of_the_peak_if_it_is_known) {
  const auto said = [&](const std::string& backend) {
    const Outcome outcome = (*this)("train " + tiny + "--backend " + backend + " --out " + backend);
    BOOST_TEST(outcome.status == 0);
    const auto begin = outcome.err.find("\nstep 1/");
    return outcome.err.substr(begin, outcome.err.find('\n', begin + 1) - begin);
  };
  BOOST_TEST(contains(said("cpu"), "% of peak  "));
  BOOST_TEST(contains(said("reference"), "  peak unknown  "));
}

BOOST_AUTO_TEST_CASE(invalid_settings_are_refused_in_one_line_and_leave_no_folder) {
  const std::string out = " --out x";
  // config_test.cpp tests every invalid flag. This test has one invalid flag from each section.
  refuses(2, "train --steps many" + out, "--steps");
  refuses(2, "train --heads soft:4" + out, "soft:4");
  refuses(2, "train --task.ignore 2" + out, "--task.ignore");
  refuses(2, "train --backend tpu" + out, "tpu");
  refuses(2, "train --seed -1" + out, "--seed");
  refuses(2, "train more" + out, "more");
  refuses(1, "train --config absent.ini" + out, "absent.ini");
  std::ofstream(path("bad.ini")) << "[task]\nname = flip-flop\nbogus = 1\n";
  refuses(1, "train --config bad.ini" + out, "bad.ini:3");
  refuses(1, "train --task cycle-tracing --task.max-nodes 300" + out, "max-nodes");
  refuses(1, "train " + tiny + "--out bad.ini/x", "bad.ini/x");
  refuses(1, "train " + tiny + "--quiet --out /proc/x", "/proc/x");
  BOOST_TEST(!fs::exists(folder / "x"));
  BOOST_TEST(!fs::exists(folder / "runs"));
}

BOOST_AUTO_TEST_CASE(a_finished_run_can_be_trained_for_more_steps) {
  const std::string constant = "--schedule constant --warm_up 1 ";
  train("a", constant);
  std::string nine = tiny;
  nine.replace(nine.find("--steps 6"), 9, "--steps 9");
  json("train " + nine + constant + "--quiet --json --out b");
  const Outcome longer = (*this)("train --resume a --steps 9 --threads 2");
  BOOST_TEST(longer.status == 0);
  BOOST_TEST(contains(longer.err, "# extended from 6 to 9 steps; the result has the same bits"));
  BOOST_TEST((checkpoint("a", 9) == checkpoint("b", 9)));
  BOOST_TEST(contains(contents(path("a/config.ini")), "steps = 9\n"));
  std::vector<Json> losses[2];
  for (int i = 0; i < 2; ++i) {
    for (const Json& line : metrics(i == 0 ? "a" : "b")) {
      if (line.contains("loss")) losses[i].push_back(line["loss"]);
    }
  }
  BOOST_TEST(losses[0].size() == 9u);
  BOOST_TEST((losses[0] == losses[1]));

  // A linear schedule ends with a rate near 0. If the run is extended, the schedule is stretched
  // over the new number of steps.
  train("c", "--warm_up 1 --rate 1e-3");
  const Outcome stretched = (*this)("train --resume c --steps 11");
  BOOST_TEST(stretched.status == 0);
  BOOST_TEST(contains(stretched.err,
                      "# extended from 6 to 11 steps; the linear schedule now covers "
                      "all 11 steps: the rate is 0.0002 in step 6 and 0.0005 in step 7"));
  BOOST_TEST(contains((*this)("train --resume c").err, "c: finished after step 11"));
  // A warm-up of 50% of the steps becomes longer if the run is extended. The result then differs
  // from that of a run that had 12 steps from the start.
  train("d", "--schedule constant --warm-up 50%");
  BOOST_TEST(contains((*this)("train --resume d --steps 12").err,
                      "# extended from 6 to 12 steps; the constant schedule now covers"));
  // A warm-up that the run does not finish is reported.
  const std::string unfinished = "the run ends during the warm-up of ";
  BOOST_TEST(contains((*this)("train " + tiny + "--out e").err, unfinished + "100 steps"));
  BOOST_TEST(!contains((*this)("train " + tiny + "--warm-up 10% --out f").err, unfinished));
}

BOOST_AUTO_TEST_CASE(unsuitable_folders_are_refused_in_one_line) {
  train("a");
  refuses(1, "train " + tiny + "--out a", "a: the folder already holds a run");
  refuses(1, "train --resume absent", "absent: expected a run folder, but there is no such folder");
  fs::create_directory(folder / "empty");
  refuses(1, "eval empty", "empty: expected a run folder, but the folder has no config.ini");
  refuses(1, "check a/config.ini", "a/config.ini: expected a run folder, got a file");
  fs::copy_file(folder / "a/config.ini", folder / "model.gguf");
  refuses(1, "chat model.gguf", "expected a run folder, got a file; `longhand import` makes a run");
  refuses(2, "train --resume a --rate 9", "--rate: cannot be combined with --resume");
  refuses(2, "train --resume a --steps 2", "--steps: expected more than the ");
  refuses(2, "eval", "run folder");
  refuses(1, "eval absent", "absent");
  refuses(1, "eval a --step 3", "step 3");
  refuses(2, "eval a --on nowhere", "nowhere");
  refuses(2, "eval a --samples 0", "--samples");
  refuses(2, "eval a --reading aloud", "aloud");
  refuses(2, "eval a --math sloppy", "--math");
  refuses(2, "generate a", "--prompt");
  refuses(2, "generate a --prompt wx", "--prompt");
  refuses(2, "generate a --prompt w1 --stop x", "--stop");
  refuses(2, "generate a --prompt ''", "--prompt");

  fs::create_directories(folder / "empty");
  fs::copy(folder / "a/config.ini", folder / "empty/config.ini");
  refuses(1, "eval empty", "empty: the run has no checkpoint");

  // If a checkpoint belongs to another model, the message names a tensor. The run stays unchanged.
  std::string ini = contents(folder / "a/config.ini");
  ini.replace(ini.find("width = 16"), 10, "width = 32");
  std::ofstream(path("a/config.ini")) << ini;
  refuses(1, "eval a", "embedding.weight");
  refuses(1, "train --resume a --quiet", "embedding.weight");

  // If the file of a checkpoint was cut short, the message names the file.
  train("b");
  fs::resize_file(folder / "b/checkpoints/step-6/model.safetensors", 1000);
  refuses(1, "eval b", "model.safetensors");
}

BOOST_AUTO_TEST_CASE(broken_files_of_a_run_are_named_in_one_line) {
  train("whole");
  const auto with = [&](const std::string& file, const std::string& content) {
    fs::remove_all(folder / "a");
    fs::copy(folder / "whole", folder / "a", fs::copy_options::recursive);
    std::ofstream(folder / "a" / file, std::ios::binary) << content;
  };
  const std::string garbage("\xbf\x45\xda\x00\n[]\xff", 8),
      huge("\xff\xff\xff\xff\xff\xff\xff\x7f{", 9);
  const std::string model = "checkpoints/step-6/model.safetensors",
                    optimizer = "checkpoints/step-6/optimizer.safetensors";
  for (const std::string& content : {std::string(), garbage, std::string("[task]\n")}) {
    with("config.ini", content);
    refuses(1, "eval a", "a/config.ini");
    refuses(1, "train --resume a", "a/config.ini");
  }
  for (const std::string& content : {std::string(), garbage, huge}) {
    with(model, content);
    refuses(1, "eval a", model);
    refuses(1, "generate a --prompt w1", model);
    refuses(1, "inspect a", model);
    with(optimizer, content);
    refuses(1, "train --resume a --quiet", optimizer);
  }
  with("config.ini", contents(folder / "whole/config.ini") + "width = 16\n");
  refuses(1, "eval a", "unknown setting");
  with(model, "");
  fs::remove(folder / "a" / model);
  refuses(1, "eval a", model);
  with(optimizer, "");
  fs::remove(folder / "a" / optimizer);
  refuses(1, "train --resume a --quiet", optimizer);
  refuses(1, "eval whole/config.ini", "expected a run folder");
  refuses(1, "train --resume whole/metrics.jsonl", "expected a run folder");
  refuses(1, "train " + tiny + "--out ''", "run folder");
  refuses(1, "train " + tiny + "--quiet --out whole/metrics.jsonl", "metrics.jsonl");

  // Invalid lines of metrics.jsonl are kept in the file and skipped by readers. The report can be
  // made without metrics.
  with("metrics.jsonl", garbage + "\n{\"loss\": 1}\n");
  BOOST_TEST(json("train --resume a --quiet --json")["step"] == 6);
  BOOST_TEST(json("train --task flip-flop --task.instructions 8 --width 16 --layers 1 --steps 0 "
                  "--evaluate_samples 0 --quiet --json --out none")["step"] == 0);
  BOOST_TEST(contents(folder / "none/report.html").ends_with("</html>\n"));
}

BOOST_AUTO_TEST_CASE(a_run_interrupted_by_a_signal_resumes_to_the_same_bits) {
  const std::string words =
      "train --task flip-flop --task.instructions 8 --width 16 --layers 1 --batch 4 "
      "--heads softmax:1,fal:1 --evaluate_samples 5 --steps 400 --quiet --json ";
  json(words + "--threads 1 --out whole");
  int cuts = 0;
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string out = "cut" + std::to_string(signal);
    const pid_t child = start(words + "--threads 2 --out " + out);
    wait_for_lines(out, 5);
    ::kill(child, signal);
    BOOST_TEST(finish(child) == 128 + signal);
    if (!fs::exists(folder / out / "checkpoints/step-400")) ++cuts;
    BOOST_TEST(json("train --resume " + out + " --quiet --json")["step"] == 400);
    BOOST_TEST((checkpoint(out, 400) == checkpoint("whole", 400)));
    // metrics.jsonl contains every step once.
    std::set<std::int64_t> steps;
    for (const Json& line : metrics(out)) {
      if (line.contains("loss")) BOOST_TEST(steps.insert(line["step"].integer()).second);
    }
    BOOST_TEST(steps.size() == 400u);
  }
  BOOST_TEST(cuts == 2);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_reported_in_one_line_and_keeps_the_last_good_checkpoint) {
  train("a", "--checkpoint_every 2 --keep 3");
  fs::copy(folder / "a", folder / "b", fs::copy_options::recursive);
  fs::remove(folder / "b/checkpoints/best");
  fs::remove_all(folder / "b/checkpoints/step-6");
  // A file size limit of 4 KiB simulates a full disk: the metrics fit, but a checkpoint does not.
  const Outcome outcome = (*this)("train --resume b --quiet", "trap '' XFSZ; ulimit -f 8;");
  BOOST_TEST(outcome.status == 1);
  BOOST_TEST(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  BOOST_TEST(contains(outcome.err, "b/checkpoints/"));
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder / "b/checkpoints")) {
    left.insert(entry.path().filename());
  }
  BOOST_TEST(left == (std::set<std::string>{"step-2", "step-4"}), boost::test_tools::per_element());
  json("train --resume b --quiet --json");
  BOOST_TEST((checkpoint("b", 6) == checkpoint("a", 6)));
}

BOOST_AUTO_TEST_CASE(a_run_with_split_checkpoints_works_like_any_other) {
  const std::string wide =
      "train --task flip-flop --task.instructions 8 --width 192 --layers 1 --batch 4 --steps 4 "
      "--evaluate_samples 5 --threads 1 --checkpoint_every 2 --quiet --json ";
  const Json whole = json(wide + "--out whole"), parts = json(wide + "--part_mib 1 --out parts");
  BOOST_TEST(whole["scores"] == parts["scores"]);
  const fs::path step = folder / "parts/checkpoints/step-4";
  const auto files = [&](const fs::path& path) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(path)) {
      all[entry.path().filename()] = contents(entry.path());
      BOOST_TEST(entry.file_size() <= std::size_t{1} << 20);
    }
    return all;
  };
  const auto written = files(step);
  BOOST_TEST(written.contains("model-00001-of-00002.safetensors"));
  BOOST_TEST(written.contains("optimizer.safetensors.index.json"));
  BOOST_TEST(!written.contains("model.safetensors"));

  // The resumed run has the same bits as an uninterrupted one.
  fs::remove_all(step);
  fs::remove(folder / "parts/checkpoints/best");
  BOOST_TEST(json("train --resume parts --quiet --json")["step"] == 4);
  BOOST_TEST((files(step) == written));

  for (const auto& [command, flags, result] :
       {std::array{"eval ", " --samples 20", "rows"},
        {"inspect ", " --samples 20", "rows"},
        {"generate ", " --prompt w1i0r --tokens 3", "tokens"}}) {
    const auto of = [&, begin = std::string(command), end = std::string(flags),
                     member = std::string(result)](const std::string& run) {
      return json(begin + run + end + " --json")[member];
    };
    BOOST_TEST(of("parts") == of("whole"), command);
  }
  json("export whole --out one --json");
  json("export parts --part_mib 1 --out several --json");
  BOOST_TEST(files(folder / "several").contains("model.safetensors.index.json"));
  refuses(1, "export parts --part_mib 1 --out several", "expected a folder without a model");
  json("import several --task flip-flop --task.instructions 8 --part_mib 1 --out again --json");
  // At least three files: the index and two parts of the model. There is no optimizer file.
  BOOST_TEST(files(folder / "again/checkpoints/step-0").size() >= 3u);
  json("export again --out back --json");
  BOOST_TEST(
      (contents(folder / "back/model.safetensors") == contents(folder / "one/model.safetensors")));

  // A tensor that is larger than a part is reported before anything is written.
  refuses(1, "train --task flip-flop --width 768 --part_mib 1 --out x",
          "expected at most 1048576 bytes including the header of the file, got ");
  refuses(2, "train --task flip-flop --part_mib -1 --out x", "--part-mib");
  refuses(2, "repro fal/table1 --part_mib many --out x", "--part-mib");
  BOOST_TEST(!fs::exists(folder / "x"));
}

BOOST_AUTO_TEST_CASE(eval_reports_every_distribution_with_intervals) {
  train("a");
  const Json forced = json("eval a --samples 20 --json");
  const Json decoded = json("eval a --samples 20 --reading decoded --json");
  BOOST_TEST(forced["step"] == 6);
  BOOST_TEST(forced["rows"].size() == 10);  // five distributions with two metrics each
  BOOST_TEST(decoded["reading"] == "decoded");
  for (const Json& row : forced["rows"]) {
    BOOST_TEST(row["low"].number() <= row["value"].number());
    BOOST_TEST(row["value"].number() <= row["high"].number());
  }
  BOOST_TEST(json("eval a --samples 20 --json")["rows"] == forced["rows"]);
  BOOST_TEST(json("eval a --samples 20 --on 4x --threads 2 --json")["rows"].size() == 2);
  const Outcome table = (*this)("eval a --samples 20 --on train");
  BOOST_TEST(contains(table.out, "sequences"));
  BOOST_TEST(table.out.find('\033') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(generate_continues_the_prompt) {
  train("a");
  const Outcome one = (*this)("generate a --prompt w1i0r --tokens 5");
  BOOST_TEST(one.status == 0);
  BOOST_TEST(one.out.size() == 11u);
  BOOST_TEST(one.out.starts_with("w1i0r"));
  const Json all = json("generate a --prompt w1i0r --tokens 40 --json");
  BOOST_TEST(all["tokens"].size() == 40u);  // more tokens than in the trained sequences
  BOOST_TEST(("w1i0r" + all["text"].string()).substr(0, 10) == one.out.substr(0, 10));
  const std::string first(1, all["text"].string()[0]);
  BOOST_TEST(json("generate a --prompt w1i0r --stop " + first + " --json")["text"] == first);
}

BOOST_AUTO_TEST_CASE(inspect_draws_every_head_and_scores_the_reads_of_fal_heads) {
  json(
      "train --task flip-flop --task.instructions 8 --width 16 --layers 2 --heads softmax:2,fal:2 "
      "--batch 4 --steps 6 --evaluate_samples 5 --threads 1 --quiet --json --out a");
  const Json report = json("inspect a --samples 20 --json");
  BOOST_TEST(report["rows"].size() == 4);  // two layers with two FAL heads each
  for (const Json& row : report["rows"]) {
    BOOST_TEST(row["head"].integer() >= 2);
    BOOST_TEST(row["count"] == report["rows"][0]["count"]);
    BOOST_TEST(row["low"].number() <= row["value"].number());
  }
  const std::string page = contents(folder / report["page"].string());
  for (int layer = 0; layer < 2; ++layer) {
    for (int head = 0; head < 4; ++head) {
      const std::string name = "Layer " + std::to_string(layer) + ", head " + std::to_string(head);
      BOOST_TEST(contains(page, name));
    }
  }
  refuses(2, "inspect", "run folder");
  refuses(2, "inspect a --tokens 0", "--tokens");
  refuses(2, "inspect a --on nowhere", "nowhere");
  refuses(1, "inspect a --out absent/page.html", "absent/page.html");
}

// The tasks words, recall and chains predict a label of the current token instead of the next
// token.
BOOST_AUTO_TEST_CASE(labels_are_trained_and_scored_but_not_decoded) {
  const std::map<std::string, std::string> tasks{
      {"words", "--task.group s3 --task.max 8 "},
      {"recall", "--task.tokens 16-32 --task.pairs 4 --task.vocabulary 512 "},
      {"chains", "--task.blocks 2 --task.size 3 "}};
  for (const auto& [name, options] : tasks) {
    const std::string train = "train --task " + name + " " + options +
                              "--width 16 --layers 1 --heads softmax:2 --batch 4 --steps 6 "
                              "--evaluate_samples 5 --quiet --json --out ";
    const Json scores = json(train + name + " --threads 1")["scores"];
    json(train + name + "-3 --threads 3");
    BOOST_TEST((checkpoint(name, 6) == checkpoint(name + "-3", 6)));
    BOOST_TEST(scores.contains("train/above-chance") == (name == "words"));
    refuses(1, "eval " + name + " --reading decoded",
            "expected a task that predicts the next token");
    refuses(1, "generate " + name + " --prompt 1", "does not predict the next token");
    const Outcome line = (*this)("data --task " + name + " " + options + "--count 1");
    BOOST_TEST(contains(line.out, " -> "));
    const Outcome lines = (*this)("data --task " + name + " " + options + "--count 5 --json");
    std::ofstream(path("labels.jsonl")) << lines.out;
    BOOST_TEST(json("data check labels.jsonl --json --task " + name + " " + options)["wrong"] == 0);
    BOOST_TEST((*this)("inspect " + name + " --out " + path("page.html")).status == 0);
  }
  BOOST_TEST((*this)("inspect recall --reference --samples 5").status == 0);
}

BOOST_AUTO_TEST_CASE(data_shows_samples_and_judges_answers) {
  const Outcome three = (*this)("data --task flip-flop --task.instructions 4 --count 3");
  BOOST_TEST(three.status == 0);
  BOOST_TEST(three.out.size() == 3 * 9u);
  const Outcome lines = (*this)("data --task cycle-tracing --count 2 --json --mask");
  std::ofstream(path("good.jsonl")) << lines.out;
  BOOST_TEST(contains(lines.out, "\"mask\":[{"));
  BOOST_TEST(json("data check good.jsonl --task cycle-tracing --json")["wrong"] == 0);
  std::ofstream(path("bad.jsonl")) << R"({"prompt": "w1i0r", "answer": "0"})" << '\n';
  const Outcome bad = (*this)("data check bad.jsonl --task flip-flop");
  BOOST_TEST(bad.status == 1);
  BOOST_TEST(contains(bad.out, "expected r1"));
  refuses(2, "data --on nowhere", "--on");
  refuses(2, "data --count -1", "--count");
  refuses(2, "data --head 1", "--head");
  refuses(2, "data check", "check FILE");
  refuses(1, "data check absent.jsonl", "absent.jsonl");
  std::ofstream(path("broken.jsonl")) << "{\"prompt\": 1}\n";
  refuses(1, "data check broken.jsonl", "broken.jsonl:1");
}

BOOST_AUTO_TEST_CASE(repro_lists_its_recipes_and_refuses_unknown_ones) {
  const Json list = json("repro list --json");
  BOOST_TEST(!list["rows"].empty());
  for (const Json& row : list["rows"]) BOOST_TEST(row.contains("smoke"));
  refuses(2, "repro", "list");
  refuses(2, "repro fal/table9", "fal/table9");
  refuses(2, "repro matrix --tasks sort", "the known names are flip-flop, ");
  refuses(2, "repro matrix --mechanisms rope,rope", "twice");
  refuses(2, "repro chacal/table1 --tasks chains", "has no such option");
  refuses(2, "repro fal/table1 --tasks chains", "the known names are flip-flop");
  refuses(2, "repro fal/table1 --scale huge", "huge");
  refuses(2, "repro fal/table1 --threads many", "--threads");
  refuses(2, "repro hinting/theorem5.1 --seeds 3", "not consist of independent runs");
  refuses(1, "repro fal/table1 --out /proc/x --quiet", "/proc/x");
}

BOOST_AUTO_TEST_CASE(progress_is_plain_lines_unless_a_terminal_allows_more) {
  const Outcome file = (*this)("train " + tiny + "--out a");
  BOOST_TEST(file.status == 0);
  BOOST_TEST(file.out == "");
  // The settings given by the user are printed first.
  const std::string given = "training.steps = 6";
  BOOST_TEST(file.err.find(given) < file.err.find("step 1/6"));
  BOOST_TEST(!contains(file.err, "training.beta1"));
  BOOST_TEST(std::ranges::count(file.err.substr(0, file.err.find("step 1/6")), '\n') <= 5);
  const Outcome full = (*this)("train " + tiny + "--show-config --out all");
  BOOST_TEST(contains(full.err, contents(folder / "all/config.ini")));
  BOOST_TEST(file.err.find_first_of("\r\033") == std::string::npos);

  const auto on_terminal = [&](const char* no_color, const std::string& out) {
    int master = -1;
    const pid_t child = ::forkpty(&master, nullptr, nullptr, nullptr);
    BOOST_REQUIRE_MESSAGE(child >= 0, "no pseudo-terminal: is /dev/pts mounted?");
    if (child == 0) {
      ::setenv("TERM", "xterm", 1);
      ::setenv("NO_COLOR", no_color, 1);
      const std::string line = "cd " + folder.path().string() + " && exec " + built_program +
                               " train " + tiny + "--out " + out;
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    std::string text(4096, '\0'), all;
    for (ssize_t n; (n = ::read(master, text.data(), text.size())) > 0;) {
      all.append(text, 0, static_cast<std::size_t>(n));
    }
    ::close(master);
    BOOST_TEST(finish(child) == 0);
    return all;
  };
  BOOST_TEST(on_terminal("", "b").find('\033') != std::string::npos);
  BOOST_TEST(on_terminal("1", "c").find('\033') == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
