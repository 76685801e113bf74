#include "apps/run/config.h"

#include <algorithm>
#include <array>

#include "apps/run/head_columns.h"
#include "core/quote.h"
#include "core/text_file.h"
#include "tasks/own_records.h"
#include "tasks/task_files.h"
#include "tasks/text_vocabulary.h"

namespace longhand::app {
namespace {

constexpr std::size_t largest_ini = 1 << 20;  // maximum bytes of a config.ini

/// Settings that are missing in older runs, with the values that describe how those runs behave.
constexpr std::pair<std::string_view, std::string_view> of_older_runs[] = {
    {"training.rate_at", "end"},
    {"training.checkpoint_minutes", "0"},
    {"training.evaluate_minutes", "0"}};

/// The defaults of the task `text` that differ from those of all other tasks.
constexpr std::pair<std::string_view, std::string_view> of_texts[] = {
    {"training.schedule", "cosine"},
    {"training.warm_up", "5%"},
    {"training.decay", "0.1"},
    {"training.clip", "1"},
    {"training.evaluate_minutes", "10"}};

/// The default of training.warm_up if the model is trained with LoRA.
constexpr std::string_view lora_warm_up = "5%";

/// Settings that every version writes. If a file contains all of them, it is the config.ini of a
/// run, not a file written by hand.
constexpr std::string_view of_every_run[] = {"training.steps",          "training.beta1",
                                             "training.epsilon",        "training.clip",
                                             "training.evaluate_every", "training.checkpoint_every",
                                             "training.keep",           "compute.math"};

struct SectionSpec {
  std::string_view section;
  nn::OptionSpec option;

