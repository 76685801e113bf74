#include "apps/run/config.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <span>

#include "apps/run/batches.h"
#include "apps/run/head_columns.h"
#include "core/quote.h"
#include "core/text_file.h"
#include "tasks/text_vocabulary.h"

namespace longhand::app {
namespace {

constexpr std::size_t largest_ini = 1 << 20;  // maximum bytes of a config.ini

struct Default {
  std::string_view key, value, placeholder, meaning;
  bool often = false;  // true: shown in the one-screen help
};

/// A setting with its default value, from any of the sources.
struct DefaultSetting {
  std::string key, value, placeholder, meaning;
  bool often = false;
};

constexpr Default defaults[] = {
    {"model.width", "64", "N", "width of the residual stream", true},
    {"model.layers", "6", "N", "number of blocks", true},
    {"model.heads", "softmax:4", "LIST",
     "heads of all layers, such as softmax:3,fal:1, or of each: softmax:8;chacal:8", true},
    {"model.inner", "0", "N", "width inside the feed forward; 0: 3 times the width"},
    {"model.norm", "layer", "NAME", "norms of the blocks: layer, rms or rms_plus_one"},
    {"model.norm_epsilon", "1e-5", "X", "added to the variance in the norms"},
    {"model.norms_after", "0", "0|1", "1: attention and feed forward are normed again after"},
    {"model.order", "parallel", "NAME", "attention and feed forward parallel or sequential"},
    {"model.activation", "gelu", "NAME", "gelu (exact), gelu_tanh, relu or silu"},
    {"model.gated", "0", "0|1", "1: the feed forward has a gate"},
    {"model.feed_forward_bias", "1", "0|1", "1: biases in the feed forward's products"},
    {"model.attention_bias", "1", "0|1", "1: biases in the attention's products"},
    {"model.out_bias", "1", "0|1", "0: none in the attention's last product"},
    {"model.output_bias", "0", "0|1", "1: a bias in the output layers"},
    {"model.embedding_scale", "1", "X", "factor of the embeddings"},
    {"model.positions", "rotary", "NAME", "none, rotary, learned or sinusoidal", true},
    {"model.position_ids", "places", "NAME",
     "what positions are: places; or numbers below model.longest: random (ascending), coupled (one "
     "for tokens that belong together, where the task says so), abacus (of digits in their "
     "numbers)"},
    {"model.longest", "0", "N",
     "learned positions; 0: as many as the task's longest sample has; 2048 of random ones; of "
     "coupled ones and abacus what all of its distributions need, twice training's at least"},
    {"model.tied", "0", "0|1", "1: the output layer is the embedding"},
    {"model.start", "plain", "NAME",
     "plain; residual: what is added to the stream starts at 1/sqrt(2 layers)"},
    {"model.deviation", "0.02", "X", "of the weights at first"},
    {"model.lora", "0", "RANK",
     "matrices of this rank learn beside the blocks' own, which stay; 0: none"},
    {"model.lora_alpha", "0", "X", "their factor times the rank; 0: the rank"},
    {"model.lora_targets", "query,value", "LIST",
     "which projections have them: query, key, value, output, gate, up, down"},
    {"training.steps", "1000", "N", "optimizer steps", true},
    {"training.batch", "32", "N", "sequences in a step", true},
    {"training.batch_tokens", "0", "N",
     "so many tokens in a step, whole sequences, in place of training.batch; 0: by sequences"},
    {"training.set", "0", "N", "samples in the training set; 0: new ones in every step"},
    {"training.parts", "1", "N",
     "parts of a step's batch, a power of two, whose gradients are added in one tree: at most so "
     "many "
     "ranks share the run; 8 unless given where mpirun starts it"},
    {"training.accumulation", "1", "N", "batches each part of a step is computed in"},
    {"training.shard", "none", "NAME",
     "what ranks share, in place of each having all of it: none, the optimizer's moments "
     "(optimizer), or these and the gradients (gradients)"},
    {"training.train", "auto", "PARTS",
     "what learns: all, or parameters by name, such as blocks.*.mixing,*.bias; auto: all, or what "
     "lora and biased heads add"},
    {"training.columns", "none", "LIST",
     "of all that gives every head's queries and keys only these entries' columns learn: last, or "
     "numbers such as 0,60..63; none: no such limit"},
    {"training.train_on", "train", "NAME", "the distribution of the task that is learned"},
    {"training.rate", "1e-3", "X", "peak learning rate", true},
    {"training.schedule", "linear", "NAME", "constant, linear, cosine or one_cycle"},
    {"training.warm_up", "100", "N", "steps of warm-up"},
    {"training.rate_at", "start", "NAME",
     "start: step s has the schedule's rate after s - 1 steps, as in transformers and PyTorch; "
     "end: the rate after s steps, 0 in the last step, as in version 0.1"},
    {"training.beta1", "0.9", "X", "Adam's decay of the first moment"},
    {"training.beta2", "0.999", "X", "Adam's decay of the second moment"},
    {"training.epsilon", "1e-8", "X", "Adam's epsilon"},
    {"training.moments", "f32", "TYPE",
     "what Adam's moments are kept in: f32, or bf16 in half the "
     "memory, for beta2 of at most 0.99"},
    {"training.weights", "f32", "TYPE",
     "how matrices are held: f32, or, where none but lora's learn, bf16 in half the memory"},
    {"training.recompute", "0", "0|1",
     "1: backward computes each block again, which takes less memory and more time"},
    {"training.decay", "0", "X", "decoupled weight decay of matrices"},
    {"training.clip", "0", "X", "largest global gradient norm; 0: no clipping"},
    {"training.seed", "1", "N", "names all random numbers of the run", true},
    {"training.evaluate_every", "0", "N", "steps between evaluations; 0: at the end only"},
    {"training.evaluate_samples", "200", "N", "sequences of each distribution in an evaluation"},
    {"training.checkpoint_every", "0", "N",
     "steps between checkpoints; 0: by time and at the end only"},
    {"training.checkpoint_minutes", "10", "X",
     "a checkpoint after so many minutes without one, too; 0: not by time"},
    {"training.keep", "2", "N", "latest checkpoints kept; the best is kept too"},
    {"training.part_mib", "0", "N",
     "largest file of a checkpoint, which then lies in parts; 0: no limit"},
    {"compute.backend", "cpu", "NAME", "reference, cpu or cuda", true},
    {"compute.threads", "0", "N", "threads of the backend; 0: one per core", true},
    {"compute.math", "fast", "MODE", "how products are computed: exact, fast or bf16", true},
};

/// Settings that runs of version 0.1 lack, with the values that describe how those runs behave.
constexpr std::pair<std::string_view, std::string_view> of_older_runs[] = {
    {"training.rate_at", "end"}, {"training.checkpoint_minutes", "0"}};

/// Settings that every version writes. A file that contains all of them is a run's config.ini, not
/// a file written by hand.
constexpr std::string_view of_every_run[] = {"training.steps",          "training.beta1",
                                             "training.epsilon",        "training.clip",
                                             "training.evaluate_every", "training.checkpoint_every",
                                             "training.keep",           "compute.math"};

/// The settings of all sources. The settings of mixers (nn/mixers/) follow those of the model.
const std::vector<DefaultSetting>& all_defaults() {
  static const std::vector<DefaultSetting> all = [] {
    std::vector<DefaultSetting> settings;
    bool model = false;
    const auto add_mixers = [&] {
      for (const nn::MixerOption& o : nn::all_mixer_options()) {
        settings.push_back({"model." + o.name, o.otherwise, o.placeholder, o.meaning});
      }
    };
    for (const Default& d : defaults) {
      const bool still = d.key.starts_with("model.");
      if (model && !still) add_mixers();
      model = still;
      settings.push_back({std::string(d.key), std::string(d.value), std::string(d.placeholder),
                          std::string(d.meaning), d.often});
      if (d.key == "model.heads") settings.back().meaning += "; kinds: " + nn::kind_names();
    }
    return settings;
  }();
  return all;
}

std::string_view trimmed(std::string_view line) {
  const auto first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

/// The flag of a task's option, without dashes.
std::string flag_of(const tasks::Option& option) {
  return option.flag.empty() ? "task." + option.name : option.flag;
}

/// The flag of a key. task.name has the flag --task, a task's option its own flag; for all other
/// keys the section is dropped.
std::string flag_of(std::string_view key, const tasks::TaskKind& task) {
  const std::string name(key.substr(key.find('.') + 1));
  if (!key.starts_with("task.")) return name;
  const auto option = std::ranges::find(task.options, name, &tasks::Option::name);
  return option == task.options.end() ? "task" : flag_of(*option);
}

/// Returns the result of `make`. The message of an Error is prefixed with the place that caused the
/// call.
template <class F>
auto made_of(const std::string& place, F make) {
  try {
    return make();
  } catch (const Error& error) {
    fail(place, ": ", error.what());
  }
}

}  // namespace

Config::Config(std::string_view task) {
  settings_.push_back({"task.name", std::string(task), std::string(task)});
  for (const tasks::Option& option : tasks::task_kind(task).options) {
    settings_.push_back({"task." + option.name, option.otherwise, option.otherwise});
  }
  for (const DefaultSetting& d : all_defaults()) settings_.push_back({d.key, d.value, d.value});
}

Config Config::read(const std::filesystem::path& file) {
  return parse(read_text(file, largest_ini), file.string());
}

Config Config::read(const FileDescriptor& file, const std::string& source) {
  return parse(read_text(file, source, largest_ini), source);
}

Config Config::parse(std::string_view ini, const std::string& source) {
  struct Line {
    int number;
    std::string key, value;
  };
  std::vector<Line> lines;
  std::string section;
  for (int number = 1; !ini.empty(); ++number) {
    const std::size_t end = std::min(ini.find('\n'), ini.size());
    const std::string_view line = trimmed(ini.substr(0, end));
    ini.remove_prefix(std::min(end + 1, ini.size()));
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      section = trimmed(line.substr(1, line.size() - 2));
      continue;
    }
    const auto equals = line.find('=');
    // The message does not quote the line, because the file may be anything.
    LONGHAND_CHECK(equals != std::string::npos && !section.empty(), source, ':', number,
                   ": expected [section] or key = value");
    lines.push_back({number, section + "." + std::string(trimmed(line.substr(0, equals))),
                     std::string(trimmed(line.substr(equals + 1)))});
  }
  const auto named = std::ranges::find(lines, "task.name", &Line::key);
  LONGHAND_CHECK(named != lines.end(), source, ": expected a [task] section with its name");
  const auto place = [&](const Line& line) { return source + ":" + std::to_string(line.number); };
  Config config = made_of(place(*named), [&] { return Config(named->value); });
  for (const Line& line : lines) {
    LONGHAND_CHECK(config.knows(line.key), place(line), ": unknown setting ", quote(line.key));
    LONGHAND_CHECK(config.origin(line.key).empty(), place(line), ": ", line.key,
                   " is given twice, first by ", config.origin(line.key));
    config.set(line.key, line.value, place(line));
  }
  const auto is_given = [&](std::string_view key) { return !config.is_default(key); };
  if (std::ranges::all_of(of_every_run, is_given)) {
    for (const auto& [key, value] : of_older_runs) {
      if (!is_given(key)) config.set(key, std::string(value));
    }
  }
  return config;
}

Config Config::from(const Arguments& arguments) {
  Config config = arguments.given("config")
                      ? parse(read_text_or_pipe(arguments.word("config"), largest_ini),
                              arguments.word("config"))
                      : as_usage("task", [&] { return Config(arguments.word("task")); });
  if (arguments.given("config") && arguments.given("task") &&
      arguments.word("task") != config.text("task.name")) {
    wrong_usage("--task: the configuration is of task ", config.text("task.name"));
  }
  config.set_flags(arguments);
  config.check();
  return config;
}

Config Config::from_run(const Config& run, std::string_view task) {
  Config config(task);
  for (const Setting& setting : run.settings_) {
    const std::string& key = setting.key;
    const bool of_task = key.starts_with("task.") && task == run.text("task.name");
    if (of_task || key.starts_with("model.") || key.starts_with("compute.")) {
      config.set(key, setting.value);
    }
  }
  // A model requires the tokenizer and chat template with which it was trained.
  if (run.knows("task.tokenizer") && config.knows("task.tokenizer") &&
      tasks::names_tokenizer(run.text("task.tokenizer"))) {
    for (const char* key : {"task.tokenizer", "task.vocabulary", "task.template", "task.date"}) {
      config.set(key, run.text(key));
    }
  }
  // Settings derived from the run's task are kept for another task.
  config.set("model.longest", std::to_string(run.model(*run.task()).longest));
  return config;
}

Config Config::from_run(const Config& run, const Arguments& arguments) {
  const std::string task = arguments.given("task") ? arguments.word("task") : run.text("task.name");
  Config config = as_usage("task", [&] { return from_run(run, task); });
  config.set_flags(arguments);
  config.check();
  return config;
}

void Config::set_flags(const Arguments& arguments) {
  for (const Option& option : config_options()) {
    if (!arguments.given(option.name) || option.name == "task") continue;
    bool found = false;
    for (Setting& setting : settings_) {
      if (flag_of(setting.key, kind()) != option.name) continue;
      setting.value = arguments.word(option.name);
      setting.origin = shown_flag(option.name);
      found = true;
    }
    if (!found) {
      wrong_usage(shown_flag(option.name), ": task ", text("task.name"), " has no such option");
    }
  }
}

std::string Config::ini() const {
  std::string text, section;
  for (const Setting& setting : settings_) {
    const auto dot = setting.key.find('.');
    if (setting.key.substr(0, dot) != section) {
      section = setting.key.substr(0, dot);
      text += (text.empty() ? "[" : "\n[") + section + "]\n";
    }
    text += setting.key.substr(dot + 1) + " = " + setting.value + "\n";
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> Config::settings() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Setting& setting : settings_) all.emplace_back(setting.key, setting.value);
  return all;
}

bool Config::knows(std::string_view key) const {
  return std::any_of(settings_.begin(), settings_.end(),
                     [&](const Setting& setting) { return setting.key == key; });
}

const std::string& Config::text(std::string_view key) const {
  for (const Setting& setting : settings_) {
    if (setting.key == key) return setting.value;
  }
  fail("there is no setting '", key, "'");
}

const std::string& Config::origin(std::string_view key) const {
  const auto found = std::ranges::find(settings_, key, &Setting::key);
  LONGHAND_CHECK(found != settings_.end(), "there is no setting '", key, "'");
  return found->origin;
}

void Config::set(std::string_view key, std::string value, std::string origin) {
  for (Setting& setting : settings_) {
    if (setting.key == key) {
      setting.value = std::move(value);
      setting.origin = std::move(origin);
      return;
    }
  }
  fail("there is no setting '", key, "'");
}

std::int64_t Config::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const std::string& value = text(key);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  LONGHAND_CHECK(
      error == std::errc() && end == value.data() + value.size() && number >= low && number <= high,
      key, ": expected an integer from ", low, " to ", high, ", got ", quote(value));
  return number;
}

