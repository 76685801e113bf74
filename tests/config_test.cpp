#include "apps/run/config_mixers.h"
#include "nn/mixers/chacal.h"
#include "nn/mixers/softmax.h"

#include <algorithm>
#include <fstream>
#include "tests/check.h"

#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace config_test {

using namespace longhand;
using namespace longhand::app;

struct Fixture {
  TemporaryFolder folder;
  Command command{.name = "train",
                  .summary = {},
                  .usage = {},
                  .options = join(config_options(), {{"config", "FILE", "a configuration"}}),
                  .examples = {},
                  .run = {}};

  std::string file(const std::string& text) const {
    std::ofstream(folder / "run.ini") << text;
    return (folder / "run.ini").string();
  }
  Config from(const std::vector<std::string>& words) const {
    return Config::from(command.parse(words));
  }
  /// Returns the error message with which these words of the command line are refused.
  template <class Refused>
  std::string refusal(const std::vector<std::string>& words) const {
    return longhand::refusal<Refused>([&] { from(words); });
  }
  std::string refused_file(const std::string& text) const {
    const std::string name = file(text);
    try {
      from({"--config", name});
    } catch (const UsageError&) {
      return "taken for wrong usage";
    } catch (const Error& error) {
      const std::string message = error.what();
      return message.starts_with(name) ? message.substr(name.size()) : message;
    }
    return "accepted";
  }
};

}  // namespace config_test

BOOST_FIXTURE_TEST_SUITE(config_test, Fixture)

BOOST_AUTO_TEST_CASE(written_settings_read_back_unchanged) {
  const Config config =
      from({"--task", "cycle-tracing", "--task.max-nodes", "12", "--task.min-nodes", "11", "--rate",
            "3e-4", "--heads", "softmax:1,fal:1", "--math", "exact", "--seed", "7"});
  const Config again = Config::read(file(config.ini()));
  BOOST_TEST(again.ini() == config.ini());
  BOOST_TEST(again.kind().name == "cycle-tracing");
  BOOST_TEST(again.text("task.max-nodes") == "12");
  BOOST_TEST(again.training().schedule.peak == 3e-4);
  BOOST_TEST(again.training().seed == 7u);
  BOOST_TEST((again.compute().options.math == Math::exact));
  for (const tasks::TaskKind& kind : tasks::all_tasks()) {
    const Config defaults(kind.name);
    BOOST_TEST(Config::read(file(defaults.ini())).ini() == defaults.ini());
  }
}

BOOST_AUTO_TEST_CASE(
    a_run_of_an_older_version_keeps_its_behaviour_and_a_partial_file_gets_defaults) {
  std::string older = Config("flip-flop").ini();
  const std::string line = "rate_at = start\n";
  BOOST_REQUIRE(contains(older, line));
  older.erase(older.find(line), line.size());
  const std::string minutes = "checkpoint_minutes = 10\n";
  BOOST_REQUIRE(contains(older, minutes));
  older.erase(older.find(minutes), minutes.size());
  BOOST_TEST(Config::read(file(older)).text("training.rate_at") == "end");
  BOOST_TEST(Config::read(file(older)).text("training.checkpoint_minutes") == "0");
  BOOST_TEST((Config::read(file(older)).training().schedule.place == nn::Schedule::Place::end));
  BOOST_TEST(Config::read(file(older)).training().schedule.at(1000) == 0.0);
  BOOST_TEST(from({"--config", file(older)}).text("training.rate_at") == "end");
  BOOST_TEST(from({"--config", file(older), "--rate-at", "start"}).text("training.rate_at") ==
             "start");
  const std::string partial = "[task]\nname = flip-flop\n[training]\nschedule = cosine\n";
  BOOST_TEST(Config::read(file(partial)).text("training.rate_at") == "start");
  BOOST_TEST(Config::read(file(partial)).training().schedule.at(1000) > 0);
}

