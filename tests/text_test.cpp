// Tests the task `text`, which trains on a text of the user: its samples, its options and its use
// by commands.
#include "tasks/text.h"

#include <cmath>
#include <set>

#include "apps/run/batches.h"
#include "apps/run/config.h"
#include "apps/run/evaluation.h"
#include "core/atomic_file.h"
#include "core/mapped_file.h"
#include "core/safetensors.h"
#include "tests/make_task.h"
#include "tests/program.h"
#include "tests/refusal.h"
#include "tests/small_tokenizer.h"

namespace text_test {

using namespace longhand;
using namespace longhand::tasks;

constexpr TaskMaker make{own_text};

/// A text whose byte at place i is i % 251, so that a sample shows from which place it comes.
std::string places(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(i % 251);
  return text;
}

std::string sentences(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "the cat sat on the mat. the dog ran to the cat.\n";
  return text;
}

/// Writes a file with three records (prompt and answer) and an empty line. Returns the file's path.
std::string records_file(const Program& program) {
  write_atomically(program.folder / "qa.jsonl",
                   "{\"prompt\": \"1+1=\", \"answer\": \"2\", \"more\": [1]}\n"
                   "\n"
                   "{\"prompt\": \"2+2=\", \"answer\": \"4\"}\r\n"
                   "{\"prompt\": \"3+3=\", \"answer\": \"six!\"}");
  return program.path("qa.jsonl");
}

/// Record `number` of the task, written as "prompt[answer]".
std::string text_of(const Task& task, std::uint64_t number) {
  const Sample sample = task.sample_at(number, 0.5);
  std::vector<std::int32_t> learned;
  for (const std::int32_t target : sample.targets) {
    if (target >= 0) learned.push_back(target);
  }
  BOOST_TEST(task.target_bytes(sample) == std::ssize(learned));
  const auto [prompt, answer] = task.as_text(sample);
  BOOST_TEST(answer == task.vocabulary().decode(learned));
  return prompt + "[" + answer + "]";
}

/// The message of the error with which a task with these options is refused.
std::string opened(const TaskOptions& options) {
  return refusal([&] { make(options)->count(); });
}

/// Checks the scores of the model in the folder `run`, which was trained on sentences().
void expect_low_bits_per_byte(const Program& program) {
  const auto validation = [&](const std::string& metric, const std::string& flags = {}) {
    const Json scores = program.json("eval run --samples 20 --json" + flags);
    for (const Json& row : scores["rows"]) {
      if (row["on"] == "validation" && row["metric"] == metric) return row["value"].number();
    }
    return -1.0;
  };
  const double bits = validation("bits_per_byte");
  BOOST_TEST(bits < 0.5);
  // The perplexity is that of a token, and each token is one byte.
  BOOST_TEST(std::abs(std::log2(validation("perplexity")) - bits) < 1e-6);
  write_atomically(program.folder / "strange", std::string(100, '%'));
  BOOST_TEST(validation("bits_per_byte", " --text " + program.path("strange")) > 2);
  BOOST_TEST(program("eval run --text absent").status == 1);
  BOOST_TEST(program("eval run --text strange --on train").status == 2);
}

/// Checks how the model that the caller has trained continues prompts.
void expect_learned_continuations(const Program& program) {
  BOOST_TEST(program("generate run --prompt 'the cat sat' --tokens 12 --temp 0").out ==
             "the cat sat on the mat.\n");
  BOOST_TEST(program("generate run --prompt 'the cat sat' --tokens 12 --temp 0 --stop mat").out ==
             "the cat sat on the \n");
  const std::string plain = "generate run --prompt 'the ' --tokens 25";
  BOOST_TEST(program(plain).out == program(plain + " --temperature 0.8").out);  // default: 0.8
  const std::string warm = "generate run --prompt 'the ' --temperature 1 --tokens 40 --seed ";
  BOOST_TEST(program(warm + "5").out == program(warm + "5 --threads 1").out);
  BOOST_TEST(program(warm + "5").out != program(warm + "6").out);
  const Json two =
      program.json("generate run --prompt 'the c' --prompt 'the d' --tokens 2 --temp 0 --json");
  BOOST_TEST(two["continuations"][0]["text"] == "at");
  BOOST_TEST(two["continuations"][1]["text"] == "og");
  BOOST_TEST(two["continuations"][1]["log_probabilities"][0].number() > -0.5);
  BOOST_TEST(program("generate run --prompt 'the cat' --tokens 0 --logits l.safetensors").status ==
             0);
  const SafetensorsFile logits = SafetensorsFile::open(program.folder / "l.safetensors");
  BOOST_TEST((logits.at("logits").shape == Shape{7, 256}));
}

/// Checks that a text longer than the trained windows is continued from its end.
void expect_continuations_beyond_the_context(const Program& program) {
  const Program::Outcome beyond =
      program("generate run --prompt 'the dog ran to the cat. the cat sat' --tokens 30 --temp 0");
  BOOST_TEST(beyond.out.starts_with("the dog ran to the cat. the cat sat on the mat. the dog ran"));
  BOOST_TEST(contains(beyond.err, "the model reads at most 33 tokens at once"));
  const Program::Outcome unlimited =
      program("generate run --prompt 'the cat' --tokens 60 --context 0");
  BOOST_TEST(unlimited.err == "");
  write_atomically(program.folder / "long", sentences(4000));
  BOOST_TEST(program("generate run --prompt - --tokens 8 --temp 0 <long").status == 0);
  program.refuses(2, "generate run --prompt x --context 1",
                  "--context: expected 0 or at least 2, got 1");
}

}  // namespace text_test