double Config::number(std::string_view key, double low, double high) const {
  const std::string& value = text(key);
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  LONGHAND_CHECK(
      error == std::errc() && end == value.data() + value.size() && number >= low && number <= high,
      key, ": expected a number from ", low, " to ", high, ", got ", quote(value));
  return number;
}

bool Config::flag(std::string_view key) const { return integer(key, 0, 1) == 1; }

tasks::OptionValues Config::task_values() const {
  tasks::OptionValues values = kind().defaults();
  for (const tasks::Option& option : kind().options) {
    values.set(option.name, text("task." + option.name));
  }
  return values;
}

std::unique_ptr<tasks::Task> Config::task(std::string_view distribution) const {
  return positioned(kind().make(task_values(), distribution));
}

std::int64_t Config::longest_for(const tasks::Task& task) const {
  const std::int64_t longest = integer("model.longest", 0, 1 << 24);
  if (longest > 0) return longest;
  if (position_ids() == tasks::PositionIds::places) return task.longest();
  if (position_ids() == tasks::PositionIds::random) return random_positions;
  std::int64_t most = 1;
  for (const tasks::Distribution& d : kind().distributions) {
    most = std::max(most, kind().make(task_values(), d.name)->coupled_positions());
  }
  return std::max(most, 2 * kind().make(task_values())->coupled_positions());
}