BOOST_AUTO_TEST_CASE(texts_are_trained_with_the_usual_settings_of_language_models) {
  const std::string book = file("a text that is long enough");
  const auto training = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--text", book, "--task.length", "4"});
    return from(words).training();
  };
  const TrainingSettings text = training({"--task", "text", "--steps", "1000"});
  BOOST_TEST((text.schedule.curve == nn::Schedule::Curve::cosine));
  BOOST_TEST(text.schedule.warm_up == 50);
  BOOST_TEST(text.adam.clip == 1.0);
  BOOST_TEST(text.adam.decay == 0.1);
  BOOST_TEST(text.evaluate_minutes == 10.0);
  const TrainingSettings other =
      training({"--task", "text", "--schedule", "linear", "--warm-up", "7", "--clip", "0",
                "--decay", "0", "--evaluate-minutes", "0"});
  BOOST_TEST((other.schedule.curve == nn::Schedule::Curve::linear));
  BOOST_TEST(other.schedule.warm_up == 7);
  BOOST_TEST(other.adam.clip + other.adam.decay + other.evaluate_minutes == 0.0);
  const TrainingSettings sorting = from({"--task", "sorting"}).training();
  BOOST_TEST((sorting.schedule.curve == nn::Schedule::Curve::linear));
  BOOST_TEST(sorting.schedule.warm_up == 100);
  BOOST_TEST(sorting.adam.clip + sorting.adam.decay + sorting.evaluate_minutes == 0.0);

  // The file of an older run has no setting evaluate_minutes. Such a run is not evaluated by time,
  // although new runs of this task are.
  std::string older = Config("text").ini();
  const std::string minutes = "evaluate_minutes = 10\n";
  BOOST_REQUIRE(contains(older, minutes));
  older.erase(older.find(minutes), minutes.size());
  BOOST_TEST(Config::read(file(older)).text("training.evaluate_minutes") == "0");
  const std::vector<CliFlag> options = config_options();
  const auto help_of = [&](const char* name) {
    return std::ranges::find(options, name, &CliFlag::name)->help;
  };
  BOOST_TEST(help_of("clip").ends_with("(0; task text: 1)"));
  BOOST_TEST(help_of("warm_up").ends_with("(100; task text: 5%; with LoRA: 5%)"));
  BOOST_TEST(help_of("rate").ends_with("(1e-3)"));
}

BOOST_AUTO_TEST_CASE(a_short_lora_run_reaches_its_full_rate) {
  const auto highest = [](const Config& config) {
    const nn::Schedule schedule = config.training().schedule;
    double rate = 0;
    for (std::int64_t step = 1; step <= schedule.steps; ++step) {
      rate = std::max(rate, schedule.at(step));
    }
    return rate;
  };
  const std::vector<std::string> words{"--task", "sorting", "--steps", "30", "--rate", "1e-3"};
  std::vector<std::string> lora = words, own = words;
  lora.insert(lora.end(), {"--lora", "4"});
  own.insert(own.end(), {"--lora", "4", "--warm-up", "20"});
  BOOST_TEST(highest(from(lora)) == 1e-3);
  BOOST_TEST(from(own).training().schedule.warm_up == 20);
  BOOST_TEST(highest(from(words)) < 0.5e-3);
  // A run that starts from a LoRA run also trains LoRA adapters. Its short warm-up ends within 30
  // steps, so it reaches the learning rate 1e-3.
  BOOST_TEST(highest(Config::from_run(from(lora), command.parse({"--steps", "30"}))) == 1e-3);
}

BOOST_AUTO_TEST_CASE(flags_and_files_determine_the_model) {
  const Config config =
      from({"--task",          "flip-flop",  "--width",       "32",
            "--layers",        "2",          "--heads",       "softmax:4;chacal:4",
            "--order",         "sequential", "--activation",  "gelu_tanh",
            "--norm_epsilon",  "1e-6",       "--score_scale", "0.5",
            "--window",        "9",          "--gamma",       "0.5",
            "--learned_gamma", "head",       "--temper",      "position",
            "--beta",          "0.25",       "--positions",   "learned",
            "--longest",       "99",         "--tied",        "1",
            "--start",         "residual",   "--deviation",   "0.5"});
  const Config again = Config::read(file(config.ini()));
  const nn::DecoderConfig model = again.model(*again.task());
  BOOST_TEST(nn::text_of(model.mixers, again.mixer_options()) == "softmax:4x8;chacal:4x8");
  const auto& heads = dynamic_cast<const nn::SoftmaxHeads&>(*model.mixers[0][0]);
  const auto& chained = dynamic_cast<const nn::ChacalHeads&>(*model.mixers[1][0]);
  BOOST_TEST((model.order == nn::Order::sequential));
  BOOST_TEST((model.activation == Activation::gelu_tanh));
  BOOST_TEST(model.epsilon == 1e-6);
  BOOST_TEST(heads.scores.scale == 0.5);
  BOOST_TEST(heads.window == 9);
  BOOST_TEST(chained.gamma == 0.5);
  BOOST_TEST((chained.learned_gamma == nn::Learned::head));
  BOOST_TEST((chained.scores.temper == nn::Temper::position));
  BOOST_TEST(heads.scores.beta == 0.25);
  BOOST_TEST((model.positions == nn::Positions::learned));
  BOOST_TEST(model.longest == 99);
  BOOST_TEST(model.tied);
  BOOST_TEST((model.start == nn::Start::residual));
  BOOST_TEST(model.deviation == 0.5);
}