BOOST_FIXTURE_TEST_SUITE(text_test, Program)

BOOST_AUTO_TEST_CASE(samples_are_windows_of_the_part_they_belong_to) {
  write_atomically(folder / "t", places(250));
  const std::string file = path("t");
  std::int32_t least = 1000, most = 0;
  for (const char* part : {"train", "validation"}) {
    const auto task = make({{"text", file}, {"length", "9"}, {"held_out", "0.2"}}, part);
    for (std::uint32_t i = 0; i < 3000; ++i) {
      const Sample sample = draw(*task, i);
      const auto learned = std::ssize(sample.tokens) - 1;
      BOOST_REQUIRE((learned == 9 || sample.tokens.back() == 249));
      BOOST_REQUIRE(sample.tokens.back() - sample.tokens.front() == learned);
      if (std::string_view(part) == "train") {
        most = std::max(most, sample.tokens.back());
      } else {
        least = std::min(least, sample.tokens.front());
      }
      BOOST_REQUIRE(task->target_bytes(sample) == learned);
    }
  }
  // Byte 199 is the last one of the training part of the text, and samples for training reach it.
  BOOST_TEST(most == 199);
  // Byte 200 is the first one of the validation part, and a sample for validation begins with it.
  BOOST_TEST(least == 200);
}

BOOST_AUTO_TEST_CASE(a_text_can_be_trained_on_completely) {
  write_atomically(folder / "t", places(250));
  const auto task = make({{"text", path("t")}, {"length", "9"}, {"held_out", "0"}}, "train");
  std::int32_t most = 0;
  for (std::uint32_t i = 0; i < 3000; ++i) most = std::max(most, draw(*task, i).tokens.back());
  BOOST_TEST(most == 249);

  // Without samples for validation, a run is scored on training samples.
  write_atomically(folder / "sentences", sentences(20));
  write_atomically(folder / "one.jsonl", R"({"prompt": "a", "answer": "b"})"
                                         "\n");
  const std::string tiny =
      "train --task text --task.length 16 --layers 1 --heads softmax:2 --width 8 --steps 4 --batch "
      "2 "
      "--evaluate-samples 4 --threads 1 --quiet --json ";
  for (const char* file : {"sentences", "one.jsonl"}) {
    const std::string out = text("run-", file);
    const Json scores =
        json(text(tiny, "--text ", file, " --task.held-out 0 --out ", out))["scores"];
    BOOST_TEST(scores["train/bits_per_byte"].is_number());
    BOOST_TEST(!scores.contains("validation/bits_per_byte"));
    BOOST_TEST(json(text("runs ", out, " --json"))["rows"][0]["metric"] == "train/bits_per_byte");
    const std::string lines = contents(path(out + "/metrics.jsonl"));
    BOOST_TEST(contains(lines, "\"samples\":[{\"prompt\":"));  // continuations of training samples
  }
  const Json later = json("eval run-sentences --text sentences --samples 4 --json");
  BOOST_TEST(later["rows"][0]["on"] == "validation");
  refuses(1, tiny + "--text one.jsonl --out refused",
          "the file has 1 records, and 0 records are shown as examples before every prompt; "
          "--task.held-out 0 trains on all records");
}