  std::string key() const { return std::string(section) + "." + option.name; }
};

/// All settings except those of tasks, in the order of config.ini. The options of mixers
/// (nn/mixers/) follow those of the model.
const std::vector<SectionSpec>& all_specs() {
  static const std::vector<SectionSpec> all = [] {
    std::vector<SectionSpec> specs;
    const auto add = [&](std::string_view section, auto settings) {
      nn::Options options;
      settings.declare(options);
      for (const nn::OptionSpec& option : options.all()) specs.push_back({section, option});
    };
    add("model", ModelSettings());
    for (const nn::OptionSpec& option : nn::all_mixer_options()) specs.push_back({"model", option});
    add("training", TrainingSettings());
    add("compute", ComputeSettings());
    return specs;
  }();
  return all;
}

std::string_view trimmed(std::string_view line) {
  const auto first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

/// The name, without dashes, of the flag that sets an option of a task.
std::string flag_of(const tasks::TaskOption& option) {
  return option.flag.empty() ? "task." + option.name : option.flag;
}

/// The name, without dashes, of the flag that sets the setting with this key. It is "task" for
/// task.name, and the option's flag for an option of the task. For any other key, it is the key
/// without its section.
std::string flag_of(std::string_view key, const tasks::TaskKind& task) {
  const std::string name(key.substr(key.find('.') + 1));
  if (!key.starts_with("task.")) return name;
  const auto option = std::ranges::find(task.options, name, &tasks::TaskOption::name);
  return option == task.options.end() ? "task" : flag_of(*option);
}

/// The default of a setting as the help shows it.
std::string shown_default(const SectionSpec& spec) {
  std::string shown = spec.option.default_value;
  for (const auto& [key, value] : of_texts) {
    if (key == spec.key()) shown += text("; task text: ", value);
  }
  if (spec.key() == "training.warm_up") shown += text("; with LoRA: ", lora_warm_up);
  return shown;
}

/// The help of an option with its default, unless the default is empty.
std::string with_default(const std::string& help, const std::string& shown) {
  return shown.empty() ? help : help + " (" + shown + ")";
}

/// Returns the result of `make`. If `make` throws an Error, its message is prefixed with `place`,
/// the origin of the value.
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
  const tasks::NamedTask named = tasks::named_task(task);
  settings_.push_back({"task.name", named.kind.name});
  for (const tasks::TaskOption& option : named.kind.options) {
    settings_.push_back({"task." + option.name, option.default_value});
  }
  for (const SectionSpec& spec : all_specs()) {
    settings_.push_back({spec.key(), spec.option.default_value});
  }
  if (named.kind.name == "text") {
    for (const auto& [key, value] : of_texts) set(key, std::string(value));
  }
  if (!named.files.empty()) set("task.files", named.files);
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
    // The message does not quote the line. The user may have named a file of another kind, whose
    // lines may have any contents.
    LONGHAND_CHECK(equals != std::string::npos && !section.empty(), source, ':', number,
                   ": expected \"[section]\" or \"key = value\"");
    lines.push_back({number, section + "." + std::string(trimmed(line.substr(0, equals))),
                     std::string(trimmed(line.substr(equals + 1)))});
  }
  const auto named = std::ranges::find(lines, "task.name", &Line::key);
  LONGHAND_CHECK(named != lines.end(), source,
                 ": expected a [task] section that contains the setting \"name\"");
  const auto place = [&](const Line& line) { return source + ":" + std::to_string(line.number); };
  Config config =
      made_of(place(*named), [&] { return Config(tasks::task_kind(named->value).name); });
  for (const Line& line : lines) {
    LONGHAND_CHECK(config.knows(line.key), place(line), ": unknown setting ", quote(line.key));
    LONGHAND_CHECK(config.origin(line.key).empty(), place(line), ": the setting ", line.key,
                   " is set twice, first by ", config.origin(line.key));
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
  const bool names_text = arguments.given("text") && !arguments.given("task");
  Config config =
      arguments.given("config")
          ? parse(read_text_or_pipe(arguments.word("config"), largest_ini),
                  arguments.word("config"))
          : as_usage("task", [&] { return Config(names_text ? "text" : arguments.word("task")); });
  if (arguments.given("config") && arguments.given("task")) {
    const auto named = as_usage("task", [&] { return tasks::named_task(arguments.word("task")); });
    if (named.kind.name != config.text("task.name")) {
      wrong_usage("--task: expected ", config.text("task.name"), ", the task of the configuration");
    }
    if (!named.files.empty()) config.set_files(named.files);
  }
  config.set_flags(arguments);
  config.check();
  return config;
}

Config Config::from_run(const Config& run, std::string_view task) {
  Config config(task);
  const std::string kind = config.text("task.name");
  const std::string files = kind == "files" ? config.text("task.files") : "";
  for (const Setting& setting : run.settings_) {
    const std::string& key = setting.key;
    const bool of_task = key.starts_with("task.") && kind == run.text("task.name");
    if (of_task || key.starts_with("model.") || key.starts_with("compute.")) {
      config.set(key, setting.value);
    }
  }
  // The run's tokenizer and chat template are kept, because a model requires those with which it
  // was trained.
  if (run.knows("task.tokenizer") && config.knows("task.tokenizer") &&
      tasks::names_tokenizer(run.text("task.tokenizer"))) {
    for (const char* key : {"task.tokenizer", "task.vocabulary", "task.template", "task.date"}) {
      config.set(key, run.text(key));
    }
  }
  if (!files.empty()) config.set_files(files);
  // If the run's task determined the number of positions (model.longest), the new run keeps this
  // number, even for another task.
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
  for (const CliFlag& option : config_options()) {
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
  read_files();
  if (is_default("training.warm_up") && model_settings().decoder.lora.rank > 0) {
    set("training.warm_up", std::string(lora_warm_up));
  }
}

void Config::read_files() {
  if (!kind().complete) return;
  tasks::OptionValues values = task_values();
  kind().complete(values);
  for (const tasks::TaskOption& option : kind().options) {
    settings_[index_of("task." + option.name)].value = values.text(option.name);
  }
}

void Config::set_files(const std::string& files) {
  set("task.files", files);
  // task.held_out and task.longest are derived from the files, so they are reset. The task's list
  // of tokens is kept, because the model depends on it.
  for (const char* key : {"task.held_out", "task.longest"}) {
    set(key, Config("files").text(key));
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
  return std::ranges::find(settings_, key, &Setting::key) != settings_.end();
}

std::size_t Config::index_of(std::string_view key) const {
  const auto found = std::ranges::find(settings_, key, &Setting::key);
  LONGHAND_CHECK(found != settings_.end(), "there is no setting '", key, "'");
  return static_cast<std::size_t>(found - settings_.begin());
}

void Config::set(std::string_view key, std::string value, std::string origin) {
  Setting& setting = settings_[index_of(key)];
  setting.value = std::move(value);
  setting.origin = std::move(origin);
}

void Config::refuse(const Setting& setting, const std::string& message) const {
  const std::string &origin = setting.origin, &key = setting.key;
  if (origin.empty()) fail(message);
  if (!origin.starts_with("--")) fail(origin, ": ", message);
  const std::string name = key.substr(key.find('.') + 1);
  for (const std::string& subject : {key, name, "task " + kind().name + ": option " + name}) {
    if (!message.starts_with(subject + ": ")) continue;
    wrong_usage(origin, message.substr(subject.size()));
  }
  const std::string subject = message.substr(0, message.find(": "));
  if (!knows(subject)) wrong_usage(origin, ": ", message);
  wrong_usage(origin, ": ", shown_flag(flag_of(subject, kind())), message.substr(subject.size()));
}

void Config::assign(const nn::Options& options, std::string_view section) const {
  for (const nn::BoundOption& option : options.all()) {
    const Setting& given = settings_[index_of(std::string(section) + "." + option.name)];
    try {
      option.assign(given.value);
    } catch (const Error& error) {
      refuse(given, error.what());
    }
  }
}

ModelSettings Config::model_settings() const { return parsed<ModelSettings>("model"); }

TrainingSettings Config::training() const {
  TrainingSettings settings = parsed<TrainingSettings>("training");
  settings.check();
  settings.schedule.warm_up = settings.warm_up.of(settings.schedule.steps);
  return settings;
}

ComputeSettings Config::compute() const { return parsed<ComputeSettings>("compute"); }

tasks::OptionValues Config::task_values() const {
  tasks::OptionValues values = kind().defaults();
  for (const tasks::TaskOption& option : kind().options) {
    values.set(option.name, text("task." + option.name));
  }
  return values;
}

std::string Config::add_file(const std::string& path) {
  if (kind().name == "text") {
    set("task.validation", path);
    return std::string(tasks::validation_name);
  }
  LONGHAND_CHECK(kind().name == "files",
                 "expected a run of the task \"text\" or \"files\", got a run of the task ",
                 kind().name);
  std::vector<tasks::TaskFile> files = tasks::find_task_files(path);
  LONGHAND_CHECK(files.size() == 1, "expected one data file, got ", files.size());
  const std::filesystem::path& file = files.front().path;
  for (const tasks::TaskFile& known : tasks::parse_task_files(text("task.files"))) {
    if (known.path == file) return known.name;
  }
  const std::string stem = file.stem().string();
  const bool is_taken = std::ranges::any_of(
      distributions(), [&](const tasks::Distribution& d) { return d.name == stem; });
  const std::string name = is_taken || !tasks::is_task_file_name(stem) ? "text" : stem;
  std::erase_if(files = tasks::parse_task_files(text("task.files")),
                [&](const tasks::TaskFile& other) { return other.name == name; });
  files.push_back({name, path});
  set("task.files", tasks::list_of(files));
  return name;
}

std::vector<tasks::Distribution> Config::distributions() const {
  return kind().distributions_of(task_values());
}

std::vector<std::string> Config::ranking_distributions() const {
  const std::vector<tasks::Distribution> all = distributions();
  std::array<std::vector<std::string>, 5> groups;
  for (const tasks::Distribution& d : all) {
    // The training distribution, which is the first one, is ranked last. If the task reads files,
    // the distribution training.train_on is ranked last too: its score would use the samples of the
    // file on which the run was trained. A task without files generates new samples for a score.
    const bool is_trained = &d == &all.front() || (kind().files && d.name == training().train_on);
    const bool validates = d.name == tasks::validation_name;
    const bool is_ood = d.name.starts_with("ood");
    const bool is_test = d.compared && d.name != "id";
    groups[is_trained ? 4 : validates ? 0 : is_ood ? 1 : is_test ? 2 : 3].push_back(d.name);
  }
  std::vector<std::string> names;
  for (const auto& group : groups) names.insert(names.end(), group.begin(), group.end());
  return names;
}

std::string Config::task_title() const {
  if (kind().name != "files" || text("task.files").empty()) return kind().name;
  const std::vector<tasks::TaskFile> files = tasks::parse_task_files(text("task.files"));
  const std::filesystem::path& path = files.front().path;
  const bool is_single = files.size() == 1;
  const std::string name =
      is_single ? path.stem().string() : path.parent_path().filename().string();
  return name.empty() ? kind().name : name;
}

std::unique_ptr<tasks::Task> Config::task(std::string_view distribution) const {
  return positioned(kind().make(task_values(), distribution));
}

std::int64_t Config::longest_for(const tasks::Task& task) const {
  const ModelSettings settings = model_settings();
  if (settings.decoder.longest > 0) return settings.decoder.longest;
  if (settings.position_ids == tasks::PositionIds::places) return task.longest();
  if (settings.position_ids == tasks::PositionIds::random) return random_positions;
  std::int64_t most = 1;
  for (const tasks::Distribution& d : distributions()) {
    most = std::max(most, kind().make(task_values(), d.name)->coupled_positions());
  }
  return std::max(most, 2 * kind().make(task_values())->coupled_positions());
}

std::unique_ptr<tasks::Task> Config::positioned(std::unique_ptr<tasks::Task> task) const {
  const std::int64_t range = longest_for(*task);
  return tasks::with_position_ids(std::move(task), model_settings().position_ids, range);
}

bool Config::trains_few() const {
  const std::string train = training().train;
  return train != "all" && (train != "auto" || model_settings().decoder.lora.rank > 0);
}

nn::Storage Config::storage() const {
  const TrainingSettings settings = training();
  if (settings.weights == TrainedForm::f32) return {};
  if (settings.weights == TrainedForm::file) return {.deferred = true};
  LONGHAND_CHECK(settings.columns == "none",
                 "training.columns needs training.weights = f32, got bf16");
  LONGHAND_CHECK(trains_few(),
                 "training.weights: expected f32, because all parameters are trained, "
                 "got bf16");
  return {.matrices = DType::bf16};
}

std::shared_ptr<const tasks::Task> Config::learned() const { return task(training().train_on); }

nn::BatchSource Config::batches(std::shared_ptr<const tasks::Task> learned) const {
  const TrainingSettings settings = training();
  return training_batches(std::move(learned), settings.seed, settings.batch_plan());
}

void Config::check() const {
  parsed<ModelSettings>("model");
  parsed<TrainingSettings>("training");
  parsed<ComputeSettings>("compute");
  const std::string message = contradiction();
  if (message.empty()) return;
  const Config defaults(text("task.name"));
  for (const Setting& setting : settings_) {
    if (setting.origin.empty()) continue;
    Config without = *this;
    without.set(setting.key, defaults.text(setting.key));
    // If the contradiction remains without this setting, another setting causes it.
    if (without.contradiction() == message) continue;
    refuse(setting, message);
  }
  fail(message);
}

std::string Config::contradiction() const {
  try {
    const std::unique_ptr<tasks::Task> made = task();
    const nn::DecoderConfig shape = model(*made);
    learned();
    const TrainingSettings settings = training();
    if (settings.columns != "none") {
      check_head_columns(shape, settings.columns);
      LONGHAND_CHECK(settings.train == "auto", "training.columns needs training.train = auto, got ",
                     quote(settings.train));
    }
    LONGHAND_CHECK(settings.set == 0 || settings.set >= made->heads(),
                   "training.set: expected 0 or at least ", made->heads(),
                   ", one sample for each output head, got ", settings.set);
    storage();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<CliFlag> config_options(std::initializer_list<std::string_view> shown) {
  std::vector<CliFlag> options;
  std::string names;
  for (const tasks::TaskKind& kind : tasks::all_tasks()) {
    names += (names.empty() ? "" : ", ") + kind.name;
  }
  options.push_back({"task", "NAME", "folder of JSONL files, or task: " + names,
                     tasks::all_tasks().front().name, false, "task"});
  // A flag may have different meanings in different tasks. The help lists each meaning once, after
  // the names of the tasks that share it.
  struct Meaning {
    std::string flag, tasks, text;
    std::vector<std::string> of;
  };
  std::vector<Meaning> meanings;
  for (const tasks::TaskKind& kind : tasks::all_tasks()) {
    for (const tasks::TaskOption& option : kind.options) {
      const std::string flag = flag_of(option);
      const std::string meaning = with_default(option.help, option.default_value);
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
    auto same = std::ranges::find(options, meaning.flag, &CliFlag::name);
    if (same == options.end()) {
      same = options.insert(same, {meaning.flag, "X", text, {}, false, "task"});
    } else {
      same->help += "; " + text;
    }
    for (const std::string& task : meaning.of) same->of_tasks[task] = meaning.text;
  }
  for (const SectionSpec& spec : all_specs()) {
    CliFlag option{spec.option.name, spec.option.placeholder,
                   with_default(spec.option.help, shown_default(spec))};
    option.group = spec.section;
    option.rare = shown.size() == 0 ? !spec.option.common
                                    : std::ranges::find(shown, option.name) == shown.end();
    options.push_back(std::move(option));
  }
  return options;
}

}  // namespace longhand::app
