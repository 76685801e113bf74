// Tests the settings that `longhand train --minutes` chooses. The speed of the machine is given, so
// no test depends on time.
#include "apps/run/text_budget.h"

#include <cmath>

#include "apps/run/plan.h"
#include "apps/run/training.h"
#include "core/atomic_file.h"
#include "nn/training/checkpoint_store.h"
#include "tests/program.h"
#include "tests/refusal.h"

namespace text_budget_test {

using namespace longhand;
using namespace longhand::app;

/// A text with many different words.
std::string story(int sentences) {
  std::string text;
  for (int i = 0; i < sentences; ++i) {
    text += longhand::text("Chapter ", i, " tells of ", i * i % 97, " cats that ran to the ",
                           i % 7 == 0 ? "house" : "river", " and of ", i % 11, " dogs.\n");
  }
  return text;
}

struct Fixture {
  Program longhand;

  /// A machine with `speed` operations per second, for which `estimate` is a first estimate.
  static Machine machine(double speed, double estimate) {
    return {.elapsed = [] { return 1.0; },
            .speed = [estimate] { return estimate; },
            .seconds_per_step =
                [speed](Config config) {
                  config.set("training.steps", "1");
                  return training_work(config).operations / speed;
                }};
  }

  Config text_config(const std::string& text, const std::string& file = "book.txt") const {
    write_atomically(longhand.folder / file, text);
    Config config("text");
    config.set("task.text", longhand.path(file));
    return config;
  }

  TextPlan plan(const Config& config, double seconds, double speed = 3e10, double estimate = 3e10) {
    lines.clear();
    return plan_text_training(config, longhand.folder / "run", seconds, machine(speed, estimate),
                              [&](const std::string& line) { lines += line + '\n'; });
  }

  std::string lines;  // the lines that the last plan printed
};

}  // namespace text_budget_test

BOOST_FIXTURE_TEST_SUITE(text_budget_test, Fixture)