BOOST_AUTO_TEST_CASE(the_settings_of_a_section_are_members) {
  const Config config = from({"--task",         "flip-flop",
                              "--steps",        "7",
                              "--rate",         "2e-4",
                              "--schedule",     "cosine",
                              "--beta2",        "0.98",
                              "--moments",      "bf16",
                              "--shard",        "gradients",
                              "--batch",        "24",
                              "--accumulation", "3",
                              "--parts",        "4",
                              "--seed",         "9000000000000000000",
                              "--train-on",     "sparse",
                              "--lora",         "2",
                              "--lora-targets", "key",
                              "--math",         "exact",
                              "--threads",      "3"});
  const TrainingSettings training = config.training();
  BOOST_TEST(training.schedule.steps == 7);
  BOOST_TEST(training.schedule.peak == 2e-4);
  BOOST_TEST((training.schedule.curve == nn::Schedule::Curve::cosine));
  BOOST_TEST(training.adam.beta2 == 0.98);
  BOOST_TEST(training.adam.short_moments);
  BOOST_TEST((training.shard == nn::Sharing::gradients));
  BOOST_TEST(training.batch_plan().sequences == 2);
  BOOST_TEST(training.batch_plan().batches == 12);
  BOOST_TEST(training.seed == 9000000000000000000u);
  BOOST_TEST(training.train_on == "sparse");
  BOOST_TEST(config.model_settings().decoder.lora.rank == 2);
  BOOST_TEST((config.model_settings().decoder.lora.targets == std::vector<std::string>{"key"}));
  BOOST_TEST((config.compute().options.math == Math::exact));
  BOOST_TEST(config.compute().options.threads == 3);
}

BOOST_AUTO_TEST_CASE(an_invalid_value_names_its_line_wherever_it_is_read) {
  const Config config = Config::read(file("[task]\nname = flip-flop\n[training]\nsteps = many\n"));
  BOOST_TEST(longhand::refusal<Error>([&] { config.training(); })
                 .ends_with("run.ini:4: training.steps: expected an integer from 0 to "
                            "1099511627776, got \"many\""));
}

BOOST_AUTO_TEST_CASE(a_model_set_by_a_program_reads_back_unchanged) {
  const Config plain("flip-flop");
  nn::DecoderConfig model = plain.model(*plain.task());
  model.mixers = nn::parse_layers(
      "softmax:4/2x8{window=3,score_scale=0.5},fal:1x8;softmax:2x8{rope_base=500}", 64);
  model.layers = 2;
  model.norm = nn::NormKind::rms_plus_one;
  model.order = nn::Order::sequential;
  model.norms_after = model.gated = true;
  model.mixing_bias = model.feed_forward_bias = false;
  model.embedding_scale = 8;
  model.output_bias = true;
  Config config("flip-flop");
  config.set_model(model);
  const Config read = Config::read(file(config.ini()));
  const nn::DecoderConfig again = read.model(*read.task());
  BOOST_TEST(nn::text_of(again.mixers) == nn::text_of(model.mixers));
  BOOST_TEST((again.norm == model.norm && again.order == model.order));
  BOOST_TEST((again.norms_after && again.gated && again.projection_bias));
  BOOST_TEST((!again.mixing_bias && !again.feed_forward_bias));
  BOOST_TEST((again.embedding_scale == 8 && again.output_bias));
}

BOOST_AUTO_TEST_CASE(settings_missing_in_a_file_have_their_defaults) {
  const Config config =
      Config::read(file("[task]\nname = flip-flop\n[model]\nlayers = 3\nheads = softmax:4\n"));
  const nn::DecoderConfig model = config.model(*config.task());
  BOOST_TEST((model.order == nn::Order::parallel));
  BOOST_TEST((model.positions == nn::Positions::rotary));
  BOOST_TEST((model.activation == Activation::gelu));
  BOOST_TEST(!model.tied);
  BOOST_TEST(nn::text_of(model.mixers) == "softmax:4x16");
  BOOST_TEST(model.longest == config.task()->longest());
}

