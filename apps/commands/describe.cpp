#include <unistd.h>

#include <iomanip>
#include <iostream>

#include "apps/run/learning.h"
#include "apps/run/memory.h"
#include "apps/run/run_summary.h"
#include "apps/terminal.h"
#include "core/accounting_backend.h"
#include "core/quote.h"
#include "nn/training/checkpoint_store.h"

namespace longhand::app::describe_command {
namespace {

namespace fs = std::filesystem;

/// Replaces the number of the block in a parameter's name: blocks.7.norm1.weight becomes
/// blocks.*.norm1.weight.
std::string of_any_block(const std::string& name) {
  const std::string_view start = "blocks.";
  if (!name.starts_with(start)) return name;
  return text(start, '*', name.substr(std::min(name.find('.', start.size()), name.size())));
}

/// A table of the model's parameters. Parameters with the same name and shape in several blocks
/// share a row.
Json parameters_of(const nn::Parameters& parameters) {
  Json rows = Json::array();
  for (const nn::Parameter& p : parameters.all()) {
    const std::string name = of_any_block(p.name()), shape = text(p.shape());
    std::size_t row = 0;
    while (row < rows.size() && !(rows[row]["name"] == name && rows[row]["shape"] == shape)) ++row;
    if (row == rows.size()) {
      rows.push_back(
          {{"name", name}, {"shape", shape}, {"times", 0}, {"numbers", 0}, {"learn", 0}});
    }
    rows[row]["times"] = rows[row]["times"].integer() + 1;
    rows[row]["numbers"] = rows[row]["numbers"].integer() + p.shape().size();
    rows[row]["learn"] = rows[row]["learn"].integer() + (p.frozen() ? 0 : p.learning());
  }
  return rows;
}

/// The last value of the loss and of each score in a run's metrics. A value has its 95% interval if
/// the metrics contain one.
Json figures_of(const std::vector<Json>& metrics) {
  Json figures = Json::object();
  for (const Json& line : metrics) {
    for (const auto& [key, value] : line.members()) {
      if (!value.is_number() || (key != "loss" && key.find('/') == std::string::npos)) continue;
      Json figure{{"step", line["step"]}, {"value", value}};
      const Json* const intervals = line.find("intervals");
      if (const Json* const interval = intervals ? intervals->find(key) : nullptr) {
        figure["interval"] = *interval;
      }
      figures[key] = std::move(figure);
    }
  }
  return figures;
}

std::uintmax_t bytes_below(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  std::error_code ignored;  // files that are removed during the count are skipped
  for (fs::recursive_directory_iterator it(folder, ignored), end; it != end;
       it.increment(ignored)) {
    const std::uintmax_t size = it->is_regular_file(ignored) ? it->file_size(ignored) : 0;
    if (!ignored) bytes += size;
  }
  return bytes;
}

/// A description of a run, made without its parameter values: the model is built on a backend that
/// allocates no memory.
Json facts_of(const fs::path& path) {
  const RunSummary summary = summarize(path);
  const Config& config = summary.config;
  const RunFolder folder(path);
  const auto backend = make_accounting_backend(config.compute().options);
  const auto task = config.task();
  nn::Storage storage = config.storage();
  storage.initial = false;
  nn::Decoder model(*backend, config.model(*task), config.training().seed, storage);
  // A run whose matrices stay in blocks cannot be trained before LoRA is added.
  const bool trainable = config.training().weights != TrainedForm::file || config.trains_few();
  if (trainable && !model.wants_reference()) set_up_training(config, model);

  Json facts{{"run", path.string()},
             {"task", config.task_title()},
             {"about", config.kind().summary},
             {"state", summary.state},
             {"step", summary.step},
             {"steps", summary.steps},
             {"minutes", summary.seconds / 60},
             {"bytes", bytes_below(path)},
             {"vocabulary", task->vocabulary().size()},
             {"outputs", task->heads()}};
  Json heads = Json::array();
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    heads.push_back(text_of(model.config().mixers_of(layer), config.mixer_options()));
  }
  facts["heads_of_layers"] = std::move(heads);
  facts["parameters"] = model.parameters().count();
  facts["tensors"] = parameters_of(model.parameters());
  Json settings = Json::object();
  for (const auto& [key, value] : config.settings()) settings[key] = value;
  facts["settings"] = std::move(settings);
  const nn::CheckpointStore store(folder.checkpoints(), 1);
  facts["checkpoints"] = store.steps();
  facts["best"] = store.best() ? Json(*store.best()) : Json();
  facts["figures"] = figures_of(folder.metrics());
  return facts;
}

void print_settings(const Json& settings, const std::string& section) {
  std::cout << '\n' << section << '\n';
  for (const auto& [key, value] : settings.members()) {
    if (!key.starts_with(section + ".")) continue;
    const std::string& said = value.string();
    std::cout << "  " << std::left << std::setw(22) << key.substr(section.size() + 1) << ' ';
    const std::string shown = said.empty() ? "-" : printable(said);
    const std::size_t columns = table_columns(STDOUT_FILENO);
    write_wrapped(std::cout, shown, 25, 25, columns == 0 ? 25 + shown.size() : columns);
  }
}

void print(const Json& facts) {
  const auto entry = [](const std::string& name, const std::string& rest) {
    std::cout << "  " << std::left << std::setw(22) << name << ' ' << printable(rest) << '\n';
  };
  std::cout << printable(facts["run"].string()) << ": " << facts["about"].string() << "\n\nrun\n";
  entry("state", text(facts["state"].string(), ", step ", facts["step"].integer(), " of ",
                      facts["steps"].integer()));
  std::cout << std::fixed << std::setprecision(1);
  std::cout << "  " << std::setw(22) << "minutes" << ' ' << facts["minutes"].number() << '\n';
  entry("on disk", size_in_words(facts["bytes"].number()));
  std::string steps;
  for (const Json& step : facts["checkpoints"]) steps += (steps.empty() ? "" : ", ") + step.dump();
  if (!facts["best"].is_null()) steps += "; the best is " + facts["best"].dump();
  entry("checkpoints", steps.empty() ? "none" : steps);

  std::cout << '\n' << "parameters, " << facts["parameters"].integer() << " numbers\n";
  Report tensors({{"name", "  tensor"},
                  {"shape", "shape"},
                  {"times", "times"},
                  {"numbers", "numbers"},
                  {"learn", "that learn"}});
  for (Json row : facts["tensors"].elements()) {
    row["name"] = "  " + row["name"].string();
    tensors.add(std::move(row));
  }
  tensors.print(std::cout, false);
  for (const char* section : {"task", "model", "training", "compute"}) {
    print_settings(facts["settings"], section);
  }
  std::cout << "\nlatest figures\n";
  if (facts["figures"].empty()) std::cout << "  none yet\n";
  Report figures({{"name", "  figure"},
                  {"value", "value", "%.4f"},
                  {"low", "95% from", "%.4f"},
                  {"high", "to", "%.4f"},
                  {"step", "step"}});
  for (const auto& [name, figure] : facts["figures"].members()) {
    Json row{{"name", "  " + name}, {"value", figure["value"]}, {"step", figure["step"]}};
    if (const Json* const interval = figure.find("interval")) {
      row["low"] = (*interval)[0];
      row["high"] = (*interval)[1];
    }
    figures.add(std::move(row));
  }
  if (!figures.rows().empty()) figures.print(std::cout, false);
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const Json facts = facts_of(arguments.plain()[0]);
  if (arguments.json()) {
    std::cout << facts << '\n';
  } else {
    print(facts);
  }
}

const Register command{
    {.name = "describe",
     .summary = "prints the model, settings and latest metrics of a run",
     .usage = {"RUN [--json]"},
     .options = {json_option()},
     .examples = {"describe runs/flip-flop-1"},
     .notes = "Parameters of different blocks share a row of the table if they have the same\n"
              "shape and the same name within their block. Checkpoints are not read.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::describe_command