tasks::PositionIds Config::position_ids() const {
  return static_cast<tasks::PositionIds>(choice("model.position_ids", tasks::position_ids_names));
}

std::unique_ptr<tasks::Task> Config::positioned(std::unique_ptr<tasks::Task> task) const {
  const std::int64_t range = longest_for(*task);
  return tasks::with_position_ids(std::move(task), position_ids(), range);
}

std::size_t Config::choice(std::string_view key, std::span<const std::string_view> names) const {
  const std::string& value = text(key);
  const auto found = std::find(names.begin(), names.end(), value);
  LONGHAND_CHECK(found != names.end(), key, ": expected ", nn::listed(names), ", got ",
                 quote(value));
  return static_cast<std::size_t>(found - names.begin());
}

nn::Schedule Config::schedule() const {
  const auto curve = nn::schedule_from_name(text("training.schedule"));
  LONGHAND_CHECK(curve, "training.schedule: expected constant, linear, cosine or one_cycle, got ",
                 quote(text("training.schedule")));
  constexpr std::string_view places[] = {"start", "end"};  // in the order of nn::Schedule::Place
  return {.curve = *curve,
          .peak = number("training.rate", 0, 1e3),
          .warm_up = integer("training.warm_up", 0, longest_training),
          .steps = integer("training.steps", 0, longest_training),
          .place = static_cast<nn::Schedule::Place>(choice("training.rate_at", places))};
}

