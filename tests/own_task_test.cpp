// Tests the task `files`, whose samples are the records of a user's own JSONL files.
#include "tasks/own_task.h"

#include <fstream>
#include <map>
#include <set>

#include "apps/run/sample_records.h"
#include "core/crc32c.h"
#include "core/rng.h"
#include "core/utf8.h"
#include "tasks/answers.h"
#include "tasks/record_file.h"
#include "tasks/task_files.h"
#include "tests/make_task.h"
#include "tests/program.h"

using namespace longhand;
using namespace longhand::tasks;

BOOST_FIXTURE_TEST_SUITE(own_task_test, Program)

namespace {

std::string record(std::string_view prompt, std::string_view answer, std::string_view more = "") {
  return text(R"({"prompt":")", prompt, R"(","answer":")", answer, '"', more, "}\n");
}

std::string file(const Program& program, const std::string& name, const std::string& lines) {
  std::filesystem::create_directories((program.folder / name).parent_path());
  std::ofstream(program.folder / name) << lines;
  return program.path(name);
}

/// The options of the task `files` for a new run on these files. Options that are not given are
/// derived from the files.
OptionValues completed(const std::string& files, const TaskOptions& options = {}) {
  OptionValues values = option_values(task_kind("files"), options);
  values.set("files", files);
  task_kind("files").complete(values);
  return values;
}

std::vector<std::string> texts_of(const Task& task, std::span<const std::int32_t> tokens) {
  std::vector<std::string> texts;
  for (const std::int32_t token : tokens) texts.push_back(task.vocabulary().text(token));
  return texts;
}

/// The text of a file with `count` records. Each prompt is a word of `length` letters and a mark,
/// and its answer is the reversed word.
std::string reversals(std::size_t length, std::size_t count, std::string_view mark = "=") {
  std::string lines;
  for (std::size_t i = 0; i < count; ++i) {
    std::string word;
    for (std::size_t at = 0; at < length; ++at) word += "abc"[(i / (at + 1) + at * i) % 3];
    lines += record(word + std::string(mark), std::string(word.rbegin(), word.rend()));
  }
  return lines;
}

/// Compares the tokens, the scored positions, the labels and the reference attention of two
/// samples.
void expect_same_sample(const Task& own, const Sample& sample, const Task& built_in,
                        const Sample& expected) {
  BOOST_TEST(texts_of(own, sample.tokens) == texts_of(built_in, expected.tokens));
  BOOST_TEST(sample.asked == expected.asked);
  BOOST_TEST(own.outputs().says_next == built_in.outputs().says_next);
  BOOST_TEST(own.outputs().groups == built_in.outputs().groups);
  if (!built_in.outputs().says_next) {
    std::string labels;
    for (const std::int32_t output : expected.asked) {
      labels += (labels.empty() ? "" : " ") +
                std::to_string(expected.targets[static_cast<std::size_t>(output)]);
    }
    BOOST_TEST(own.as_text(sample).second == labels);
  }
  const auto rows = own.reference(sample), right = built_in.reference(expected);
  BOOST_REQUIRE(rows.size() == right.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    BOOST_TEST(rows[r].row == right[r].row);
    BOOST_TEST((std::set(rows[r].columns.begin(), rows[r].columns.end()) ==
                std::set(right[r].columns.begin(), right[r].columns.end())));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_files_of_a_folder_are_distributions_with_train_first) {
  for (const char* name : {"len-100", "len-20", "ood", "train", "id"}) {
    file(*this, text("mine/", name, ".jsonl"), record("a=", "b"));
  }
  file(*this, "mine/notes.txt", "not a record");
  file(*this, "mine/.hidden.jsonl", "not a record");
  std::string names;
  const OptionValues values = completed(path("mine"));
  for (const Distribution& d : task_kind("files").distributions_of(values)) names += d.name + " ";
  BOOST_TEST(names == "train id len-20 len-100 ood ");
  const OptionValues listed =
      completed(path("mine/len-20.jsonl") + ",train=" + path("mine/id.jsonl"));
  BOOST_TEST(list_of(parse_task_files(listed.text("files"))) ==
             "train=" + path("mine/id.jsonl") + ",len-20=" + path("mine/len-20.jsonl"));
}

BOOST_AUTO_TEST_CASE(files_that_are_no_task_are_refused) {
  file(*this, "a/one.jsonl", record("a", "b"));
  file(*this, "a/two.jsonl", record("a", "b"));
  std::filesystem::create_directories(folder / "empty");
  const auto says = [&](const std::string& files, const std::string& message) {
    const std::string refused = refusal([&] { completed(files); });
    BOOST_TEST(contains(refused, message));
  };
  says(path("a"), "expected a file train.jsonl among the files of the task, got 2 files");
  says(path("empty"), "expected *.jsonl files, including train.jsonl, got no *.jsonl file");
  says(path("none.jsonl"), "none.jsonl: no such file");
  says("", "expected a folder with train.jsonl (--task FOLDER) or a list of JSONL files");
  says(path("a/one.jsonl") + "," + path("a/one.jsonl"), "two files with the name \"one\"");
  says("train=" + path("a/one.jsonl") + ",,", "expected names of files, separated by commas");
}

BOOST_AUTO_TEST_CASE(a_broken_line_is_named_by_file_and_number) {
  const auto says = [&](const std::string& lines, const std::string& message,
                        const TaskOptions& options = {}) {
    const std::string name = file(*this, "t.jsonl", record("a=", "b") + "\n" + lines);
    const std::string refused = refusal([&] { completed(name, options); });
    BOOST_TEST(refused.starts_with(name + message), refused);
    BOOST_TEST(refused.find('\n') == std::string::npos);
  };
  const TaskOptions all{{"held_out", "0"}};
  says("{\"prompt\":\"a\"}\n", R"(:3: expected {"prompt": "...", "answer": "..."})");
  says("not json\n", ":3: expected {");
  says("[]\n", ":3: expected {");
  says("{\"prompt\":1,\"answer\":\"b\"}\n", ":3: expected {");
  says("{\"prompt\":\"a\xff\",\"answer\":\"b\"}\n",
       ":3: expected UTF-8, got an invalid byte at position 13");
  says(record("a", ""), ":3: expected a non-empty answer", all);
  says(record("a", "\\n"), ":3: expected a non-empty answer", all);
  says(record("", "a"), ":3: expected a prompt of at least one token",
       {{"held_out", "0"}, {"between", "none"}});
  says(record("a", "b", R"(,"pairs":[[0,1]])"), ":3: \"pairs\": expected [i, j] with 0 <= j < i",
       all);
  says(record("a", "b", R"(,"pairs":[[9,1]])"), ":3: \"pairs\": expected numbers below 3", all);
  says(record("a", "b", R"(,"pairs":[1])"), ":3: \"pairs\": expected [i, j]", all);
  says(record("a", "b", R"(,"scored":[])"), ":3: \"scored\": expected a non-empty list", all);
  says(record("a", "b", R"(,"scored":[1,0])"), ":3: \"scored\": expected ascending", all);
  says(record("a", "b", R"(,"scored":[2])"), ":3: \"scored\": expected indices below 2", all);
  says(record("a", "b", R"(,"scored":[-1])"), ":3: \"scored\": expected ascending", all);
  says(record(std::string(1 << 20, 'a'), "b"), ":3: expected at most 1048576 tokens", all);
  says(std::string((16 << 20) + 1, 'x'), ":3: expected a line of at most 16777216 bytes");
  says(R"({"prompt":"\ud800=","answer":"b"})", ":3: expected {");
  const std::string sound = file(*this, "sound.jsonl", record("a=", "b") + record("b=", "a"));
  BOOST_TEST(contains(refusal([&] {
                        completed(sound, {{"after", "\\xff"}});
                      }),
                      "options \"between\" and \"after\": expected UTF-8"));
  // A broken record in a test file is also found before training starts.
  const std::string train = file(*this, "train.jsonl", record("a=", "b"));
  const std::string ood = file(*this, "ood.jsonl", record("a=", "b") + record("b=", ""));
  BOOST_TEST(contains(refusal([&] { completed(train + "," + ood); }),
                      ood + ":2: expected a non-empty answer"));
  const std::string empty = file(*this, "empty.jsonl", "\n \n");
  BOOST_TEST(contains(refusal([&] { completed(empty); }), "empty.jsonl: expected one record"));
}

BOOST_AUTO_TEST_CASE(tokens_are_characters_and_a_sample_is_prompt_mark_answer_and_end) {
  const std::string name =
      file(*this, "train.jsonl", record("né", "én") + record("ab", "ba\\n", R"(,"pairs":[[2,1]])"));
  const OptionValues values = completed(name, {{"held_out", "0"}});
  BOOST_TEST(values.text("tokens") == "\\n=abné");
  // The prompts end with different characters, so a mark "=" is put between prompt and answer.
  BOOST_TEST(values.text("between") == "=");
  BOOST_TEST(values.text("longest") == "6");
  const auto task = task_kind("files").make(values);
  BOOST_TEST(task->vocabulary().size() == 6);
  const Sample sample = task->sample_at(0, 0);
  const std::vector<std::string> expected{"n", "é", "=", "é", "n", "\n"};
  BOOST_TEST(texts_of(*task, sample.tokens) == expected);
  BOOST_TEST(sample.asked == (std::vector<std::int32_t>{2, 3, 4}));
  BOOST_TEST(task->as_text(sample).first == "né=");
  // encode() appends the mark to a prompt, so the tokens are n, é and =.
  BOOST_TEST(task->vocabulary().encode("né").size() == 3u);
  BOOST_TEST(task->answer("né") == "én\n");
  BOOST_TEST(!task->check("né", "én").has_value());
  BOOST_TEST(task->check("né", "nn").value() == "expected \"én\", got \"nn\"");
  // Answers end with a line break. The answer of the second record already has one, so none is
  // added. The pair [2, 1] of this record numbers the tokens of prompt and answer from 0, without
  // the mark "=". It says that token 2, the first token of the answer, copies token 1.
  const Sample second = task->sample_at(1, 0);
  BOOST_TEST(second.tokens.size() == 6u);
  BOOST_REQUIRE(task->reference(second).size() == 1u);
  BOOST_TEST(task->reference(second)[0].row == 2);
  BOOST_TEST(task->reference(second)[0].columns == std::vector<std::int32_t>{1});
}

BOOST_AUTO_TEST_CASE(tokens_may_be_words_or_bytes_and_only_some_may_be_scored) {
  const std::string name =
      file(*this, "train.jsonl", record("one two =", "two one two", R"(,"scored":[0,2])"));
  const auto words = task_kind("files").make(
      completed(name, {{"held_out", "0"}, {"tokenizer", "spaces"}, {"after", "none"}}));
  const Sample sample = words->sample_at(0, 0);
  const std::vector<std::string> expected{"one", "two", "=", "two", "one", "two"};
  BOOST_TEST(texts_of(*words, sample.tokens) == expected);
  BOOST_TEST(sample.asked == (std::vector<std::int32_t>{2, 4}));
  BOOST_TEST(sample.targets[3] == Sample::not_counted);
  const auto bytes =
      task_kind("files").make(completed(name, {{"held_out", "0"}, {"tokenizer", "bytes"}}));
  BOOST_TEST(bytes->vocabulary().size() == 256);
  // 9 bytes of the prompt, 11 of the answer, and 1 for the end of the answer.
  BOOST_TEST(bytes->sample_at(0, 0).tokens.size() == 21u);
}

BOOST_AUTO_TEST_CASE(a_single_file_keeps_its_last_records_for_tests) {
  const std::string name = file(*this, "mine.jsonl", reversals(4, 25));
  const OptionValues values = completed(name);
  const TaskKind& kind = task_kind("files");
  BOOST_TEST(kind.make(values, "train")->count() == 22u);
  const auto held_out = kind.make(values, "validation");
  BOOST_TEST(held_out->count() == 3u);
  BOOST_TEST(kind.distributions_of(values).size() == 2u);
  BOOST_TEST(!kind.distributions_of(values).front().compared);
  const OptionValues whole = completed(name, {{"held_out", "0"}});
  BOOST_TEST(kind.distributions_of(whole).size() == 1u);
  BOOST_TEST(kind.distributions_of(whole).front().compared);
  BOOST_TEST(contains(refusal([&] {
                        completed(name, {{"held_out", "1"}});
                      }),
                      "expected more than 25 records, because 25 records are held out"));
  // A file with the name of the held-out records takes their place.
  const std::string listed =
      "train=" + name + ",validation=" + file(*this, "other.jsonl", reversals(4, 6));
  BOOST_TEST(kind.make(completed(listed), "validation")->count() == 6u);
  BOOST_TEST(contains(refusal([&] {
                        completed(listed, {{"held_out", "0.1"}});
                      }),
                      "option held_out: expected 0, because a file has the name validation"));
}

BOOST_AUTO_TEST_CASE(a_built_in_task_written_as_files_has_the_same_samples) {
  struct Written {
    const char* task;
    bool with_pairs;
    TaskOptions options = {};  // options with which the files are read
  };
  const TaskOptions plain{{"between", "none"}}, open{{"between", "none"}, {"after", "none"}},
      words{{"between", "none"}, {"after", "none"}, {"tokenizer", "spaces"}},
      labels{{"tokenizer", "spaces"}};
  for (const Written& it : {Written{"reversal", true, plain},
                            {"addition", true, plain},
                            {"multiplication", true, plain},
                            {"value-assignment", true, plain},
                            {"ffml", true, plain},
                            {"successor", true, open},
                            {"flip-flop", true, open},
                            {"cycle-tracing", true, open},
                            {"sorting", true, words},
                            {"increment", true, words},
                            {"copying", true, words},
                            {"words", true, labels},
                            {"recall", true, labels},
                            {"chains", true, labels},
                            {"boxes", false, open}}) {
    BOOST_TEST_CONTEXT(it.task) {
      app::Config config(it.task);
      if (config.kind().name == "flip-flop") config.set("task.instructions", "40");
      const std::string out = path(it.task);
      const app::WrittenTask written =
          app::write_records(config, out, {.train = 30, .test = 10, .with_pairs = it.with_pairs});
      BOOST_TEST(written.files.size() == config.distributions().size() + 1);
      const TaskKind& kind = task_kind("files");
      const OptionValues values = completed(out, it.options);
      for (const Distribution& d : kind.distributions_of(values)) {
        const bool is_train = d.name == "train";
        const auto own = kind.make(values, d.name);
        const auto built_in = config.task(d.name == "id" ? "train" : d.name);
        BOOST_TEST(own->count() == (is_train ? 30u : 10u));
        std::uint32_t stream = 0;
        for (std::uint64_t i = 0; i < own->count(); ++i) {
          Sample expected;
          // The files contain only samples with scored tokens, so all other samples are skipped.
          do {
            Rng rng(config.training().seed, is_train ? Purpose::data : Purpose::evaluation,
                    is_train ? 1 : 0, stream++);
            expected = built_in->sample(rng, 0);
          } while (expected.asked.empty());
          const Sample sample = own->sample_at(i, 0);
          // The tokens of the task `boxes` are words, but its files are read as characters. So only
          // the texts of the two samples are compared.
          if (it.task == std::string("boxes")) {
            BOOST_TEST(own->vocabulary().decode(sample.tokens) ==
                       built_in->vocabulary().decode(expected.tokens));
            continue;
          }
          expect_same_sample(*own, sample, *built_in, expected);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(pairs_of_boxes_number_the_words_between_spaces) {
  const std::string boxes = " --task boxes --task.boxes 3 --task.operations 4 ";
  const Json written = json("data" + boxes + "--mask --out w --count 20 --test-count 5 --json");
  BOOST_TEST(written["command"] == "longhand train --task w/ --tokenizer spaces --task.after none");
  const OptionValues values = completed(path("w"), {{"tokenizer", "spaces"}, {"after", "none"}});
  const auto task = task_kind("files").make(values, "train");
  std::int64_t objects = 0;
  for (std::uint64_t i = 0; i < task->count(); ++i) {
    const Sample sample = task->sample_at(i, 0);
    // The word at a place, without punctuation.
    const auto word = [&](std::int32_t at) {
      const std::string all = task->vocabulary().text(sample.tokens[static_cast<std::size_t>(at)]);
      return all.substr(0, all.find_first_of(".,"));
    };
    for (const ReferenceRow& row : task->reference(sample)) {
      BOOST_REQUIRE(row.columns.size() == 1u);
      const std::int32_t named = row.columns.front();
      BOOST_TEST(word(row.row + 1) == word(named));
      BOOST_TEST(named < sample.asked.front());
      for (std::int32_t later = named + 1; later < sample.asked.front(); ++later) {
        BOOST_TEST(word(row.row + 1) != word(later));
      }
      ++objects;
    }
  }
  BOOST_TEST(objects > 20);
  BOOST_TEST((*this)("train --task w --tokenizer spaces --task.after none --out run --steps 1 "
                     "--layers 1 --width 16 --heads softmax:2 --evaluate-samples 4 --threads 1 "
                     "--quiet")
                 .status == 0);
  BOOST_TEST((*this)("inspect run --reference --samples 4").status == 0);
}

BOOST_AUTO_TEST_CASE(a_folder_is_a_task_for_training_and_scoring) {
  file(*this, "mine/train.jsonl", reversals(3, 40) + reversals(2, 9));
  file(*this, "mine/id.jsonl", reversals(3, 10));
  file(*this, "mine/long.jsonl", reversals(6, 8) + reversals(5, 8));
  file(*this, "more.jsonl", reversals(7, 5));
  const std::string size = " --layers 1 --width 16 --heads softmax:1 --threads 1 --quiet ";
  const Json trained =
      json("train --task mine --out run --evaluate-samples 9 --epochs 1 --json" + size);
  BOOST_TEST(trained["step"] == 2);  // one epoch: 49 records with batch size 32
  BOOST_TEST(trained["scores"].contains("long/sequences"));
  BOOST_TEST(trained["scores"].contains("id/tokens"));

  const Json scores = json("eval run --reading decoded --by-length --json");
  std::string rows;
  for (const Json& row : scores["rows"]) {
    if (row["metric"] != "sequences") continue;
    const Json* const length = row.find("length");
    rows += text(row["on"].string(), '/', length ? length->string() : "all", ' ',
                 row["count"].dump(), ' ');
  }
  BOOST_TEST(rows ==
             "train/all 49 train/2 9 train/3 40 id/all 10 id/3 10 long/all 16 long/5 8 "
             "long/6 8 ");
  const Json other = json("eval run --text more.jsonl --json");
  BOOST_TEST(other["rows"][std::size_t{0}]["on"] == "more");
  BOOST_TEST(other["rows"][std::size_t{0}]["count"] == 5);

  // The trained model can be used without the files of its task. A command that needs the files
  // reports that they are missing.
  std::filesystem::rename(folder / "mine", folder / "gone");
  BOOST_TEST((*this)("generate run --prompt ab= --tokens 3").status == 0);
  BOOST_TEST((*this)("eval run --text more.jsonl").status == 0);
  refuses(1, "eval run --on train", "mine/train.jsonl: ");
  refuses(2, "generate run --prompt xy= --tokens 3",
          "no token of the vocabulary matches at character 1");
  file(*this, "strange.jsonl", record("ab=", "ba") + record("aé=", "éa"));
  refuses(1, "eval run --text strange.jsonl",
          "strange.jsonl:2: text: no token of the vocabulary matches at character 2");
  std::filesystem::rename(folder / "gone", folder / "mine");

  const Outcome help = (*this)("train --task mine --help");
  BOOST_TEST(contains(help.out, "--task.between"));
  const Outcome listed = (*this)("runs .");
  BOOST_TEST(contains(listed.out, "long/sequences"));

  // Another run can start from the model and train on the files of another folder. The vocabulary
  // stays that of the first folder.
  file(*this, "next/train.jsonl", reversals(4, 40));
  BOOST_TEST((*this)("train --from run --task next --out on --steps 1" + size).status == 0);
  refuses(1, "train --from run --task strange.jsonl --out no --steps 1 --task.held_out 0" + size,
          "strange.jsonl:2: ");
}

BOOST_AUTO_TEST_CASE(a_changed_training_file_does_not_continue_a_run) {
  file(*this, "mine/train.jsonl", reversals(3, 40));
  file(*this, "mine/id.jsonl", reversals(3, 10));
  BOOST_TEST(
      (*this)("train --task mine --out run --steps 2 --layers 1 --width 16 --heads softmax:1 "
              "--evaluate-samples 4 --threads 1 --quiet")
          .status == 0);
  file(*this, "mine/train.jsonl", reversals(3, 41));
  refuses(1, "train --resume run --from-step 0 --quiet", "mine/train.jsonl");
}

BOOST_AUTO_TEST_CASE(data_writes_a_folder_that_train_reads) {
  const Json written = json("data --task reversal --out mine --count 20 --test-count 5 --json");
  BOOST_TEST(written["rows"].size() == 3u);
  BOOST_TEST(written["command"] == "longhand train --task mine/");
  BOOST_TEST(contents(folder / "mine/ood.jsonl").starts_with("{\"prompt\":\""));
  refuses(1, "data --task reversal --out mine", "train.jsonl: already exists");
  // Options that are invalid for one of the test sets are refused before the first file is written.
  refuses(1, "data --task recall --task.tokens 8-16 --task.pairs 3 --task.vocabulary 16 --out none",
          "option vocabulary: expected at least 26 for 12 keys and 12 values, got 16 "
          "(distribution 4x)");
  BOOST_TEST(!std::filesystem::exists(folder / "none"));
  BOOST_TEST(json("data --task flip-flop --out f --count 20 --json")["command"] ==
             "longhand train --task f/ --task.after none");
  refuses(1, "data --task mine/ --out other", "--out needs a task that draws samples");
  refuses(2, "data --task reversal --out other --head 0", "--head: cannot be combined with --out");
}

BOOST_AUTO_TEST_CASE(tokens_of_prompts_may_have_labels_instead_of_an_answer) {
  const std::string first =
      R"({"prompt":"b a b","answer":"","labels":[[0,"10"],[2,"9"]],"pairs":[[2,0]]})";
  const auto labelled = [&](const std::string& second, const TaskOptions& more = {}) {
    TaskOptions options = more;
    options["held_out"] = "0";
    options["tokenizer"] = "spaces";
    return completed(file(*this, "t.jsonl", first + "\n" + second + "\n"), options);
  };
  const OptionValues values = labelled(R"({"prompt":"a b","answer":"x","labels":[[1,"9"]]})");
  BOOST_TEST(values.text("labels") == "9\\s10");
  BOOST_TEST(values.text("predictions") == "1");
  BOOST_TEST(values.text("tokens") == "a\\sb");
  const auto task = task_kind("files").make(values);
  BOOST_TEST(!task->outputs().says_next);
  BOOST_TEST(task->outputs().groups == 1);
  BOOST_TEST(task->outputs().classes == 2);
  const Sample sample = task->sample_at(0, 0);
  BOOST_TEST(sample.targets == (std::vector<std::int32_t>{1, Sample::not_counted, 0}));
  BOOST_TEST(sample.asked == (std::vector<std::int32_t>{0, 2}));
  BOOST_REQUIRE(task->reference(sample).size() == 1u);
  BOOST_TEST(task->reference(sample)[0].row == 2);
  BOOST_TEST(task->answer("b a b") == "10 9");
  BOOST_TEST(!task->check("a b", "9").has_value());
  BOOST_TEST(task->check("a b", "10").value() == "expected the labels \"9\", got \"10\"");
  Tally tally;
  task->score(sample, std::vector<std::int32_t>{1, 1}, tally);
  BOOST_TEST(tally.at("tokens").mean() == 0.5);
  // A token may have several labels.
  const OptionValues two = labelled(R"({"prompt":"a","answer":"","labels":[[0,0,"9"],[0,1,"8"]]})");
  BOOST_TEST(two.text("predictions") == "2");
  BOOST_TEST(task_kind("files").make(two)->sample_at(1, 0).asked ==
             (std::vector<std::int32_t>{0, 1}));
  // With the option labels = none, the labels in the records are ignored. The empty answer of the
  // first record is then refused.
  BOOST_TEST(contains(refusal([&] {
                        labelled(record("a", "b"), {{"labels", "none"}});
                      }),
                      ":1: expected a non-empty answer"));
  const auto says = [&](const std::string& second, const std::string& message) {
    const std::string refused = refusal([&] { labelled(second); });
    BOOST_TEST(contains(refused, path("t.jsonl") + ":2: " + message));
  };
  const auto with = [](const std::string& labels) {
    return text(R"({"prompt":"a b","answer":"","labels":)", labels, "}");
  };
  says(record("a b", "9"), "expected \"labels\", as the first record has, got none");
  says(with("[]"),
       "\"labels\": expected a non-empty list of [i, \"label\"], where i is a token's index");
  says(with("[[1]]"),
       "\"labels\": expected [i, \"label\"] or [i, g, \"label\"], where i is a token's index and "
       "g a label number below 4096, got");
  says(with("[[0,4096,\"9\"]]"), "\"labels\": expected [i, \"label\"]");
  says(with("[[1,\"9\"],[0,\"9\"]]"), "\"labels\": expected ascending indices");
  says(with("[[0,\"8 9\"]]"), "\"labels\": expected labels without spaces");
  says(with("[[2,\"9\"]]"),
       "\"labels\": expected token indices below 2, the number of tokens of the prompt, got 2");
}

BOOST_AUTO_TEST_CASE(a_task_with_labels_is_trained_from_its_files) {
  const Json written = json(
      "data --task words --task.group s3 --task.max 6 --out w --count 40 --test-count 5 --json");
  BOOST_TEST(written["command"] == "longhand train --task w/ --tokenizer spaces");
  const Json trained = json(
      "train --task w --tokenizer spaces --out run --steps 2 --layers 1 --width 16 --heads "
      "softmax:1 "
      "--evaluate-samples 4 --threads 1 --quiet --json");
  BOOST_TEST(trained["scores"].contains("4x/tokens"));
  BOOST_TEST(json("eval run --on id --json")["rows"][std::size_t{0}]["count"] == 5);
  // The run's settings contain the labels, so its model does not need the files.
  std::filesystem::remove_all(folder / "w");
  BOOST_TEST((*this)("describe run").status == 0);
}

BOOST_AUTO_TEST_CASE(attention_is_compared_with_pairs_of_records_and_repaired) {
  BOOST_TEST((*this)("data --task reversal --task.length 2-3 --mask --out mine --count 60 "
                     "--test-count 6")
                 .status == 0);
  const std::string size =
      " --layers 1 --width 16 --heads softmax:2 --evaluate-samples 4 --threads 1 --quiet ";
  BOOST_TEST((*this)("train --task mine --out run --steps 3" + size).status == 0);
  const Json attention = json("inspect run --reference --samples 6 --json");
  BOOST_TEST(!attention.members().empty());
  const Outcome repaired = (*this)(
      "repair run --method reinforce --top 1 --delta 1 --threshold 0 --samples 6 "
      "--search-samples 6 --out repaired --quiet");
  BOOST_TEST_CONTEXT(repaired.err) { BOOST_TEST(repaired.status == 0); }
  BOOST_TEST(contains(repaired.out, "ood"));
  BOOST_TEST(
      (*this)("repair run --method columns --steps 1 --samples 6 --out columns --quiet").status ==
      0);
  // A repaired run has no steps, so its other settings of the training are not compared.
  const Json both = json("compare run repaired --json");
  std::string differing;
  for (const Json& row : both["rows"].elements()) {
    if (row["what"].string().find('.') != std::string::npos)
      differing += row["what"].string() + " ";
  }
  BOOST_TEST(differing == "model.reinforce training.steps ");
  BOOST_TEST(
      (*this)("sweep --task mine --grid rate=1e-3,1e-2 --steps 1 --out grid" + size).status == 0);

  // Without the field "pairs", records have no reference attention to compare with.
  file(*this, "plain/train.jsonl", reversals(3, 20));
  file(*this, "plain/id.jsonl", reversals(3, 5));
  BOOST_TEST((*this)("train --task plain --out bare --steps 1" + size).status == 0);
  refuses(1, "inspect bare --reference", "the task's samples have no reference attention");
}

BOOST_AUTO_TEST_CASE(a_table_is_split_by_length_without_a_prompt_in_two_files) {
  std::string table = "\xef\xbb\xbfid,question,reply\r\n";
  for (int i = 0; i < 60; ++i) {
    const std::string word = std::string(static_cast<std::size_t>(i % 6 + 1), 'a') + "é";
    table += text(i, ",\"", word, " \"\"", i % 20, "\"\", x\",", word, "\n");
  }
  file(*this, "t.csv", table + "60,\"two\nlines\",ok\n");
  const Json made = json(
      "data split t.csv --fields question,reply --lengths 3,5 --held-out 0.5 --out mine --json");
  BOOST_TEST(made["left"] == 20);  // answers of 6 and 7 characters are left out
  std::map<std::string, std::set<std::string>> prompts;
  std::int64_t rows = 0;
  for (const Json& row : made["rows"]) {
    const RecordFile records(folder / row["file"].string());
    BOOST_TEST(row["rows"] == static_cast<std::int64_t>(records.size()));
    rows += row["rows"].integer();
    for (std::uint64_t i = 0; i < records.size(); ++i) {
      const Answer record = Answer::parse(records.line(i), records.place(i));
      prompts[row["file"].string()].insert(record.prompt);
      const std::size_t length = count_code_points(record.answer);
      BOOST_TEST((length > 3) == (row["file"] == "mine/length-5.jsonl"));
      BOOST_TEST(length <= 5u);
    }
  }
  BOOST_TEST(rows == 41);
  BOOST_REQUIRE(prompts.size() == 3u);
  // A random number that depends only on the prompt decides whether the prompt is held out.
  const auto is_held_out = [](const std::string& prompt) {
    return Rng(1, Purpose::split, 0, crc32c(prompt)).chance(0.5);
  };
  for (const std::string& prompt : prompts["mine/train.jsonl"]) {
    BOOST_TEST(!prompts["mine/id.jsonl"].contains(prompt));
    BOOST_TEST(!is_held_out(prompt));
  }
  for (const std::string& prompt : prompts["mine/id.jsonl"]) BOOST_TEST(is_held_out(prompt));
  BOOST_TEST(prompts["mine/id.jsonl"].size() + prompts["mine/train.jsonl"].size() > 10u);
  const std::string all =
      contents(folder / "mine/train.jsonl") + contents(folder / "mine/id.jsonl");
  BOOST_TEST(contains(all, R"({"prompt":"two\nlines","answer":"ok"})"));
  BOOST_TEST(contains(all, R"( \"1\", x",)"));
}

BOOST_AUTO_TEST_CASE(a_broken_table_is_refused_with_its_line) {
  const auto says = [&](const std::string& table, const std::string& message) {
    file(*this, "t.csv", table);
    refuses(1, "data split t.csv --out mine", message);
    BOOST_TEST(!std::filesystem::exists(folder / "mine/train.jsonl"));
  };
  says("", "t.csv: expected a first line with the names of the columns");
  says("a,b\n1,2\n", R"(t.csv: expected a column named "prompt", got the columns "a", "b")");
  says("prompt,answer\nx,y\nx\n", "t.csv:3: expected 2 cells, as in the first line, got 1");
  says("prompt,answer\nx,\n", "t.csv:2: expected an answer, got an empty cell");
  says("prompt,answer\n\"x\"z,y\n", "t.csv:2: expected the end of the cell after a quote");
  says("prompt,answer\nx,y\n\"x,y\nx,y\n", "t.csv:3: expected a closing quote");
  says("prompt,answer\nx,\xff\n", "t.csv:2: expected UTF-8");
  says("prompt,answer\n", "t.csv: expected at least one row for training");
  refuses(2, "data split t.csv --lengths 5,5 --out mine", "--lengths: expected ascending numbers");
  refuses(2, "data --task reversal --lengths 5", "--lengths: can only be used with `split FILE`");
  refuses(2, "data split t.csv", "split: expected --out FOLDER");
}

// Runs the commands of docs/guide/own_task.md with a small table and few steps.
BOOST_AUTO_TEST_CASE(the_commands_of_the_guide_run) {
  std::istringstream page(contents(std::filesystem::path(test_data) / "../docs/guide/own_task.md"));
  std::string script = text("set -e\nlonghand() { ", built_program, " \"$@\"; }\n");
  bool is_command = false;
  int blocks = 0;
  for (std::string line; std::getline(page, line);) {
    if (line == "```sh" || line == "```") {
      is_command = line == "```sh";
      blocks += is_command ? 1 : 0;
      continue;
    }
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"--steps 2000", "--steps 2"},
                                   {"i < 12000", "i < 600"}}) {
      if (const auto at = line.find(from); at != line.npos) line.replace(at, from.size(), to);
    }
    if (is_command) script += line + "\n";
  }
  BOOST_TEST(blocks == 5);
  file(*this, "guide.sh", script);
  const int status =
      std::system(text("cd ", folder.path().string(), " && sh guide.sh >stdout 2>stderr").c_str());
  BOOST_TEST_CONTEXT(contents(path("stderr"))) { BOOST_TEST(status == 0); }
  BOOST_TEST(contains(contents(path("stdout")), "length-24"));
}

BOOST_AUTO_TEST_CASE(answers_of_records_are_scored_in_a_text_and_a_plain_text_is_not_decoded) {
  file(*this, "qa.jsonl", reversals(3, 40));
  file(*this, "plain.txt", std::string(400, 'a'));
  const std::string size =
      " --task.length 16 --layers 1 --width 16 --heads softmax:1 --steps 1 "
      "--evaluate-samples 4 --threads 1 --quiet ";
  BOOST_TEST(
      (*this)("train --task text --text qa.jsonl --task.separator '\\n' --out qa" + size).status ==
      0);
  const Json scores = json("eval qa --text qa.jsonl --reading decoded --samples 8 --json");
  BOOST_TEST(scores["rows"][std::size_t{0}]["metric"] == "sequences");
  BOOST_TEST(scores["rows"][std::size_t{0}]["count"] == 8);
  BOOST_TEST((*this)("train --task text --text plain.txt --out plain" + size).status == 0);
  refuses(1, "eval plain --on train --reading decoded",
          "decoding: expected samples with answers, such as records");
  // A file of records has answers, also if the run was trained on a plain text.
  const Json answers = json("eval plain --text qa.jsonl --reading decoded --samples 8 --json");
  BOOST_TEST(answers["rows"][std::size_t{0}]["metric"] == "sequences");
  const Json losses = json("eval qa --text plain.txt --samples 8 --json");
  BOOST_TEST(losses["rows"][std::size_t{0}]["metric"] == "loss");
}

BOOST_AUTO_TEST_SUITE_END()