BOOST_AUTO_TEST_CASE(a_longer_time_never_chooses_a_smaller_model_and_always_fits) {
  const Config config = text_config(story(2000));
  std::int64_t parameters = 0;
  for (const double seconds : {20.0, 60.0, 300.0, 1800.0, 7200.0}) {
    const TextPlan planned = plan(config, seconds);
    BOOST_TEST_CONTEXT(seconds << " seconds: " << lines) {
      const TrainingWork work = training_work(planned.config);
      BOOST_TEST(work.parameters >= parameters);
      parameters = work.parameters;
      BOOST_TEST(1 + work.operations / 3e10 < planned.training_ends);
      const bool is_short = lines.find("would memorize this short text") != lines.npos;
      BOOST_TEST((is_short || 1 + work.operations / 3e10 > 0.7 * seconds));
      BOOST_TEST(planned.training_ends < seconds);
      const TrainingSettings settings = planned.config.training();
      // The learning rate falls to almost 0 at the last step.
      BOOST_TEST(settings.schedule.at(settings.schedule.steps) < 1e-3 * settings.schedule.peak);
      BOOST_TEST(contains(lines, longhand::text("steps: ", settings.schedule.steps, ", ")));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_plan_is_written_as_ordinary_settings_and_is_the_same_each_time) {
  const Config config = text_config(story(2000));
  const TextPlan planned = plan(config, 60);
  BOOST_TEST(plan(config, 60).config.ini() == planned.config.ini());
  BOOST_TEST(Config::parse(planned.config.ini(), "x").ini() == planned.config.ini());
  BOOST_TEST(planned.config.text("task.tokenizer") == longhand.path("run/tokenizer"));
}

BOOST_AUTO_TEST_CASE(the_measured_speed_corrects_a_wrong_estimate) {
  Config config = text_config(story(2000));
  config.set("task.tokenizer", "bytes", "--tokenizer");
  const std::string right = plan(config, 60, 1e12, 1e12).config.text("model.width");
  const std::string other = plan(config, 60, 3e10, 3e10).config.text("model.width");
  BOOST_TEST(right != other);
  BOOST_TEST(plan(config, 60, 1e12, 3e10).config.text("model.width") == right);
  BOOST_TEST(plan(config, 60, 3e10, 1e12).config.text("model.width") == other);
}

BOOST_AUTO_TEST_CASE(a_short_text_gets_a_small_model_and_at_most_40_epochs) {
  const TextPlan of_short = plan(text_config(story(500)), 7200);
  BOOST_TEST(contains(lines, "would memorize this short text"));
  BOOST_TEST(of_short.config.text("model.dropout") == "0.2");
  const TextPlan of_long = plan(text_config(story(20'000)), 7200);
  BOOST_TEST(training_work(of_short.config).parameters < training_work(of_long.config).parameters);
}

BOOST_AUTO_TEST_CASE(settings_of_the_user_are_kept) {
  Config config = text_config(story(2000));
  config.set("model.width", "96", "--width");
  config.set("training.rate", "0.5", "--rate");
  config.set("task.tokenizer", "bytes", "--tokenizer");
  const TextPlan planned = plan(config, 60);
  BOOST_TEST(planned.config.text("model.width") == "96");
  BOOST_TEST(planned.config.text("training.rate") == "0.5");
  BOOST_TEST(planned.config.text("task.tokenizer") == "bytes");
  BOOST_TEST(!std::filesystem::exists(longhand.folder / "run" / "tokenizer"));
  for (const char* width : {"8", "100", "1000"}) {
    config.set("model.width", width, "--width");
    config.set("model.layers", "1", "--layers");
    BOOST_TEST(plan(config, 600).config.text("model.width") == width);
  }
}

BOOST_AUTO_TEST_CASE(texts_and_times_for_which_no_plan_is_possible_are_refused_in_one_line) {
  expect_refusal([&] { plan(text_config(story(100)), 60); },
                 "expected at least 20000 bytes to train on for --minutes, got ");
  expect_refusal([&] { plan(text_config(""), 60); }, "got 0");
  expect_refusal([&] { plan(text_config(story(1000)), 1); },
                 "--minutes: expected time for at least 20 training steps");
  expect_refusal([&] { plan(text_config(story(1000), "x.jsonl"), 60); }, "expected a plain text");
  Config absent("text");
  expect_refusal([&] { plan(absent, 60); }, "--minutes: expected a text (--text FILE)");
  absent.set("task.text", longhand.path("absent"));
  expect_refusal([&] { plan(absent, 60); }, "absent");
  BOOST_TEST(!std::filesystem::exists(longhand.folder / "run"));

  // A text that is not UTF-8 has no tokenizer.
  const TextPlan planned = plan(text_config(story(1000) + "\xff" + story(1000)), 60);
  BOOST_TEST(planned.config.text("task.tokenizer") == "bytes");
  BOOST_TEST(contains(lines, "not valid UTF-8"));
}

BOOST_AUTO_TEST_CASE(flags_that_contradict_minutes_are_refused_in_one_line) {
  write_atomically(longhand.folder / "book.txt", story(1000));
  const std::string train = "train --text book.txt --out run ";
  longhand.refuses(2, train + "--minutes 0", "--minutes: expected a number above 0, got 0");
  longhand.refuses(2, train + "--minutes -1", "--minutes: expected a number");
  longhand.refuses(2, train + "--minutes soon", "--minutes: expected a number");
  longhand.refuses(2, train + "--minutes 1 --steps 5", "--minutes cannot be combined with --steps");
  longhand.refuses(2, train + "--minutes 1 --epochs 5",
                   "--minutes cannot be combined with --epochs");
  longhand.refuses(2, train + "--minutes 1 --max-minutes 5",
                   "--minutes cannot be combined with --max-minutes");
  longhand.refuses(2, "train --resume run --minutes 1", "--minutes");
  longhand.refuses(2, "train --from run --minutes 1", "--minutes cannot be combined with --from");
  longhand.refuses(2, "train --task sorting --minutes 1",
                   "--minutes: expected the task text, got the task sorting");
  BOOST_TEST(!std::filesystem::exists(longhand.folder / "run"));
}

BOOST_AUTO_TEST_CASE(a_training_whose_time_is_over_is_scored_and_can_be_resumed) {
  Config config = text_config(story(1000));
  for (const auto& [key, value] :
       {std::pair("model.width", "16"), std::pair("model.layers", "1"),
        std::pair("model.heads", "softmax:2"), std::pair("training.steps", "9")}) {
    config.set(key, value);
  }
  RunFolder folder = RunFolder::create(longhand.folder / "run", config);
  RunControl control{
      .quiet = true, .until = std::chrono::steady_clock::time_point(), .scores_at_stop = true};
  const TrainingResult result = train(folder, control);
  BOOST_TEST(result.step == 1);
  BOOST_TEST(!result.finished);
  BOOST_TEST(result.scores["validation/bits_per_byte"].number() > 0);
}

BOOST_AUTO_TEST_CASE(the_command_trains_a_model_that_writes_text_and_can_be_repeated) {
  // The text is so short that the training ends long before the time is over.
  write_atomically(longhand.folder / "book.txt", story(400));
  const auto trained = longhand(
      "train --text book.txt --minutes 3 --width 32 --layers 1 --batch 32 --task.length 32 "
      "--evaluate-samples 4 --out run");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  for (const char* part : {"# tokens: ", "# model: ", "# data: ", "# optimizer: ", "# steps: "}) {
    BOOST_TEST(contains(trained.err, part));
  }
  BOOST_TEST(contains(trained.out, "bits per byte of the held-out text: "));
  BOOST_TEST(contains(trained.out, "continuation of "));
  const std::string ini = contents(longhand.path("run/config.ini"));
  BOOST_TEST(contains(ini, "width = 32\n"));
  const int steps = static_cast<int>(Config::parse(ini, "x").training().schedule.steps);
  const int step =
      static_cast<int>(*nn::CheckpointStore(longhand.folder / "run" / "checkpoints", 1).latest());
  if (step < steps) return;  // the machine became slower after the steps were timed
  BOOST_REQUIRE(longhand("train --config run/config.ini --quiet --out again").status == 0);
  BOOST_TEST((longhand.checkpoint("again", steps) == longhand.checkpoint("run", steps)));
}

BOOST_AUTO_TEST_SUITE_END()
