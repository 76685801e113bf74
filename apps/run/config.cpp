#include "apps/run/config.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

#include "apps/run/batches.h"
#include "core/quote.h"
#include "core/text_file.h"

namespace longhand::app {
namespace {

constexpr std::size_t largest_ini = 1 << 20;  // bytes

struct Default {
  std::string_view key, value, placeholder, meaning;
};

constexpr Default defaults[] = {
    {"model.width", "64", "N", "width of the residual stream"},
    {"model.layers", "6", "N", "number of blocks"},
    {"model.heads", "softmax:4", "LIST",
     "heads of all layers, such as softmax:3,fal:1, or of each: softmax:8;chacal:8"},
    {"model.inner", "0", "N", "width inside the feed forward; 0: 3 times the width"},
    {"model.order", "parallel", "NAME", "attention and feed forward parallel or sequential"},
    {"model.activation", "gelu", "NAME", "gelu (exact), gelu_tanh, relu or silu"},
    {"model.norm_epsilon", "1e-5", "X", "added to the variance in the norms"},
    {"model.attention_bias", "1", "0|1", "1: biases in the attention's products"},
    {"model.score_scale", "0", "X", "factor of all scores; 0: 1/sqrt(a head's width)"},
    {"model.window", "0", "N", "keys that a softmax head sees; 0: all"},
    {"model.gamma", "0.9", "X", "ChaCAL's gamma, at first when it is learned"},
    {"model.learned_gamma", "no", "NAME", "no, or one for each layer or head"},
    {"model.temper", "none", "NAME",
     "none; position or length: scores times beta ln n, n the keys up to there or in all"},
    {"model.beta", "1", "X", "the temper's beta at first; learned, one a layer"},
    {"model.positions", "rotary", "NAME", "none, rotary, learned or sinusoidal"},
    {"model.rope_share", "1", "X", "share of a softmax head's entries that rotate"},
    {"model.rope_base", "10000", "X", "of the wavelengths of rotary and sinusoidal positions"},
    {"model.rope_in_fal", "0", "0|1", "1: rotary positions in FAL heads too"},
    {"model.longest", "0", "N", "learned positions; 0: as many as the task's longest sample has"},
    {"model.tied", "0", "0|1", "1: the output layer is the embedding"},
    {"model.start", "plain", "NAME",
     "plain; residual: what is added to the stream starts at 1/sqrt(2 layers)"},
    {"model.deviation", "0.02", "X", "of the weights at first"},
    {"training.steps", "1000", "N", "optimizer steps"},
    {"training.batch", "32", "N", "sequences in a step"},
    {"training.batch_tokens", "0", "N",
     "so many tokens in a step, whole sequences, in place of training.batch; 0: by sequences"},
    {"training.set", "0", "N", "samples in the training set; 0: new ones in every step"},
    {"training.accumulation", "1", "N", "parts a step's batch is computed in"},
    {"training.rate", "1e-3", "X", "peak learning rate"},
    {"training.schedule", "linear", "NAME", "constant, linear, cosine or one_cycle"},
    {"training.warm_up", "100", "N", "steps of warm-up"},
    {"training.beta1", "0.9", "X", "Adam's decay of the first moment"},
    {"training.beta2", "0.999", "X", "Adam's decay of the second moment"},
    {"training.epsilon", "1e-8", "X", "Adam's epsilon"},
    {"training.decay", "0", "X", "decoupled weight decay of matrices"},
    {"training.clip", "0", "X", "largest global gradient norm; 0: no clipping"},
    {"training.seed", "1", "N", "names all random numbers of the run"},
    {"training.evaluate_every", "0", "N", "steps between evaluations; 0: at the end only"},
    {"training.evaluate_samples", "200", "N", "sequences of each distribution in an evaluation"},
    {"training.checkpoint_every", "0", "N", "steps between checkpoints; 0: at the end only"},
    {"training.keep", "2", "N", "latest checkpoints kept; the best is kept too"},
    {"training.part_mib", "0", "N",
     "largest file of a checkpoint, which then lies in parts; 0: no limit"},
    {"compute.backend", "cpu", "NAME", "reference, cpu or cuda"},
    {"compute.threads", "0", "N", "threads of the backend; 0: one per core"},
    {"compute.math", "fast", "MODE", "how products are computed: exact, fast or bf16"},
};

/// The activations that a feed forward may have.
constexpr std::string_view activations[] = {"gelu", "gelu_tanh", "relu", "silu"};

std::string listed(std::span<const std::string_view> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    list += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    list += names[i];
  }
  return list;
}

/// The shortest text that reads back as the same number.
std::string shortest(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::string_view trimmed(std::string_view line) {
  const auto first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

/// The flag of a key: task.name is --task, task.x stays, all others lose their section.
std::string flag_of(std::string_view key) {
  if (key == "task.name") return "task";
  if (key.starts_with("task.")) return std::string(key);
  return std::string(key.substr(key.find('.') + 1));
}

/// What `make` gives; its Error named by the place that asked for it.
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
  for (const Default& d : defaults) {
    settings_.push_back({std::string(d.key), std::string(d.value), std::string(d.value)});
  }
}

Config Config::read(const std::filesystem::path& file) {
  return parse(read_text(file, largest_ini), file.string());
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
    LONGHAND_CHECK(equals != std::string::npos && !section.empty(), source, ':', number,
                   ": expected [section] or key = value, got ", quote(line));
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
  return config;
}

Config Config::from(const Arguments& arguments) {
  Config config = arguments.given("config")
                      ? read(arguments.word("config"))
                      : as_usage("task", [&] { return Config(arguments.word("task")); });
  if (arguments.given("config") && arguments.given("task") &&
      arguments.word("task") != config.text("task.name")) {
    wrong_usage("--task: the configuration is of task ", config.text("task.name"));
  }
  config.set_flags(arguments);
  config.check();
  return config;
}

void Config::set_flags(const Arguments& arguments) {
  for (const Option& option : config_options()) {
    if (!arguments.given(option.name) || option.name == "task") continue;
    bool found = false;
    for (Setting& setting : settings_) {
      if (flag_of(setting.key) != option.name) continue;
      setting.value = arguments.word(option.name);
      setting.origin = "--" + option.name;
      found = true;
    }
    if (!found) {
      wrong_usage("--", option.name, ": task ", text("task.name"), " has no such option");
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
  return kind().make(task_values(), distribution);
}

std::size_t Config::choice(std::string_view key, std::span<const std::string_view> names) const {
  const std::string& value = text(key);
  const auto found = std::find(names.begin(), names.end(), value);
  LONGHAND_CHECK(found != names.end(), key, ": expected ", listed(names), ", got ", quote(value));
  return static_cast<std::size_t>(found - names.begin());
}

nn::DecoderConfig Config::model(const tasks::Task& task) const {
  const std::int64_t width = integer("model.width", 1, 1 << 16);
  const std::int64_t inner = integer("model.inner", 0, 1 << 18);
  const std::int64_t longest = integer("model.longest", 0, 1 << 24);
  const double scale = number("model.score_scale", 0, 1e6);
  const std::string_view f = activations[choice("model.activation", activations)];
  nn::DecoderConfig model{.vocabulary = task.vocabulary().size(),
                          .width = width,
                          .layers = integer("model.layers", 0, 1000),
                          .inner = inner ? inner : 3 * width,
                          .order = named<nn::Order>("model.order"),
                          .activation = *activation_from_name(f),
                          .epsilon = number("model.norm_epsilon", 0, 1),
                          .heads = nn::parse_layers(text("model.heads"), width),
                          .attention_bias = flag("model.attention_bias"),
                          .window = integer("model.window", 0, 1 << 24),
                          .gamma = number("model.gamma", 0, 1),
                          .learned_gamma = named<nn::Learned>("model.learned_gamma"),
                          .temper = named<Temper>("model.temper"),
                          .beta = number("model.beta", -1e6, 1e6),
                          .positions = named<nn::Positions>("model.positions"),
                          .rope_share = number("model.rope_share", 0, 1),
                          .rope_base = number("model.rope_base", 1, 1e12),
                          .rope_in_fal = flag("model.rope_in_fal"),
                          .longest = longest ? longest : task.longest(),
                          .tied = flag("model.tied"),
                          .start = named<nn::Start>("model.start"),
                          .deviation = number("model.deviation", 0, 100)};
  if (scale != 0) model.score_scale = scale;
  const tasks::Outputs outputs = task.outputs();
  model.outputs.assign(static_cast<std::size_t>(task.heads()), outputs.groups * outputs.classes);
  nn::check(model);
  return model;
}

void Config::set_model(const nn::DecoderConfig& model) {
  const auto name = [](auto value) {
    return std::string(nn::names_of<decltype(value)>[static_cast<std::size_t>(value)]);
  };
  const auto flag = [](bool value) { return std::string(value ? "1" : "0"); };
  set("model.width", std::to_string(model.width));
  set("model.layers", std::to_string(model.layers));
  set("model.inner", std::to_string(model.inner));
  set("model.order", name(model.order));
  set("model.activation", std::string(name_of(model.activation)));
  set("model.norm_epsilon", shortest(model.epsilon));
  set("model.heads", nn::text_of(model.heads));
  set("model.attention_bias", flag(model.attention_bias));
  set("model.score_scale", shortest(model.score_scale.value_or(0)));
  set("model.window", std::to_string(model.window));
  set("model.gamma", shortest(model.gamma));
  set("model.learned_gamma", name(model.learned_gamma));
  set("model.temper", name(model.temper));
  set("model.beta", shortest(model.beta));
  set("model.positions", name(model.positions));
  set("model.rope_share", shortest(model.rope_share));
  set("model.rope_base", shortest(model.rope_base));
  set("model.rope_in_fal", flag(model.rope_in_fal));
  set("model.longest", std::to_string(model.longest));
  set("model.tied", flag(model.tied));
  set("model.start", name(model.start));
  set("model.deviation", shortest(model.deviation));
}

nn::Schedule Config::schedule() const {
  const auto shape = nn::schedule_from_name(text("training.schedule"));
  LONGHAND_CHECK(shape, "training.schedule: expected constant, linear, cosine or one_cycle, got '",
                 text("training.schedule"), "'");
  return {.shape = *shape,
          .peak = number("training.rate", 0, 1e3),
          .warm_up = integer("training.warm_up", 0, std::int64_t{1} << 40),
          .steps = integer("training.steps", 0, std::int64_t{1} << 40)};
}

nn::AdamOptions Config::adam() const {
  return {.beta1 = number("training.beta1", 0, 0.999999),
          .beta2 = number("training.beta2", 0, 0.9999999),
          .epsilon = number("training.epsilon", 0, 1),
          .decay = number("training.decay", 0, 1e3),
          .clip = number("training.clip", 0, 1e9)};
}

BackendOptions Config::backend_options() const {
  const auto math = math_from_name(text("compute.math"));
  LONGHAND_CHECK(math, "compute.math: expected exact, fast or bf16, got ",
                 quote(text("compute.math")));
  return {.threads = static_cast<int>(integer("compute.threads", 0, 1024)), .math = *math};
}

BatchPlan Config::batch_plan() const {
  const std::int64_t parts = integer("training.accumulation", 1, 1 << 16);
  return {.sequences = integer("training.batch", 1, 1 << 24) / parts,
          .tokens = integer("training.batch_tokens", 0, 1 << 30) / parts,
          .set = integer("training.set", 0, largest_training_set)};
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
    if (without.wrong() == message) continue;  // it is not this one's fault
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
  model(*task());
  schedule();
  adam();
  backend_options();
  seed();
  const std::int64_t parts = integer("training.accumulation", 1, 1 << 16);
  const std::int64_t batch = integer("training.batch", 1, 1 << 24);
  LONGHAND_CHECK(batch % parts == 0,
                 "training.batch: expected a multiple of accumulation = ", parts, ", got ", batch);
  const std::int64_t tokens = integer("training.batch_tokens", 0, 1 << 30);
  LONGHAND_CHECK(tokens % parts == 0,
                 "training.batch_tokens: expected a multiple of accumulation = ", parts, ", got ",
                 tokens);
  const std::int64_t set = integer("training.set", 0, largest_training_set);
  LONGHAND_CHECK(set == 0 || set >= task()->heads(), "training.set: expected 0 or at least ",
                 task()->heads(), ", one sample for each output head, got ", set);
  integer("training.evaluate_every", 0, std::int64_t{1} << 40);
  integer("training.evaluate_samples", 0, 1 << 24);
  integer("training.checkpoint_every", 0, std::int64_t{1} << 40);
  integer("training.keep", 1, 1000);
  most_file_bytes();
  const std::string& backend = text("compute.backend");
  LONGHAND_CHECK(backend == "reference" || backend == "cpu" || backend == "cuda",
                 "compute.backend: expected reference, cpu or cuda, got ", quote(backend));
}

std::vector<Option> config_options() {
  std::vector<Option> options;
  std::string names;
  for (const tasks::TaskKind& kind : tasks::all_tasks()) {
    names += (names.empty() ? "" : ", ") + kind.name;
  }
  options.push_back({"task", "NAME", names, tasks::all_tasks().front().name});
  for (const tasks::TaskKind& kind : tasks::all_tasks()) {
    for (const tasks::Option& option : kind.options) {
      const std::string name = "task." + option.name;
      const auto same = std::find_if(options.begin(), options.end(),
                                     [&](const Option& o) { return o.name == name; });
      const std::string meaning = kind.name + ": " + option.meaning + " (" + option.otherwise + ")";
      if (same == options.end()) {
        options.push_back({name, "X", meaning});
      } else {
        same->meaning += "; " + meaning;
      }
    }
  }
  for (const Default& d : defaults) {
    options.push_back({flag_of(d.key), std::string(d.placeholder),
                       std::string(d.meaning) + " (" + std::string(d.value) + ")"});
  }
  return options;
}

}  // namespace longhand::app