BOOST_AUTO_TEST_CASE(every_kind_of_heads_has_its_own_defaults_in_a_run) {
  for (const nn::MixerKind* const kind : nn::mixer_kinds()) {
    const std::string heads = text(kind->name, ":2x8");
    const Config config = from({"--task", "flip-flop", "--heads", heads});
    BOOST_TEST(nn::text_of(config.model(*config.task()).mixers) == heads);
    const Config again = Config::read(file(config.ini()));
    BOOST_TEST(nn::text_of(again.model(*again.task()).mixers) == heads);
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_names_a_head_norm_keeps_it_for_heads_with_another_default) {
  const auto read = [&](const std::string& heads, const std::string& norm) {
    return Config::read(file("[task]\nname = flip-flop\n[model]\nheads = " + heads +
                             "\nhead_norm = " + norm + "\n"));
  };
  const auto norms = [&](const Config& config) {
    std::vector<nn::HeadNorm> all;
    const nn::DecoderConfig model = config.model(*config.task());
    for (const nn::AnyMixer& mixer : model.mixers.front()) {
      all.push_back(dynamic_cast<const nn::AttentionHeads&>(*mixer).norm_of_heads());
    }
    return all;
  };
  using enum nn::HeadNorm;
  const std::string both = "softmax:2,tra:2";
  BOOST_TEST((norms(read(both, "default")) == std::vector{none, rms_fixed}));
  BOOST_TEST((norms(read(both, "none")) == std::vector{none, none}));
  BOOST_TEST((norms(read(both, "rms")) == std::vector{rms, rms}));
  BOOST_TEST(
      (norms(read("softmax:2,tra:2{head_norm=none}", "default")) == std::vector{none, none}));

  BOOST_TEST(same_mixers(read("softmax:4", "none"), read("softmax:4x16", "default")));
  BOOST_TEST(!same_mixers(read("tra:4", "none"), read("tra:4", "default")));
  BOOST_TEST(same_mixers(read("tra:4", "rms_fixed"), read("tra:4", "default")));
}

BOOST_AUTO_TEST_CASE(flags_override_the_file_and_the_file_overrides_defaults) {
  const std::string name = file(
      "# mine\n[task]\nname = flip-flop\n\n[training]\nsteps = 5\n"
      "rate=0.5\n; the end\n");
  const Config config = from({"--config", name, "--steps", "6"});
  BOOST_TEST(config.text("training.steps") == "6");
  BOOST_TEST(config.text("training.rate") == "0.5");
  BOOST_TEST(config.text("training.batch") == Config("flip-flop").text("training.batch"));
  // A flag can correct an invalid setting of the file.
  const std::string bad = file("[task]\nname = flip-flop\n[training]\nsteps = many\n");
  BOOST_TEST(from({"--config", bad, "--steps", "6"}).text("training.steps") == "6");
}

BOOST_AUTO_TEST_CASE(broken_files_are_refused_with_the_line) {
  const std::string task = "[task]\nname = flip-flop\n";
  BOOST_TEST(contains(refused_file(task + "[training]\nstep = 5\n"), ":4: unknown setting"));
  BOOST_TEST(contains(refused_file(task + "[traning]\nsteps = 5\n"), ":4: unknown setting"));
  BOOST_TEST(contains(refused_file(task + "nodes = 5\n"), ":3: unknown setting"));
  BOOST_TEST(contains(refused_file(task + "[training]\n\nsteps = many\n"), ":5: training.steps"));
  BOOST_TEST(contains(refused_file(task + "[training]\nsteps 5\n"), ":4: expected \"[section]\""));
  BOOST_TEST(contains(refused_file("steps = 5\n"), ":1: expected \"[section]\""));
  BOOST_TEST(contains(refused_file("[task]\nname = flop\n"), ":2: "));
  BOOST_TEST(contains(refused_file(task + "ignore = 2\n"), ":3: "));
  BOOST_TEST(contains(refused_file(task + "[model]\nwidth = 64\nheads = soft:4\n"), ":5: heads"));
  BOOST_TEST(contains(refused_file(task + "[model]\nwidth = 66\n"), ":4: heads"));
  BOOST_TEST(contains(refused_file(task + "[compute]\nbackend = tpu\n"), ":4: compute.backend"));
  BOOST_TEST(contains(refused_file(""), ": expected a [task] section"));
  const std::string twice = refused_file(task + "name = sorting\n");
  BOOST_TEST(contains(twice, ":3: the setting task.name is set twice, first by "));
  BOOST_TEST(twice.ends_with("run.ini:2"));
}

BOOST_AUTO_TEST_CASE(a_configuration_of_unlimited_size_is_refused_while_it_is_read) {
  BOOST_TEST(contains(refused_file(std::string((1 << 20) + 1, 'x')),
                      ": expected at most 1048576 bytes, got more"));
  BOOST_TEST(refusal<Error>({"--config", "/dev/zero"}) ==
             "/dev/zero: expected at most 1048576 bytes, got more");
}

BOOST_AUTO_TEST_CASE(the_warm_up_is_a_number_or_a_share_of_the_steps) {
  const auto warm_up = [&](const std::string& given, const std::string& steps) {
    const Config config = from({"--steps", steps, "--warm-up", given});
    BOOST_TEST(contains(config.ini(), "\nwarm_up = " + given + "\n"));
    return config.training().schedule.warm_up;
  };
  BOOST_TEST(warm_up("7", "1000") == 7);
  BOOST_TEST(warm_up("10%", "1000") == 100);
  BOOST_TEST(warm_up("10%", "30") == 3);
  BOOST_TEST(warm_up("2.5%", "60") == 2);  // 2.5% of 60 steps is 1.5, which is rounded up
  BOOST_TEST(warm_up("0%", "30") == 0);
  BOOST_TEST(warm_up("100%", "30") == 30);
  BOOST_TEST(from({"--steps", "30"}).training().schedule.warm_up == 100);
  for (const char* wrong : {"101%", "-1%", "%", "x%", "10 %", "-1", "1.5", "ten", ""}) {
    BOOST_TEST(refusal<UsageError>({"--warm-up", wrong}).starts_with("--warm-up: "), wrong);
  }
}

BOOST_AUTO_TEST_CASE(flags_are_refused_as_wrong_usage_with_the_flag) {
  const auto refused = [&](const std::vector<std::string>& words) {
    return refusal<UsageError>(words);
  };
  BOOST_TEST(refused({"--task", "flop"}).starts_with("--task: "));
  BOOST_TEST(refused({"--steps", "-1"}).starts_with("--steps: "));
  BOOST_TEST(refused({"--steps", "1.5"}).starts_with("--steps: expected "));
  BOOST_TEST(refused({"--rate", "fast"}).starts_with("--rate: "));
  BOOST_TEST(refused({"--rate", "nan"}).starts_with("--rate: "));
  BOOST_TEST(refused({"--width", "0"}).starts_with("--width: "));
  BOOST_TEST(refused({"--heads", "softmax"}).starts_with("--heads: "));
  BOOST_TEST(refused({"--schedule", "up"}).starts_with("--schedule: "));
  BOOST_TEST(refused({"--rate-at", "middle"}).starts_with("--rate-at: expected "));
  BOOST_TEST(refused({"--math", "sloppy"}).starts_with("--math: "));
  BOOST_TEST(refused({"--backend", "tpu"}).starts_with("--backend: "));
  BOOST_TEST(refused({"--checkpoint-minutes", "-1"}).starts_with("--checkpoint-minutes: "));
  BOOST_TEST(refused({"--keep", "0"}).starts_with("--keep: "));
  BOOST_TEST(contains(refused({"--batch", "3", "--accumulation", "2"}), "multiple"));
  BOOST_TEST(refused({"--task.ignore", "2"}).starts_with("--task.ignore: expected "));
  BOOST_TEST(refused({"--task.max-nodes", "9"}).starts_with("--task.max-nodes: "));
  BOOST_TEST(refused({"--positions", "absolute"}) ==
             "--positions: expected none, rotary, learned or sinusoidal, got "
             "\"absolute\"");
  BOOST_TEST(refused({"--order", "both"}).starts_with("--order: "));
  BOOST_TEST(refused({"--activation", "tanh"}).starts_with("--activation: "));
  BOOST_TEST(refused({"--temper", "hot"}).starts_with("--temper: "));
  BOOST_TEST(refused({"--start", "late"}).starts_with("--start: "));
  BOOST_TEST(refused({"--gamma", "1"}).starts_with("--gamma: expected 0 <= gamma < 1"));
  BOOST_TEST(refused({"--learned_gamma", "head"}).starts_with("--learned-gamma: "));
  BOOST_TEST(refused({"--heads", "softmax:4;softmax:4"}).starts_with("--heads: expected"));
  BOOST_TEST(refused({"--rope_in_fal", "yes"}).starts_with("--rope-in-fal: "));
  // If two settings are invalid, the message describes one of them and begins with the flag that
  // set it.
  const std::string two = refused({"--steps", "x", "--clip", "y"});
  BOOST_TEST((two.starts_with("--steps: expected ") || two.starts_with("--clip: expected ")));
  const std::string name = file("[task]\nname = flip-flop\n");
  BOOST_TEST(refused({"--config", name, "--task", "cycle-tracing"}).starts_with("--task: "));
}

BOOST_AUTO_TEST_SUITE_END()