BOOST_AUTO_TEST_CASE(validation_reads_every_window_once) {
  write_atomically(folder / "t", places(250));
  const auto task = make({{"text", path("t")}, {"length", "9"}, {"held_out", "0.2"}}, "validation");
  BOOST_TEST(task->count() == 6u);
  std::vector<std::int32_t> targets;
  const auto take = [&](std::span<const Sample> samples) {
    for (const Sample& sample : samples) {
      targets.insert(targets.end(), sample.tokens.begin() + 1, sample.tokens.end());
    }
  };
  app::for_samples(*task, {.samples = 1000}, take);
  BOOST_REQUIRE(targets.size() == 49u);
  for (std::int32_t i = 0; i < 49; ++i) BOOST_TEST(targets[static_cast<std::size_t>(i)] == 201 + i);
  targets.clear();
  app::for_samples(*task, {.samples = 2}, take);  // the first and the fourth of six windows
  BOOST_TEST(targets.size() == 18u);
  BOOST_TEST(targets.at(9) == 228);
}

BOOST_AUTO_TEST_CASE(a_window_begins_with_what_the_tokenizer_puts_before_a_text) {
  write_atomically(folder / "begins.json", small_tokenizer_that_begins());
  write_atomically(folder / "t", sentences(40));
  for (const char* part : {"train", "validation"}) {
    const auto task =
        make({{"text", path("t")}, {"length", "9"}, {"tokenizer", path("begins.json")}}, part);
    BOOST_TEST(task->vocabulary().beginning() == std::vector<std::int32_t>{2},
               boost::test_tools::per_element());
    BOOST_TEST(task->longest() == 11);
    for (std::uint64_t i = 0; i < task->count(); ++i) {
      const Sample sample = task->sample_at(i, 0.5);
      const bool whole = i + 1 < task->count() || sample.tokens.size() == 11u;
      BOOST_REQUIRE((whole ? sample.tokens.size() == 11u : sample.tokens.size() < 11u));
      BOOST_REQUIRE(sample.targets.size() == sample.tokens.size());
      // The token that the tokenizer adds at the beginning of a window is not a target. The first
      // token of the text in the window is not a target either.
      BOOST_REQUIRE(sample.tokens[0] == 2);
      BOOST_REQUIRE(sample.targets[0] == Sample::not_counted);
      for (std::size_t at = 1; at + 1 < sample.tokens.size(); ++at) {
        BOOST_REQUIRE(sample.tokens[at] != 2);
        BOOST_REQUIRE(sample.targets[at] == sample.tokens[at + 1]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_epoch_has_each_window_once_and_the_next_epoch_has_other_windows) {
  write_atomically(folder / "t", places(251));
  const std::shared_ptr<const Task> task =
      make({{"text", path("t")}, {"length", "10"}, {"held_out", "0"}});
  BOOST_REQUIRE(task->count() == 24u);
  const auto first_tokens = [&](std::uint64_t seed, app::BatchPlan plan, std::int64_t step,
                                std::int64_t part) {
    const nn::Batch batch = app::training_batches(task, seed, plan)(step, part);
    std::vector<std::int32_t> first;
    for (std::size_t i = 0; i < batch.tokens.size(); i += 10) first.push_back(batch.tokens[i]);
    return first;
  };
  // A step reads six windows, and four steps are one epoch.
  std::set<std::int32_t> offsets;
  std::vector<std::vector<std::int32_t>> epochs;
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    std::vector<std::int32_t> first;
    for (std::int64_t step = 1; step <= 4; ++step) {
      const auto some = first_tokens(1, {.sequences = 6}, 4 * epoch + step, 0);
      first.insert(first.end(), some.begin(), some.end());
    }
    epochs.push_back(first);
    std::ranges::sort(first);
    offsets.insert(first.front());
    for (std::size_t i = 0; i < 24; ++i) {
      BOOST_REQUIRE(first[i] == first.front() + 10 * static_cast<std::int32_t>(i));
    }
  }
  BOOST_TEST(offsets.size() > 3u);  // each epoch has one of 11 possible offsets
  BOOST_TEST(*offsets.rbegin() <= 10);
  BOOST_TEST(std::set(epochs.begin(), epochs.end()).size() == 10u);
  // A step reads the same windows of the text whether its batch is one part or is cut into two
  // parts. With another seed, it reads other windows.
  auto halves = first_tokens(1, {.sequences = 3, .batches = 2}, 7, 0);
  const auto second = first_tokens(1, {.sequences = 3, .batches = 2}, 7, 1);
  halves.insert(halves.end(), second.begin(), second.end());
  BOOST_TEST(halves == first_tokens(1, {.sequences = 6}, 7, 0));
  // Six windows of ten tokens fit into 69 tokens.
  BOOST_TEST(first_tokens(1, {.tokens = 69}, 7, 0) == halves);
  BOOST_TEST(halves != first_tokens(2, {.sequences = 6}, 7, 0));
  BOOST_CHECK_THROW(app::training_batches(task, 1, {.sequences = 6, .set = 5}), Error);
}

BOOST_AUTO_TEST_CASE(the_held_out_part_begins_with_a_document) {
  write_atomically(folder / "t", "one two##three four five##six seven##eight");
  const auto validation = [&](const char* held_out) {
    const auto task = make(
        {{"text", path("t")}, {"length", "100"}, {"held_out", held_out}, {"separator", "#\\x23"}},
        "validation");
    return task->vocabulary().decode(task->sample_at(0, 0).tokens);
  };
  BOOST_TEST(validation("0.5") == "six seven##eight");
  BOOST_TEST(validation("0.05") == "eight");  // even a small share holds out the last document
  const auto train =
      make({{"text", path("t")}, {"length", "25"}, {"held_out", "0.5"}, {"separator", "##"}});
  BOOST_TEST(train->vocabulary().decode(train->sample_at(0, 0.99).tokens) ==
             "one two##three four five##");
  BOOST_CHECK_THROW(make({{"separator", "\\y"}}), Error);
  BOOST_CHECK_THROW(make({{"separator", "\\x1"}}), Error);
}

BOOST_AUTO_TEST_CASE(the_answer_of_a_record_and_its_end_are_trained) {
  const std::string file = records_file(*this);
  const auto plain = make({{"text", file}, {"separator", "\\n"}, {"held_out", "0.34"}});
  BOOST_TEST(plain->count() == 2u);
  BOOST_TEST(text_of(*plain, 0) == "1+1=[2\n]");
  BOOST_TEST(text_of(*plain, 1) == "2+2=[4\n]");
  const auto held_out =
      make({{"text", file}, {"separator", "\\n"}, {"held_out", "0.34"}}, "validation");
  BOOST_TEST(held_out->count() == 1u);
  BOOST_TEST(text_of(*held_out, 0) == "3+3=[six!\n]");

  // Validation has at least one record, however small its share is.
  const auto few = make({{"text", file}, {"separator", "\\n"}}, "validation");
  BOOST_TEST(few->count() == 1u);
  BOOST_TEST(text_of(*few, 0) == "3+3=[six!\n]");
  BOOST_TEST(make({{"text", file}, {"separator", "\\n"}})->count() == 2u);

  const auto shown = make({{"text", file},
                           {"held_out", "0"},
                           {"end", "46"},
                           {"instruction", "Add.\\n"},
                           {"examples", "1"}});
  BOOST_TEST(shown->count() == 2u);  // the first of the three records is the example
  BOOST_TEST(text_of(*shown, 0) == "Add.\n1+1=2\n2+2=[4.]");
}

BOOST_AUTO_TEST_CASE(records_longer_than_a_sample_are_refused_or_cut) {
  const std::string file = records_file(*this);
  BOOST_TEST(
      contains(opened({{"text", file}, {"held_out", "0"}, {"length", "6"}}), "qa.jsonl:4: "));
  const auto cut = make({{"text", file}, {"held_out", "0"}, {"length", "6"}, {"cut", "1"}});
  BOOST_TEST(text_of(*cut, 2) == "3+3=[six]");
  BOOST_TEST(contains(opened({{"text", file}, {"held_out", "0"}, {"length", "3"}, {"cut", "1"}}),
                      "qa.jsonl:1: "));
}

BOOST_AUTO_TEST_CASE(unusable_records_are_refused) {
  const std::string file = records_file(*this);
  BOOST_TEST(opened({{"text", file}, {"examples", "3"}}) != "accepted");
  BOOST_TEST(opened({{"text", file}, {"examples", "4"}}) != "accepted");
  BOOST_CHECK_THROW(make({{"template", "alpaca"}, {"text", file}})->count(), Error);
  for (const char* wrong :
       {"{\"prompt\": \"a\"}", "{\"prompt\": 1, \"answer\": \"a\"}", "[]", "{",
        "{\"prompt\": \"\", \"answer\": \"a\"}", "{\"prompt\": \"a\", \"answer\": \"\"}"}) {
    write_atomically(folder / "w", "{\"prompt\": \"a\", \"answer\": \"b\"}\n" + std::string(wrong));
    const std::string said = opened({{"text", path("w")}, {"form", "jsonl"}, {"held_out", "0"}});
    BOOST_TEST_CONTEXT(wrong) { BOOST_TEST(contains(said, "w:2: ")); }
  }
  write_atomically(folder / "w", "");
  BOOST_TEST(opened({{"text", path("w")}, {"form", "jsonl"}}) != "accepted");
  BOOST_CHECK_THROW(make({{"template", "auto"}}), Error);
}

BOOST_AUTO_TEST_CASE(unusable_texts_are_refused_when_they_are_needed) {
  Rng rng(1, Purpose::test);
  BOOST_CHECK_THROW(make({})->sample(rng, 0), Error);
  BOOST_CHECK_THROW(make({{"text", path("absent")}})->sample(rng, 0), Error);
  write_atomically(folder / "short", "abc");
  BOOST_CHECK_THROW(make({{"text", path("short")}, {"length", "8"}})->sample(rng, 0), Error);
  BOOST_CHECK_THROW(make({{"tokenizer", path("absent")}}), Error);
  BOOST_CHECK_THROW(make({{"end", "1,x"}}), Error);
  refuses(1, "train --task text --text absent --quiet --out r",
          "absent: cannot be read: No such file or directory");
  write_atomically(folder / "book", sentences(20));
  // A text without a task selects the task `text`.
  refuses(1, "train --text absent --quiet --out r", "train: absent: cannot be read: No such file");
  refuses(1, "train --text book --set 8 --quiet --out r", "--set: expected 0");
  refuses(1, "train --task text --text book --set 8 --quiet --out r",
          "--set: expected 0 (no random training set), because the task already has a fixed list "
          "of 2 training samples; got 8");
  BOOST_TEST(!std::filesystem::exists(folder / "r"));
}

BOOST_AUTO_TEST_CASE(a_byte_model_learns_a_text_and_continues_it) {
  write_atomically(folder / "book", sentences(200));
  const auto trained = (*this)(
      "train --task text --text book --task.length 32 --width 32 --layers 2 --heads softmax:2 "
      "--steps 300 --batch 16 --rate 3e-3 --warm_up 10 --evaluate_samples 10 --evaluate_every 100 "
      "--quiet --out run");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  const std::string report = contents(path("run/report.html"));
  for (const char* part : {"Samples during training", "Step 100<", "Step 300<", "bits_per_byte",
                           "300 steps, 153600 tokens"}) {
    BOOST_TEST(contains(report, part));
  }
  expect_low_bits_per_byte(*this);
  expect_learned_continuations(*this);
  expect_continuations_beyond_the_context(*this);

  // The model can generate text without its training text. To score the model, the training text
  // or another text is required.
  std::filesystem::remove(folder / "book");
  BOOST_TEST((*this)("generate run --prompt 'the c' --tokens 2 --temp 0").out == "the cat\n");
  BOOST_TEST((*this)("eval run --samples 5").status == 1);
  BOOST_TEST((*this)("eval run --text strange").status == 0);
}

BOOST_AUTO_TEST_CASE(a_resumed_run_reads_the_same_windows) {
  write_atomically(folder / "book", sentences(20));
  const auto trained = (*this)(
      "train --task text --text book --task.length 16 --width 16 --layers 1 --heads softmax:2 "
      "--steps 24 --batch 8 --checkpoint_every 7 --keep 9 --evaluate_samples 0 --quiet --out run");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  const auto losses = [&] {
    std::vector<Json> all;
    for (const Json& line : metrics("run")) all.push_back(line["loss"]);
    return all;
  };
  const auto whole = losses();
  BOOST_TEST(whole.size() == 24u);
  BOOST_REQUIRE((*this)("train --resume run --from-step 7 --threads 1 --quiet").status == 0);
  BOOST_TEST(losses() == whole);
}

BOOST_AUTO_TEST_CASE(a_run_with_a_tokenizer_contains_it) {
  write_atomically(folder / "book", sentences(200));
  BOOST_REQUIRE((*this)("tokenize train book --out t.json --size 300").status == 0);
  const auto trained = (*this)(
      "train --task text --text book --tokenizer t.json --task.length 16 --width 32 --layers 2 "
      "--heads softmax:2 --steps 150 --batch 16 --rate 3e-3 --warm_up 10 --evaluate_samples 5 "
      "--quiet --out run");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  std::filesystem::remove(folder / "t.json");
  BOOST_TEST((*this)("generate run --prompt 'the cat sat' --tokens 3 --temp 0")
                 .out.starts_with("the cat sat on the"));
  // The run contains its tokenizer, so the removed file is not needed.
  BOOST_TEST((*this)("eval run --samples 5").status == 0);
}

BOOST_AUTO_TEST_CASE(invalid_options_are_refused_in_one_line) {
  refuses(1, "train --task text --steps 1 --quiet --out r", "--text FILE");
  refuses(1, "train --task text --text absent --steps 1 --quiet --out r", "absent");
  refuses(2, "train --task flip-flop --text absent --out r", "--text");
  refuses(
      2, "train --task text --text x --tokenizer absent --out r",
      "absent: expected `bytes`, a tokenizer.json or a folder with one, but there is no such file");
  refuses(2, "generate r --prompt x --temperature hot", "--temperature");
  refuses(2, "generate r --prompt x --top-p 2", "--top-p");
  BOOST_TEST(!std::filesystem::exists(folder / "r"));
}

BOOST_AUTO_TEST_CASE(an_unusable_text_is_refused_in_one_line) {
  // The text is read when the first sample is drawn. With a static libgcc, an error that is thrown
  // at that point could abort the program.
  write_atomically(folder / "empty.txt", "");
  refuses(1, "train --task text --text empty.txt", "empty.txt: expected at least 257 tokens");
  refuses(1, "train --task text --text none.txt", "none.txt: cannot be read: No such file");
  refuses(1, "train --task text --text .", "expected a file, got a folder");
}

BOOST_AUTO_TEST_CASE(epochs_become_steps) {
  write_atomically(folder / "book.txt", sentences(200));
  const std::string book =
      "train --task text --text book.txt --task.length 16 --width 8 --layers 1 "
      "--heads softmax:2 --evaluate-samples 0 --batch 16 --quiet --out ";
  const auto steps_of = [&](const std::string& words) {
    const Outcome trained = (*this)(book + words);
    BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
    return std::ssize(metrics(words.substr(0, words.find(' '))));
  };
  // 9,120 of the 9,600 bytes of the text are for training. They give 569 samples with 16 predicted
  // bytes each.
  const auto half = steps_of("half --epochs 0.5"), two = steps_of("two --epochs 2");
  BOOST_TEST(half == 18);
  BOOST_TEST(two == 72);
  const std::string words = "train --task sorting --quiet --out other ";
  refuses(2, words + "--epochs 3", "--epochs: expected a training set (--set N)");
  refuses(2, words + "--epochs 3 --steps 5", "--epochs cannot be combined with --steps");
  refuses(2, words + "--epochs -1", "--epochs: expected a number from 0");
  refuses(2, words + "--epochs 1 --set 50 --batch-tokens 90",
          "--epochs: expected --batch instead of --batch-tokens");
  refuses(2, words + "--epochs 1e6 --set 4294967295 --batch 1", "--epochs: ");
  refuses(2, "train --resume two --epochs 5", "--epochs");
  app::BatchPlan plan{.sequences = 8, .batches = 2, .set = 40};
  const auto task = app::Config("words").task();
  BOOST_TEST(app::steps_of_epochs(1, *task, plan) == 3);
  BOOST_TEST(app::steps_of_epochs(4, *task, plan) == 10);
}

BOOST_AUTO_TEST_SUITE_END()