nn::AdamOptions Config::adam() const {
  constexpr std::string_view types[] = {"f32", "bf16"};
  const bool short_moments = choice("training.moments", types) == 1;
  const double beta2 = number("training.beta2", 0, 0.9999999);
  LONGHAND_CHECK(!short_moments || beta2 <= 0.99,
                 "training.moments: bf16 needs beta2 of at most 0.99, because its rounding loses "
                 "the small steps of a slower mean; got ",
                 beta2);
  return {.beta1 = number("training.beta1", 0, 0.999999),
          .beta2 = beta2,
          .epsilon = number("training.epsilon", 0, 1),
          .decay = number("training.decay", 0, 1e3),
          .clip = number("training.clip", 0, 1e9),
          .short_moments = short_moments};
}

nn::Storage Config::storage() const {
  constexpr std::string_view types[] = {"f32", "bf16"};
  if (choice("training.weights", types) == 0) return {};
  LONGHAND_CHECK(text("training.columns") == "none",
                 "training.weights: expected f32 where columns of matrices learn, got bf16");
  const std::string& parts = text("training.train");
  LONGHAND_CHECK(parts != "all" && (parts != "auto" || integer("model.lora", 0, 1 << 12) > 0),
                 "training.weights: expected f32 where all parameters learn, got bf16");
  return {.matrices = DType::bf16};
}

