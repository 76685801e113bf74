#include <algorithm>
#include <utility>
#include "tests/check.h"

#include "apps/run/transcript.h"
#include "apps/run/verification.h"
#include "core/cpu/isa.h"
#include "tests/program.h"
#include "tests/transcript.h"

BOOST_AUTO_TEST_SUITE(verify_test)

using namespace longhand;

namespace {

namespace fs = std::filesystem;

const std::string tiny =
    "train --task flip-flop --task.instructions 8 --width 16 --layers 1 --heads softmax:1,fal:1 "
    "--batch 4 --evaluate_samples 4 --threads 1 --quiet ";
const std::string transcribed = tiny + "--transcript --keep 9 ";

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::string> kinds_of(const fs::path& run) {
  std::vector<std::string> kinds;
  for (const Json& line : read_transcript(run)) {
    const std::string step = std::to_string(line["step"].integer());
    kinds.push_back((line.contains("config")       ? "header "
                     : line.contains("parameters") ? "state "
                                                   : "step ") +
                    step);
  }
  return kinds;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_transcript_has_each_step_and_each_checkpoint_and_is_verified) {
  const Program longhand;
  BOOST_REQUIRE(
      longhand(transcribed + "--steps 5 --checkpoint_every 3 --transcript-every 2 --out run")
          .status == 0);
  const std::vector<std::string> kinds{"header 0", "state 0", "step 1",  "step 2",
                                       "state 2",  "step 3",  "state 3", "step 4",
                                       "state 4",  "step 5",  "state 5"};
  BOOST_TEST(kinds_of(longhand.folder / "run") == kinds, boost::test_tools::per_element());
  const std::string hash = last_hash(longhand.folder / "run");
  const auto outcome = longhand("verify run --all --against " + hash);
  BOOST_TEST(outcome.status == 0);
  BOOST_TEST(outcome.out ==
             "run: valid: the chain of 11 lines, config.ini, the metrics of 5 steps, 2 "
             "checkpoints and steps 1..5\nhash of the last line: " +
                 hash + "\n");
  BOOST_TEST(outcome.err == "");
  BOOST_TEST(contains(longhand("verify run --steps 5").out, " and steps 4..5\n"));
  BOOST_TEST(contains(longhand("verify run --steps 2..4").out, " and steps 1..4\n"));
  const std::string sampled = longhand("verify run --sample 1 --seed 3").out;
  BOOST_TEST((contains(sampled, " and steps 1..3\n") || contains(sampled, " and steps 4..5\n")));
  BOOST_TEST(contains(longhand("verify run --sample 7").out,
                      " checkpoints and steps 1..3 and steps 4..5\n"));
  BOOST_TEST(contains(longhand("verify run").out, " and 2 checkpoints\n"));
  longhand.refuses(1, "verify run --against " + std::string(64, 'a'),
                   "the value of --against, got " + hash);
  longhand.refuses(1, "verify run --steps 4..6", "--steps: expected steps up to 5");
  longhand.refuses(2, "verify run --steps 4..3", "A <= B");
  longhand.refuses(2, "verify run --all --sample 2", "only one of");
  longhand.refuses(2, "verify run --seed 2", "--seed needs --sample");
}

BOOST_AUTO_TEST_CASE(a_resumed_run_has_the_transcript_of_an_uninterrupted_one) {
  const Program longhand;
  const std::string settings = transcribed + "--steps 6 --checkpoint_every 2 ";
  BOOST_REQUIRE(longhand(settings + "--out whole").status == 0);
  BOOST_REQUIRE(longhand(settings + "--out run").status == 0);
  const fs::path run = longhand.folder / "run";
  const std::string whole = contents(longhand.folder / "whole" / "transcript.jsonl");
  BOOST_TEST(contents(run / "transcript.jsonl") == whole);
  // Simulates a process that was killed while it wrote the line of step 5.
  fs::remove_all(run / "checkpoints" / "step-6");
  std::vector<Json> lines = read_transcript(run);
  lines.resize(8);
  write_chained(run, lines);
  write(run / "transcript.jsonl", contents(run / "transcript.jsonl") + "{\"before\":\"12");
  std::string metrics = contents(run / "metrics.jsonl");
  metrics.resize(metrics.find("{\"step\":5,"));
  write(run / "metrics.jsonl", metrics);
  const auto outcome = longhand("verify run --all");
  BOOST_TEST(outcome.status == 0, outcome.err);
  BOOST_TEST(contains(outcome.out, "the chain of 8 lines before an incomplete last one,"));
  BOOST_REQUIRE(longhand("train --resume run --quiet").status == 0);
  BOOST_TEST(contents(run / "transcript.jsonl") == whole);
  BOOST_REQUIRE(longhand("train --resume run --from-step 2 --quiet").status == 0);
  BOOST_TEST(contents(run / "transcript.jsonl") == whole);
  BOOST_REQUIRE(longhand(tiny + "--steps 2 --out plain").status == 0);
  BOOST_TEST(!fs::exists(longhand.folder / "plain" / "transcript.jsonl"));
  longhand.refuses(1, "verify plain", "longhand train --transcript");
  longhand.refuses(2, "train --resume plain --transcript", "--transcript: cannot be combined");
}

BOOST_AUTO_TEST_CASE(a_run_with_a_new_number_of_steps_is_verified_with_both_schedules) {
  const Program longhand;
  BOOST_REQUIRE(
      longhand(transcribed + "--warm-up 50% --steps 4 --checkpoint_every 2 --out run").status == 0);
  BOOST_REQUIRE(longhand("train --resume run --steps 8 --quiet").status == 0);
  const fs::path run = longhand.folder / "run";
  const std::vector<std::string> kinds = kinds_of(run);
  BOOST_TEST(std::ranges::count(kinds, "header 4") == 1);
  BOOST_TEST(app::verify(run, {.all = true}, {}, {}).unchecked == "");
  BOOST_TEST(app::verify(run, {.range = std::pair{6, 8}}, {}, {}).unchecked == "");
}

BOOST_AUTO_TEST_CASE(a_run_from_other_weights_needs_its_first_checkpoint) {
  const Program longhand;
  BOOST_REQUIRE(longhand(tiny + "--steps 2 --out first").status == 0);
  BOOST_REQUIRE(longhand("train --from first --transcript --keep 9 --steps 3 --evaluate_samples 4 "
                         "--threads 1 --quiet --out run")
                    .status == 0);
  const fs::path run = longhand.folder / "run";
  BOOST_TEST(read_transcript(run).front()["initial"].string() == "checkpoint");
  BOOST_TEST(app::verify(run, {.all = true}, {}, {}).unchecked == "");
  fs::remove_all(run / "checkpoints" / "step-0");
  expect_refusal([&] { app::verify(run, {.all = true}, {}, {}); },
                 "the checkpoint of step 0, from which the run began, is missing");
}

BOOST_AUTO_TEST_CASE(steps_of_a_missing_text_are_reported_as_unchecked) {
  const Program longhand;
  std::string words;
  for (int i = 0; i < 300; ++i) words += "the mouse and the house ";
  write(longhand.folder / "book.txt", words);
  BOOST_REQUIRE(longhand("train --task text --text book.txt --width 16 --layers 1 --heads "
                         "softmax:1 --batch 2 --steps 3 --evaluate_samples 2 --threads 1 --quiet "
                         "--transcript --out run")
                    .status == 0);
  BOOST_TEST(contains(longhand("verify run --all").out, "the data, the metrics of 3 steps"));
  write(longhand.folder / "book.txt", words + "x");
  longhand.refuses(1, "verify run --all", "book.txt: expected the hash");
  fs::remove(longhand.folder / "book.txt");
  longhand.refuses(1, "verify run --all",
                   "run: these parts could not be checked: the data and steps 1..3, because ");
  longhand.refuses(1, "verify run", "these parts are valid: the chain of 6 lines, config.ini");
}

BOOST_AUTO_TEST_CASE(steps_of_other_kernels_are_refused) {
  if (cpu::choose_isa() == cpu::Isa::portable) return;
  const Program longhand;
  const std::string portable = "LONGHAND_CPU=portable";
  BOOST_REQUIRE(longhand(transcribed + "--steps 2 --out run", portable).status == 0);
  BOOST_TEST(longhand("verify run --all", portable).status == 0);
  longhand.refuses(1, "verify run --all", " of this machine, got \"portable\"");
  BOOST_TEST(longhand("verify run").status == 0);
}

BOOST_AUTO_TEST_CASE(steps_of_portable_math_are_verified_with_any_kernels) {
  const Program longhand;
  for (const cpu::Isa isa : cpu::supported_isas()) {
    const std::string name(cpu::name_of(isa));
    BOOST_REQUIRE(
        longhand(transcribed + "--math portable --steps 4 --out " + name, "LONGHAND_CPU=" + name)
            .status == 0);
    BOOST_TEST(read_transcript(longhand.folder / name).front()["kernels"].string() == "any");
    BOOST_TEST(longhand("verify --all " + name).status == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_changed_line_is_named_with_what_differs) {
  const Program longhand;
  BOOST_REQUIRE(longhand(transcribed + "--steps 4 --checkpoint_every 2 --out run").status == 0);
  const fs::path run = longhand.folder / "run";
  fs::remove(run / "metrics.jsonl");
  const std::vector<Json> lines = read_transcript(run);
  const auto reported = [&](const std::function<void(std::vector<Json>&)>& change) {
    std::vector<Json> changed = lines;
    change(changed);
    write_chained(run, changed);
    return refusal([&] { app::verify(run, {.all = true}, {}, {}); });
  };
  BOOST_TEST(reported([](auto&) {}) == "accepted");
  const std::string zeros(64, '0');
  BOOST_TEST(contains(reported([&](auto& l) { l[3]["batches"] = zeros; }),
                      "transcript.jsonl:4: step 2: batches: expected "));
  BOOST_TEST(contains(reported([](auto& l) { l[2]["loss"] = app::bits_of(0.25); }),
                      "transcript.jsonl:3: step 1: loss: expected 1."));
  BOOST_TEST(contains(reported([](auto& l) { l[5]["gradient_norm"] = app::bits_of(1); }),
                      ":6: step 3: gradient_norm: expected "));
  BOOST_TEST(contains(reported([](auto& l) { l[5]["more"] = 1; }),
                      ":6: step 3: expected 5 members, got 6"));
  BOOST_TEST(contains(reported([](auto& l) { l[0]["seed"] = 2; }),
                      ":1: seed: expected 1, as in config.ini, got 2"));
  BOOST_TEST(contains(reported([](auto& l) { l.erase(l.begin() + 4); }),
                      "expected step 3 or the state of step 2"));
  // If a tensor of step 2 has a wrong hash and the checkpoint is missing, only computing the state
  // again finds this tensor.
  fs::remove_all(run / "checkpoints" / "step-2");
  BOOST_TEST(contains(reported([&](auto& l) {
                        auto& part = l[4]["parameters"];
                        const std::string name = part["tensors"].members()[1].first;
                        part["tensors"][name] = zeros;
                        nn::TensorHashes all;
                        for (const auto& [tensor, hash] : part["tensors"].members()) {
                          all[tensor] = hash.string();
                        }
                        part["hash"] = nn::root_of(all);
                      }),
                      ":5: step 2, computed again: parameters: tensor \"" +
                          lines[4]["parameters"]["tensors"].members()[1].first));
}

BOOST_AUTO_TEST_CASE(any_file_as_a_transcript_is_refused_in_one_line) {
  const Program longhand;
  BOOST_REQUIRE(longhand(transcribed + "--steps 1 --out run").status == 0);
  const fs::path run = longhand.folder / "run", file = run / "transcript.jsonl";
  const std::string whole = contents(file);
  const std::string first = whole.substr(0, whole.find('\n') + 1);
  const std::vector<std::pair<std::string, std::string>> files{
      {"", "expected at least one line, got none"},
      {"\n", ":1: expected a JSON object"},
      {"{\"a\":\n", ":1: expected a JSON object"},
      {"[]\n", ":1: expected a JSON object"},
      {"{}\n", ":1: expected a member \"before\""},
      {"{\"before\":7}\n", ":1: before: expected 64 hexadecimal digits"},
      {first + "\x1b[31m\xff\n", ":2: expected a JSON object"},
      {first + first, ":2: before: expected "},
      {first + std::string(65 << 20, 'x'), ":2: expected a line of at most 67108864 bytes"},
      {std::string(10000, '['), "expected at least one line, got none"}};
  for (const auto& [text, message] : files) {
    write(file, text);
    longhand.refuses(1, "verify run --all", message);
  }
  // Each member of each line is replaced by null or by another value. The changed transcript must
  // be refused.
  const std::vector<Json> lines = [&] {
    write(file, whole);
    return read_transcript(run);
  }();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const auto& [name, value] : lines[i].members()) {
      if (name == "before") continue;
      for (const Json& other :
           {Json(), Json(-1), Json("x"), Json(1e300), Json::array(), Json::object(), Json(true)}) {
        std::vector<Json> changed = lines;
        changed[i][name] = other;
        write_chained(run, changed);
        // A changed line may be accepted only if the new value equals the old one, or if it is a
        // text in place of the program's version or commit, which are not compared.
        const bool allowed =
            other == value || ((name == "version" || name == "commit") && other.is_string());
        const std::string said = refusal([&] { app::verify(run, {.all = true}, {}, {}); });
        BOOST_TEST((said != "accepted" || allowed), name << " " << other.dump());
        BOOST_TEST(said.find('\n') == said.npos);
      }
    }
  }
  fs::remove(file);
  fs::create_directory(file);
  longhand.refuses(1, "verify run", "transcript.jsonl");
  longhand.refuses(1, "train --resume run", "transcript.jsonl");
}

BOOST_AUTO_TEST_SUITE_END()
