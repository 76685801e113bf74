#include "apps/run/run_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/html/page.h"
#include "apps/machine.h"
#include "apps/version.h"

namespace longhand::app {
namespace {

std::string decimal(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4f", value);
  return buffer;
}

/// Charts of all evaluations, and a table of the last evaluation with its intervals.
std::string evaluations(const RunFolder& folder, const std::vector<Json>& metrics) {
  const Json* last = nullptr;
  for (const Json& line : metrics) {
    if (line.contains("intervals")) last = &line;
  }
  if (!last) return html::paragraph("No evaluation yet.");
  html::LineChart chart{.x_label = "step", .y_label = "share right", .series = {}};
  chart.y_low = 0;
  chart.y_high = 1;
  std::vector<std::vector<std::string>> rows;
  for (const tasks::Distribution& d : folder.config().distributions()) {
    for (const auto& [key, value] : last->members()) {
      if (!key.starts_with(d.name + "/") || !value.is_number()) continue;
      const std::string metric = key.substr(d.name.size() + 1);
      std::vector<std::string> row{html::escape(d.name), html::escape(metric),
                                   decimal(value.number()), ""};
      if (const Json* const interval = (*last)["intervals"].find(key)) {
        row[3] = decimal((*interval)[0].number()) + " to " + decimal((*interval)[1].number());
        html::Series series = curve(d.name + " " + metric, metrics, key);
        series.marks = true;
        chart.series.push_back(std::move(series));
      }
      rows.push_back(std::move(row));
    }
  }
  if (const Json* const too_long = last->find("too_long")) {
    for (const Json& name : too_long->elements()) {
      rows.push_back(
          {html::escape(name.string()), "skipped: its samples are too long for the model", "", ""});
    }
  }
  std::string content = html::table({"distribution", "metric", "value", "95%"}, rows) +
                        html::paragraph("Step " + (*last)["step"].dump() +
                                        ", teacher forcing, with Wilson's intervals.");
  const bool several = std::ranges::any_of(
      chart.series, [](const html::Series& series) { return series.points.size() > 1; });
  if (several) content += html::figure(line_chart(chart), "Evaluations during training");
  return content;
}

/// A chart of the main metric. Empty if the metric is a fraction, because another chart shows all
/// fractions.
std::string main_metric(const RunFolder& folder, const std::vector<Json>& metrics,
                        const tasks::Task& task) {
  const std::string name(task.main_metric());
  html::LineChart chart{.x_label = "step", .y_label = name, .series = {}};
  for (const tasks::Distribution& d : folder.config().distributions()) {
    const std::string key = d.name + "/" + name;
    html::Series series = curve(d.name, metrics, key);
    const bool is_share = std::ranges::any_of(metrics, [&](const Json& line) {
      const Json* const intervals = line.find("intervals");
      return intervals && intervals->contains(key);
    });
    series.marks = true;
    if (!is_share && series.points.size() > 1) chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return {};
  return html::figure(line_chart(chart),
                      text("Main metric of each evaluation",
                           tasks::lower_is_better(task.main_metric()) ? "; lower is better" : ""));
}

/// The model's continuations of the same prompts at several evaluations, including the last one.
std::string samples_over_training(const std::vector<Json>& metrics) {
  constexpr std::size_t most = 8;
  std::vector<const Json*> lines;
  for (const Json& line : metrics) {
    const Json* const samples = line.find("samples");
    if (samples && samples->is_array()) lines.push_back(&line);
  }
  std::string content;
  bool answers = false;  // true if the samples contain the expected answers
  const std::size_t shown = std::min(most, lines.size());
  for (std::size_t i = 1; i <= shown; ++i) {
    const Json& line = *lines[i * lines.size() / shown - 1];
    content += html::paragraph("Step " + line["step"].dump());
    for (const Json& sample : line["samples"]) {
      const Json* const prompt = sample.find("prompt");
      const Json* const said = sample.find("text");
      if (!prompt || !prompt->is_string() || !said || !said->is_string()) continue;
      content +=
          "<pre style=\"white-space:pre-wrap\"><b>" + html::escape(prompt->string()) + "</b>";
      if (const Json* const expected = sample.find("expected"); expected && expected->is_string()) {
        answers = true;
        content += *expected == *said ? "\ncorrect:   " : "\nexpected:  ";
        content += html::escape(expected->string());
        if (!(*expected == *said)) content += "\npredicted: " + html::escape(said->string());
      } else {
        content += html::escape(said->string());
      }
      content += "</pre>\n";
    }
  }
  if (content.empty()) return {};
  return html::paragraph(
             answers
                 ? "The first samples of each evaluation and the model's predictions. The model "
                   "reads the sample's own tokens (teacher forcing)."
                 : "Prompts from the held-out text and their continuations by the model, sampled "
                   "at a temperature of 0.8, always with the same random numbers.") +
         content;
}

/// A chart of one number in metrics.jsonl, whose key is `key`, over the training steps. Empty if
/// fewer than two steps have this number.
std::string step_figure(const std::vector<Json>& metrics, std::string_view key, std::string label,
                        std::string_view caption, bool log = false) {
  html::LineChart chart{.x_label = "step", .y_label = std::move(label), .series = {}};
  chart.log_y = log;
  chart.series.push_back(curve(std::string(key), metrics, key));
  if (chart.series[0].points.size() < 2) return {};
  return html::figure(line_chart(chart), caption);
}

std::string speed_figure(const std::vector<Json>& metrics) {
  std::vector<Json> speeds;
  for (const Json& line : metrics) {
    const Json *const tokens = line.find("tokens"), *const seconds = line.find("seconds");
    if (!tokens || !seconds || !(seconds->number() > 0)) continue;
    speeds.push_back({{"step", line["step"]}, {"tokens/s", tokens->number() / seconds->number()}});
  }
  return step_figure(speeds, "tokens/s", "tokens/s", "Tokens per second");
}

/// Links to the other files in the run's folder.
std::string files_beside(const RunFolder& folder) {
  std::string links;
  for (const char* name : {"config.ini", "metrics.jsonl", "inspect.html", "attention.html"}) {
    if (!std::filesystem::exists(folder.path() / name)) continue;
    links += (links.empty() ? "" : ", ") + html::link(name, name);
  }
  return links.empty() ? "" : "<p>Other files of this run: " + links + "</p>\n";
}

/// Charts of the trained numbers gamma (ChaCAL heads) and beta (tempered softmax) over the steps.
/// Empty if the model trained neither.
std::string learned_numbers(const std::vector<Json>& metrics) {
  std::string content;
  for (const char* kind : {"gamma", "beta"}) {
    std::vector<std::string> names;
    for (const Json& line : metrics) {
      for (const auto& [name, value] : line.members()) {
        if (name.starts_with(text(kind, ' '))) names.push_back(name);
      }
      if (!names.empty()) break;
    }
    if (names.empty()) continue;
    html::LineChart chart{.x_label = "step", .y_label = kind, .series = {}};
    for (const std::string& name : names) chart.series.push_back(curve(name, metrics, name));
    content +=
        html::figure(line_chart(chart),
                     text("Learned ", kind, " of each layer, or of LAYER.HEAD, during training"));
  }
  return content;
}

}  // namespace

html::Series curve(const std::string& name, const std::vector<Json>& metrics,
                   std::string_view figure, std::string_view head) {
  html::Series series{.name = name, .points = {}};
  std::vector<html::Point> all;
  for (const Json& line : metrics) {
    const Json* const found = line.find(figure);
    const Json* const of = line.find("head");
    const bool asked = head.empty() || (of && *of == head);
    if (asked && found && found->is_number()) {
      all.push_back({line["step"].number(), found->number()});
    }
  }
  const std::size_t group = std::max<std::size_t>(1, all.size() / 200);
  for (std::size_t i = 0; i + group <= all.size(); i += group) {
    html::Point mean;
    for (std::size_t k = 0; k < group; ++k) {
      mean.x += all[i + k].x / static_cast<double>(group);
      mean.y += all[i + k].y / static_cast<double>(group);
    }
    series.points.push_back(mean);
  }
  return series;
}

std::string run_report(const RunFolder& folder) {
  const Config& config = folder.config();
  const std::vector<Json> metrics = folder.metrics();
  std::int64_t steps = 0, tokens = 0;
  double seconds = 0;
  for (const Json& line : metrics) {
    if (!line.contains("seconds")) continue;
    ++steps;
    seconds += line["seconds"].number();
    if (const Json* const seen = line.find("tokens")) tokens += seen->integer();
  }
  const std::string name = folder.path().filename().string();
  html::Page page(name.empty() ? folder.path().parent_path().filename().string() : name,
                  "A model trained on " + config.task_title() + ": " + config.kind().summary);
  const auto task = config.task();
  page.add("Evaluation", evaluations(folder, metrics) + main_metric(folder, metrics, *task));
  const std::string samples = samples_over_training(metrics);
  if (!samples.empty()) page.add("Samples during training", samples);

  html::LineChart loss{.x_label = "step", .y_label = "loss", .series = {}, .log_y = true};
  html::LineChart accuracy{.x_label = "step", .y_label = "accuracy", .series = {}};
  for (int head = 0; head < task->heads(); ++head) {
    const std::string only = task->heads() > 1 ? std::string(task->head_name(head)) : "";
    loss.series.push_back(curve(only.empty() ? "loss" : only, metrics, "loss", only));
    accuracy.series.push_back(curve(only.empty() ? "accuracy" : only, metrics, "accuracy", only));
  }
  accuracy.y_high = 1;
  std::string curves = html::figure(line_chart(loss), "Loss of the training batches");
  if (!accuracy.series[0].points.empty()) {
    curves +=
        html::figure(line_chart(accuracy), "Share of correct targets in the training batches");
  }
  curves += step_figure(metrics, "rate", "", "Learning rate of each step");
  curves += step_figure(metrics, "gradient_norm", "norm", "Gradient norm before clipping", true);
  curves += speed_figure(metrics);
  page.add("Training", curves);
  const std::string learned = learned_numbers(metrics);
  if (!learned.empty()) page.add("Learned parameters of heads", learned);
  page.add("How to repeat this run",
           html::code("longhand train --config config.ini") +
               html::paragraph(text(steps, " steps, ", tokens, " tokens, ", std::lround(seconds),
                                    " s, commit ", commit, ", ", machine())) +
               files_beside(folder));
  page.add("Configuration", html::code(config.ini()));
  return page.render();
}

}  // namespace longhand::app