BackendOptions Config::backend_options() const {
  const auto math = math_from_name(text("compute.math"));
  LONGHAND_CHECK(math, "compute.math: expected exact, fast or bf16, got ",
                 quote(text("compute.math")));
  return {.threads = static_cast<int>(integer("compute.threads", 0, 1024)), .math = *math};
}

BatchPlan Config::batch_plan() const {
  const std::int64_t batches = parts() * integer("training.accumulation", 1, 1 << 16);
  return {.sequences = integer("training.batch", 1, 1 << 24) / batches,
          .tokens = integer("training.batch_tokens", 0, 1 << 30) / batches,
          .batches = batches,
          .set = integer("training.set", 0, largest_training_set)};
}

std::shared_ptr<const tasks::Task> Config::learned() const {
  return task(text("training.train_on"));
}

nn::BatchSource Config::batches(std::shared_ptr<const tasks::Task> learned) const {
  return training_batches(std::move(learned), seed(), batch_plan());
}

nn::Sharing Config::sharing() const {
  // In the order of nn::Sharing.
  constexpr std::string_view names[] = {"none", "optimizer", "gradients"};
  return static_cast<nn::Sharing>(choice("training.shard", names));
}

std::int64_t Config::parts() const {
  const std::int64_t parts = integer("training.parts", 1, 1 << 16);
  LONGHAND_CHECK(std::has_single_bit(static_cast<std::uint64_t>(parts)),
                 "training.parts: expected a power of two, got ", parts);
  return parts;
}

std::uint64_t Config::seed() const {
  return static_cast<std::uint64_t>(
      integer("training.seed", 0, std::numeric_limits<std::int64_t>::max()));
}

void Config::check() const {
  const std::string message = wrong();
  if (message.empty()) return;
  for (const Setting& setting : settings_) {
    if (setting.origin.empty()) continue;
    Config without = *this;
    without.set(setting.key, setting.otherwise);
    if (without.wrong() == message) continue;  // the message does not depend on this setting
    if (setting.origin.starts_with("--")) wrong_usage(setting.origin, ": ", message);
    fail(setting.origin, ": ", message);
  }
  fail(message);
}

std::uint64_t Config::most_file_bytes() const {
  return static_cast<std::uint64_t>(integer("training.part_mib", 0, largest_part_mib)) << 20;
}

std::string Config::wrong() const {
  try {
    read_all();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void Config::read_all() const {
  const nn::DecoderConfig shape = model(*task());
  learned();
  if (const std::string& columns = text("training.columns"); columns != "none") {
    check_head_columns(shape, columns);
    LONGHAND_CHECK(text("training.train") == "auto",
                   "training.columns: expected training.train = auto beside it, got ",
                   quote(text("training.train")));
  }
  schedule();
  adam();
  backend_options();
  seed();
  const std::int64_t batches = parts() * integer("training.accumulation", 1, 1 << 16);
  const std::string product =
      (parts() == 1 ? "accumulation = " : "parts * accumulation = ") + std::to_string(batches);
  const std::int64_t batch = integer("training.batch", 1, 1 << 24);
  LONGHAND_CHECK(batch % batches == 0, "training.batch: expected a multiple of ", product, ", got ",
                 batch);
  const std::int64_t tokens = integer("training.batch_tokens", 0, 1 << 30);
  LONGHAND_CHECK(tokens % batches == 0, "training.batch_tokens: expected a multiple of ", product,
                 ", got ", tokens);
  const std::int64_t set = integer("training.set", 0, largest_training_set);
  LONGHAND_CHECK(set == 0 || set >= task()->heads(), "training.set: expected 0 or at least ",
                 task()->heads(), ", one sample for each output head, got ", set);
  flag("training.recompute");
  sharing();
  storage();
  integer("training.evaluate_every", 0, longest_training);
  integer("training.evaluate_samples", 0, 1 << 24);
  integer("training.checkpoint_every", 0, longest_training);
  number("training.checkpoint_minutes", 0, 1e6);
  integer("training.keep", 1, 1000);
  most_file_bytes();
  const std::string& backend = text("compute.backend");
  LONGHAND_CHECK(backend == "reference" || backend == "cpu" || backend == "cuda",
                 "compute.backend: expected reference, cpu or cuda, got ", quote(backend));
}

std::vector<Option> config_options(std::initializer_list<std::string_view> shown) {
  std::vector<Option> options;
  std::string names;
  for (const tasks::TaskKind& kind : tasks::all_tasks()) {
    names += (names.empty() ? "" : ", ") + kind.name;
  }
  options.push_back({"task", "NAME", names, tasks::all_tasks().front().name, false, "task"});
  // A flag may have different meanings in different tasks. Each meaning is listed once, after the
  // tasks that share it.
  struct Meaning {
    std::string flag, tasks, text;
    std::vector<std::string> of;
  };
  std::vector<Meaning> meanings;
  for (const tasks::TaskKind& kind : tasks::all_tasks()) {
    for (const tasks::Option& option : kind.options) {
      const std::string flag = flag_of(option);
      const std::string meaning = option.meaning + " (" + option.otherwise + ")";
      const auto same = std::ranges::find_if(
          meanings, [&](const Meaning& m) { return m.flag == flag && m.text == meaning; });
      if (same == meanings.end()) {
        meanings.push_back({flag, kind.name, meaning, {kind.name}});
      } else {
        same->tasks += ", " + kind.name;
        same->of.push_back(kind.name);
      }
    }
  }
  for (const Meaning& meaning : meanings) {
    const std::string text = meaning.tasks + ": " + meaning.text;
    auto same = std::ranges::find(options, meaning.flag, &Option::name);
    if (same == options.end()) {
      same = options.insert(same, {meaning.flag, "X", text, {}, false, "task"});
    } else {
      same->meaning += "; " + text;
    }
    for (const std::string& task : meaning.of) same->of_tasks[task] = meaning.text;
  }
  for (const DefaultSetting& d : all_defaults()) {
    const std::size_t dot = d.key.find('.');
    Option option{d.key.substr(dot + 1), d.placeholder, d.meaning + " (" + d.value + ")"};
    option.group = d.key.substr(0, dot);
    option.rare =
        shown.size() == 0 ? !d.often : std::ranges::find(shown, option.name) == shown.end();
    options.push_back(std::move(option));
  }
  return options;
}

}  // namespace longhand::app
