#include <algorithm>
#include <cmath>

#include "apps/html/chart.h"
#include "apps/html/svg.h"
#include "apps/recipes/chacal.h"
#include "core/error.h"
#include "tasks/statistics.h"

/// How errors fall with the samples trained on and with the width, and what the fall says of the
/// papers' own sizes: Flip-Flop, chains and sorting.
namespace longhand::app::scaling {
namespace {

/// A figure that a paper prints, as an error or a loss. 0 is what it rounds to.
using Printed = std::optional<double>;

/// What the papers print as an accuracy of 1.00 or a loss of 0.00 is less than this.
constexpr double rounds_to_0 = 0.005;

struct StudiedModel {
  std::string id, name;
  Settings settings;
};

/// Something that is measured of a finished run on fresh samples.
struct Measure {
  std::string name;
  std::string distribution;         // of the task; empty: as in training
  Settings task;                    // options of the task over the run's
  std::string metric;               // a share of the tally; empty: the mean loss
  std::vector<Printed> paper = {};  // of each model
  bool is_share() const { return !metric.empty(); }
};

/// Models by samples at one width, and by widths at the middle number of samples.
struct Study {
  std::string task;
  Settings settings;  // of every run
  std::vector<StudiedModel> models;
  std::vector<Measure> measures;
  std::int64_t batch = 0;
  std::vector<std::int64_t> steps;  // 1, 4 and 16 times, or more
  std::vector<std::int64_t> widths;
  std::int64_t width = 0;    // that of the runs by samples
  std::int64_t inner = 0;    // so many times the width; 0: the default
  double rate = 0;           // at that width; it falls as 1 / width
  std::int64_t warm_up = 0;  // but at most a third of the steps
  std::int64_t test_samples = 0;
  std::int64_t paper_samples = 0;  // that the paper trains on
  std::string remarks = {};        // where the sizes are not the paper's, and what is measured

  std::int64_t middle_steps() const { return steps[steps.size() / 2]; }
};
using MakeStudy = Study (*)(Scale);

/// What a study has of one model at one size.
struct Sized {
  std::int64_t steps = 0, width = 0;
};

std::vector<Sized> sizes_of(const Study& study) {
  std::vector<Sized> sizes;
  for (const std::int64_t steps : study.steps) sizes.push_back({steps, study.width});
  for (const std::int64_t width : study.widths) {
    if (width != study.width) sizes.push_back({study.middle_steps(), width});
  }
  return sizes;
}

GridRun run_of(const Study& study, const StudiedModel& model, Sized size,
               const RecipeOptions& options, std::int64_t number) {
  Config config(study.task);
  set_all(config, study.settings);
  set_all(config, model.settings);
  const double rate =
      study.rate * static_cast<double>(study.width) / static_cast<double>(size.width);
  set_all(config, {{"model.width", std::to_string(size.width)},
                   {"training.steps", std::to_string(size.steps)},
                   {"training.batch", std::to_string(study.batch)},
                   {"training.warm_up", std::to_string(std::min(study.warm_up, size.steps / 3))},
                   {"training.rate", html::number(rate, 4)},
                   {"training.evaluate_samples", "0"}});
  if (study.inner > 0) config.set("model.inner", std::to_string(study.inner * size.width));
  const std::uint64_t seed = set_seed(config, options, number);
  set_all(config, options.settings);
  return {text(model.id, "-steps-", size.steps, "-width-", size.width, "-seed-", seed),
          std::move(config)};
}

std::int64_t seeds(const RecipeOptions& options) { return seeds_of(options, 3, 3, 3); }

std::vector<GridRun> runs_of(const Study& study, const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < seeds(options); ++number) {
    for (const Sized size : sizes_of(study)) {
      for (const StudiedModel& model : study.models) {
        runs.push_back(run_of(study, model, size, options, number));
      }
    }
  }
  return runs;
}

/// One run's figure in one measure.
struct Scored {
  double size = 0;   // samples or width
  double error = 0;  // a share that is wrong, or a loss
  bool none_wrong = false, all_wrong = false;
};

std::unique_ptr<tasks::Task> task_of(const Measure& measure, const Config& config) {
  if (measure.task.empty()) return config.task(measure.distribution);
  tasks::OptionValues values = config.task_values();
  for (const auto& [option, value] : measure.task) values.set(option, value);
  return config.positioned(config.kind().make(values));
}

/// Every measure of a run. Measures on the same samples are read of one evaluation.
std::vector<Scored> score(const Study& study, const GridRun& run, const RecipeOptions& options) {
  LoadedRun loaded = load_finished(run, options);
  // The same samples for every run, none of them trained on.
  const EvaluationOptions fresh{.samples = study.test_samples, .seed = options.seed + 1000};
  std::vector<Scored> scores;
  std::optional<tasks::Tally> tally;
  for (std::size_t m = 0; m < study.measures.size(); ++m) {
    const Measure& measure = study.measures[m];
    const auto task = task_of(measure, run.config);
    if (!measure.is_share()) {
      scores.push_back({.error = evaluate_loss(*loaded.model, *task, fresh)});
      continue;
    }
    const Measure* const before = m == 0 ? nullptr : &study.measures[m - 1];
    const bool same =
        tally && before->distribution == measure.distribution && before->task == measure.task;
    if (!same) tally = evaluate(*loaded.model, *task, fresh);
    const tasks::Metric& metric = tally->at(measure.metric);
    const auto trials = static_cast<double>(metric.count);
    const double wrong = trials - metric.sum;
    scores.push_back({.error = tasks::smoothed_error(wrong, trials),
                      .none_wrong = wrong == 0,
                      .all_wrong = metric.sum == 0});
  }
  return scores;
}

/// Of one model in one measure.
struct Line {
  std::vector<Scored> by_samples, by_width;
};

std::vector<double> sizes_in(const std::vector<Scored>& points) {
  std::vector<double> sizes;
  for (const Scored& point : points) sizes.push_back(point.size);
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  return sizes;
}

std::vector<double> errors_at(const std::vector<Scored>& points, double size) {
  std::vector<double> errors;
  for (const Scored& point : points) {
    if (point.size == size) errors.push_back(point.error);
  }
  std::ranges::sort(errors);
  return errors;
}

/// Of sorted values.
double median(const std::vector<double>& values) {
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// A fit, or why there is none.
struct Fit {
  std::optional<tasks::PowerLaw> law;
  std::string why_none;
  std::int64_t none_wrong = 0;
};

/// Points at which all is wrong are left out: there the fall has not begun.
Fit fit(const std::vector<Scored>& points) {
  Fit result;
  std::vector<tasks::SizeAndError> used;
  std::vector<Scored> left;
  for (const Scored& point : points) {
    if (point.all_wrong || !(point.error > 0) || !std::isfinite(point.error)) continue;
    left.push_back(point);
    used.push_back({point.size, point.error});
    result.none_wrong += point.none_wrong;
  }
  if (left.empty()) {
    result.why_none = "all is wrong at every size";
  } else if (result.none_wrong == std::ssize(left)) {
    result.why_none = "nothing is wrong at any size";
  } else if (sizes_in(left).size() < 3) {
    result.why_none = "too few points";
  } else if (result.law = tasks::power_law(used); !result.law) {
    result.why_none = "too few points";
  } else if (!result.law->falls()) {
    result.why_none = text("no slope: b ", html::number(result.law->exponent, 2), " [",
                           html::number(result.law->exponent_between.low, 2), ", ",
                           html::number(result.law->exponent_between.high, 2), "]");
    result.law.reset();
  }
  return result;
}

Printed paper_of(const Measure& measure, std::size_t model) {
  return measure.paper.empty() ? std::nullopt : measure.paper[model];
}

/// A share is never more than 1.
double bounded(double error, const Measure& measure) {
  return measure.is_share() ? std::min(error, 1.0) : error;
}

html::LineChart chart_of(const Study& study, std::size_t m, const std::vector<Line>& lines,
                         bool by_width) {
  const Measure& measure = study.measures[m];
  html::LineChart chart{.x_label = by_width ? "width" : "training samples",
                        .y_label = (measure.is_share() ? "wrong: " : "") + measure.name,
                        .series = {},
                        .log_x = true,
                        .log_y = true};
  double low = HUGE_VAL, high = 0, lowest_fit = HUGE_VAL;
  const auto see = [&](double error) {
    low = std::min(low, error);
    high = std::max(high, error);
  };
  std::vector<html::Series> fits, papers;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& name = study.models[i].name;
    const std::vector<Scored>& points = by_width ? lines[i].by_width : lines[i].by_samples;
    html::Series runs{
        .name = name, .points = {}, .marks = true, .line = false, .in_legend = false, .hue = i};
    for (const Scored& point : points) {
      runs.points.push_back({point.size, point.error});
      if (point.error > 0) see(point.error);
    }
    html::Series medians{.name = name, .points = {}, .hue = i};
    for (const double size : sizes_in(points)) {
      medians.points.push_back({size, median(errors_at(points, size))});
    }
    chart.series.push_back(std::move(runs));
    chart.series.push_back(std::move(medians));
    if (by_width) continue;
    if (const Fit fitted = fit(points); fitted.law) {
      html::Series line{
          .name = name + ", fit", .points = {}, .dashed = true, .in_legend = false, .hue = i};
      const double first = sizes_in(points).front();
      const double last = static_cast<double>(study.paper_samples);
      constexpr int pieces = 24;
      for (int k = 0; k <= pieces; ++k) {
        const double n = first * std::pow(last / first, k / static_cast<double>(pieces));
        const tasks::Interval between = fitted.law->next(n);
        line.points.push_back({n, fitted.law->at(n), between.low, between.high});
        lowest_fit = std::min(lowest_fit, fitted.law->at(n));
      }
      fits.push_back(std::move(line));
    }
    const Printed paper = paper_of(measure, i);
    if (!paper) continue;
    const bool rounded = *paper == 0;
    const double error = rounded ? rounds_to_0 : *paper;
    see(error);
    papers.push_back({.name = text("paper: ", name, rounded ? ", below" : ""),
                      .points = {{static_cast<double>(study.paper_samples), error}},
                      .marks = true,
                      .line = false,
                      .diamonds = true,
                      .hue = i});
  }
  if (!(high > 0)) return chart;
  // A steep fit goes out of the chart below.
  chart.y_low = std::max(std::min(low, lowest_fit), low / 100) / 3;
  chart.y_high = measure.is_share() ? std::min(1.0, high * 2) : high * 2;
  std::ranges::move(fits, std::back_inserter(chart.series));
  std::ranges::move(papers, std::back_inserter(chart.series));
  return chart;
}

std::string between(double low, double high) {
  return text("<small>[", html::number(low, 2), ", ", html::number(high, 2), "]</small>");
}

std::string printed(Printed paper) {
  if (!paper) return "";
  return *paper == 0 ? "&lt; 0.005" : html::number(*paper, 3);
}

/// b and what there is to say of the fit, or why there is none.
std::string exponent_text(const Fit& fitted) {
  if (!fitted.law) return html::escape(fitted.why_none);
  const tasks::PowerLaw& law = *fitted.law;
  std::string said = html::number(law.exponent, 2) + " " +
                     between(law.exponent_between.low, law.exponent_between.high);
  if (law.straight && *law.straight < 0.05) {
    said += text("<br><small>bends, p ", html::number(*law.straight, 2), "</small>");
  }
  if (fitted.none_wrong > 0) {
    said += text("<br><small>", fitted.none_wrong, " of ", law.points, " without an error</small>");
  }
  return said;
}

using Lines = std::vector<std::vector<Line>>;  // of each measure, each model

/// A table with a line for each measure and model.
std::string table_of(
    const Study& study, const Lines& lines, std::vector<std::string> header,
    const std::function<std::vector<std::string>(std::size_t m, std::size_t i)>& cells) {
  std::vector<std::vector<std::string>> body;
  for (std::size_t m = 0; m < lines.size(); ++m) {
    for (std::size_t i = 0; i < lines[m].size(); ++i) {
      body.push_back({html::escape(study.measures[m].name + ": " + study.models[i].name)});
      std::ranges::move(cells(m, i), std::back_inserter(body.back()));
    }
  }
  header.insert(header.begin(), "");
  return html::table(header, body);
}

/// Medians at every size; over widths, b too.
std::string sizes_table(const Study& study, const Lines& lines, bool by_width) {
  const auto points = [&](std::size_t m, std::size_t i) -> const std::vector<Scored>& {
    return by_width ? lines[m][i].by_width : lines[m][i].by_samples;
  };
  std::vector<std::string> header;
  for (const double size : sizes_in(points(0, 0))) {
    header.push_back(by_width ? "width " + html::number(size)
                              : html::mark_label(size) + " samples");
  }
  if (by_width) header.emplace_back("b");
  return table_of(study, lines, header, [&](std::size_t m, std::size_t i) {
    std::vector<std::string> cells;
    for (const double size : sizes_in(points(m, i))) {
      const std::vector<double> errors = errors_at(points(m, i), size);
      cells.push_back("<b>" + html::number(median(errors), 3) + "</b>" +
                      (errors.size() > 1 ? " " + between(errors.front(), errors.back()) : ""));
    }
    if (by_width) cells.push_back(exponent_text(fit(points(m, i))));
    return cells;
  });
}

/// b, and the fit at the paper's samples next to the paper's figure.
std::string fits_table(const Study& study, const Lines& lines) {
  const auto n = static_cast<double>(study.paper_samples);
  const std::vector<std::string> header{"b", "fit at " + html::mark_label(n) + " samples", "paper"};
  return table_of(study, lines, header, [&](std::size_t m, std::size_t i) {
    const Measure& measure = study.measures[m];
    const Fit fitted = fit(lines[m][i].by_samples);
    std::string ahead;
    if (fitted.law) {
      const tasks::Interval next = fitted.law->next(n);
      ahead = "<b>" + html::number(bounded(fitted.law->at(n), measure), 2) + "</b> " +
              between(bounded(next.low, measure), bounded(next.high, measure));
    }
    return std::vector<std::string>{exponent_text(fitted), ahead, printed(paper_of(measure, i))};
  });
}

/// Rows: errors at every size, b, and the fit at the paper's samples. In the table are those at the
/// most samples and the fit's.
void add_rows(const Study& study, const Lines& lines, RecipeResult& result) {
  for (std::size_t m = 0; m < study.measures.size(); ++m) {
    const Measure& measure = study.measures[m];
    const std::string wrong = measure.name + (measure.is_share() ? ", wrong" : "");
    for (std::size_t i = 0; i < study.models.size(); ++i) {
      const std::string& name = study.models[i].name;
      const auto add = [&](const std::vector<Scored>& points, const char* unit, bool in_table) {
        const std::vector<double> sizes = sizes_in(points);
        for (const double size : sizes) {
          const std::vector<double> errors = errors_at(points, size);
          const std::string at = text(wrong, " at ", html::mark_label(size), ' ', unit);
          Row median_row{name, at, median(errors)};
          if (errors.size() > 1) {
            median_row.low = errors.front();
            median_row.high = errors.back();
          }
          median_row.in_table = in_table && size == sizes.back();
          result.rows.push_back(std::move(median_row));
          for (std::size_t r = 0; r < errors.size(); ++r) {
            Row one{name, text(at, ", run ", r + 1), errors[r]};
            one.in_table = false;
            result.rows.push_back(std::move(one));
          }
        }
      };
      add(lines[m][i].by_samples, "samples", true);
      add(lines[m][i].by_width, "columns", false);
      const Fit fitted = fit(lines[m][i].by_samples);
      if (!fitted.law) continue;
      const tasks::PowerLaw& law = *fitted.law;
      Row exponent{name, wrong + ", b", law.exponent, law.exponent_between.low,
                   law.exponent_between.high};
      exponent.in_table = false;
      result.rows.push_back(std::move(exponent));
      const auto n = static_cast<double>(study.paper_samples);
      const tasks::Interval next = law.next(n);
      result.rows.push_back({name, text(wrong, ", fit at ", html::mark_label(n), " samples"),
                             bounded(law.at(n), measure), bounded(next.low, measure),
                             bounded(next.high, measure), paper_of(measure, i)});
    }
  }
}

void report(const Study& study, const RecipeOptions& options, RecipeResult& result) {
  std::vector<std::vector<Line>> lines(study.measures.size(),
                                       std::vector<Line>(study.models.size()));
  for (std::int64_t number = 0; number < seeds(options); ++number) {
    for (const Sized size : sizes_of(study)) {
      for (std::size_t i = 0; i < study.models.size(); ++i) {
        const GridRun run = run_of(study, study.models[i], size, options, number);
        const std::vector<Scored> scores = score(study, run, options);
        const auto samples =
            static_cast<double>(run.last_step() * run.config.integer("training.batch", 1, 1 << 24));
        for (std::size_t m = 0; m < scores.size(); ++m) {
          Scored scored = scores[m];
          if (size.width == study.width) {
            scored.size = samples;
            lines[m][i].by_samples.push_back(scored);
          }
          if (size.steps == study.middle_steps()) {
            scored.size = static_cast<double>(size.width);
            lines[m][i].by_width.push_back(scored);
          }
        }
      }
    }
  }
  add_rows(study, lines, result);
  result.has_table = true;
  std::string charts = html::paragraph(
      "Dots are runs, lines their medians. Dashed: the fit, in a band where a further run falls "
      "with 95%. Diamonds: the paper; \"below\" where it prints an error that rounds to 0.");
  for (std::size_t m = 0; m < study.measures.size(); ++m) {
    charts +=
        html::figure(html::line_chart(chart_of(study, m, lines[m], false)), study.measures[m].name);
  }
  result.sections.emplace_back(
      "By samples", sizes_table(study, lines, false) + fits_table(study, lines) + charts);
  if (study.widths.size() > 1) {
    std::string pictures;
    for (std::size_t m = 0; m < study.measures.size(); ++m) {
      html::LineChart chart = chart_of(study, m, lines[m], true);
      for (const std::int64_t width : study.widths) {
        chart.x_marks.push_back(static_cast<double>(width));
      }
      pictures += html::figure(html::line_chart(chart), study.measures[m].name);
    }
    const auto samples = static_cast<double>(study.middle_steps() * study.batch);
    result.sections.emplace_back(text("By width, at ", html::mark_label(samples), " samples"),
                                 sizes_table(study, lines, true) + pictures);
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(study.remarks) +
          html::paragraph(text(
              "Every run has a schedule of its own over its steps; more samples are more steps of ",
              study.batch, ". The rate falls as 1 / width. ", study.test_samples,
              " fresh samples, the same for all runs. Cells have the median over seeds, and the "
              "least and the greatest of them.")) +
          html::paragraph(
              "e(n) = a n^-b is fitted by least squares in logarithms to every seed's point, n "
              "being the number of training samples (or the width). An error is (wrong + 1/2) / "
              "(counted + 1), so that there is a logarithm where nothing is wrong; with many such "
              "points b is too small. Points where all is wrong are left out. b has Student's 95% "
              "interval; at the paper's number of samples stand the fit and where one more run "
              "would fall with 95% if the law holds as far. A fit whose b may be 0 or less, or "
              "with points at fewer than three sizes, says nothing, and no number is given. "
              "\"bends\" stands where the "
              "medians are off the line by more than seeds explain (an F test, p below 0.05): then "
              "the law does not hold as far as the points, let alone to the paper's samples, and "
              "the fit there is of the slope so far, no forecast. An error that jumps from high to "
              "none bends so."));
}

/// Of one value for each scale.
template <class T>
T by_scale(Scale scale, T smoke, T laptop, T paper) {
  return scale == Scale::smoke ? smoke : scale == Scale::laptop ? laptop : paper;
}

using Numbers = std::vector<std::int64_t>;

Study flip_flop(Scale scale) {
  Study study{
      .task = "flip-flop",
      .settings = {{"task.instructions", by_scale(scale, "64", "512", "512")},
                   {"model.layers", by_scale(scale, "2", "6", "6")},
                   {"training.checkpoint_every", by_scale(scale, "0", "100", "500")}},
      .models = {{"gpt", "GPT + RoPE", {{"model.heads", "softmax:4"}}},
                 {"fal", "FAL-GPT + RoPE", {{"model.heads", "softmax:3,fal:1"}}}},
      .measures = {{"F(0.6), sequences", "train", {}, "sequences", {0.0, 0.0}},
                   {"F(0.98), reads", "sparse", {}, "reads"},
                   {"F(0.98), sequences", "sparse", {}, "sequences", {1 - 0.151, 0.0}},
                   {"twice the length, reads", "2x", {}, "reads"},
                   {"twice the length, sequences", "2x", {}, "sequences", {0.5, 0.0}}},
      .batch = by_scale(scale, 16, 8, 128),
      .steps = by_scale<Numbers>(scale, {50, 200, 800}, {120, 480, 1920}, {750, 3000, 12'000}),
      .widths = {32, 64, 128},
      .width = 64,
      .rate = by_scale(scale, 1e-3, 1e-3, 1e-4),
      .warm_up = 100,
      .test_samples = by_scale(scale, 200, 200, 1000),
      .paper_samples = 12'000 * 128};
  study.remarks = text(
      "The share of reads, and of sequences with a read, that are wrong, every token of the "
      "sample given. F(0.6) is what is trained on. ",
      by_scale(scale,
               "64 instructions and 2 layers stand for the paper's 512 and 6, so its figures are "
               "of another task here.",
               "Model and lengths are the paper's, the peak rate is 1e-3 in place of 1e-4.",
               "All is the paper's."));
  return study;
}

Study chains(Scale scale) {
  Study study{
      .task = "chains",
      .settings = {{"model.start", "residual"},
                   {"training.schedule", "linear"},
                   {"task.blocks", by_scale(scale, "8", "16", "16")},
                   {"training.checkpoint_every", by_scale(scale, "0", "500", "600")}},
      .models = {},
      .measures = {{"choices", "", {}, "choices", {}}, {"loss", "", {}, "", {}}},
      .batch = by_scale(scale, 32, 32, 128),
      .steps = by_scale<Numbers>(scale, {100, 400, 1600}, {500, 2000, 8000}, {1500, 6000, 24'000}),
      .widths = by_scale<Numbers>(scale, {16, 32, 64}, {64, 128, 256}, {128, 256, 512}),
      .width = by_scale(scale, 32, 64, 512),
      .inner = 4,
      .rate = by_scale(scale, 4e-3, 2e-3, 3e-4),
      .warm_up = by_scale(scale, 250, 500, 8000),
      .test_samples = by_scale(scale, 200, 200, 1000),
      .paper_samples = 24'000 * 128};
  study.settings.insert(chacal_gpt2.begin(), chacal_gpt2.end());
  const std::string heads = scale == Scale::paper ? "8" : "4";
  const auto add = [&](bool chacal, const std::string& layers, double error, double loss) {
    study.models.push_back(
        {(chacal ? "chacal-" : "standard-") + layers,
         (chacal ? "ChaCAL L=" : "Standard L=") + layers,
         {{"model.heads", (chacal ? "chacal:" : "softmax:") + heads}, {"model.layers", layers}}});
    study.measures[0].paper.emplace_back(error);
    study.measures[1].paper.emplace_back(loss);
  };
  add(false, "1", 1 - 0.499, 1.20);
  if (scale != Scale::smoke) add(false, "3", 1 - 0.909, 0.21);
  add(true, "1", 0.0, 0.0);
  study.remarks =
      text("The share of all choices that are wrong, each one of eight, and their mean loss. ",
           by_scale(scale, "Samples have 64 tokens where the paper's have 128. ",
                    "The task is the paper's. ", "The task and the models are the paper's. "),
           by_scale(scale, "The paper's width is 512.", "The paper's width is 512.", ""),
           " What one standard layer cannot know does not go with more samples: by the theorem its "
           "error "
           "stays at ",
           scale == Scale::smoke ? "0.51." : "0.68.");
  return study;
}

Study sorting(Scale scale) {
  const std::int64_t longest = by_scale(scale, 6, 20, 20);
  const std::string further = std::to_string(longest * 5 / 2), twice = std::to_string(longest * 2);
  const std::string far = std::to_string(longest * 5);
  Study study{.task = "sorting",
              .settings = {{"model.positions", "none"},
                           {"model.order", "sequential"},
                           {"model.layers", "2"},
                           {"model.heads", by_scale(scale, "softmax:2", "softmax:4", "softmax:16")},
                           {"task.numbers", by_scale(scale, "40", "100", "100")},
                           {"task.long", std::to_string(longest)},
                           {"training.schedule", "one_cycle"},
                           {"training.checkpoint_every", by_scale(scale, "0", "5000", "2000")}},
              .models = {{"none", "no hint", {{"task.hint", "none"}}},
                         {"successor", "successor hint", {{"task.hint", "successor"}}}},
              .measures = {},
              .batch = by_scale(scale, 32, 64, 1024),
              .steps = by_scale<Numbers>(scale, {300, 1200, 4800}, {2000, 8000, 32'000, 128'000},
                                         {6250, 25'000, 100'000}),
              .widths = by_scale<Numbers>(scale, {16, 32, 64}, {32, 64, 128}, {256, 512, 1024}),
              .width = by_scale(scale, 32, 64, 1024),
              .inner = 2,
              .rate = by_scale(scale, 4e-3, 2e-3, 1e-5),
              .warm_up = by_scale(scale, 100, 200, 10'000),
              .test_samples = by_scale(scale, 200, 500, 1000),
              .paper_samples = 100'000 * 1024};
  const auto add = [&](const std::string& length, bool copies, const char* metric,
                       std::vector<Printed> paper) {
    Settings options{{"length", length}};
    if (!copies) options["repeat"] = "1";
    study.measures.push_back(
        {text("length ", length, copies ? "" : " without copies", ", ", metric), "",
         std::move(options), metric, std::move(paper)});
  };
  add(twice, true, "tokens", {});
  add(twice, true, "sequences", {});
  add(twice, false, "tokens", {});
  add(twice, false, "sequences", {});
  add(further, true, "tokens", {});
  add(further, true, "sequences", {1 - 0.89, 1 - 0.992});
  add(further, false, "sequences", {});
  if (scale != Scale::smoke) add(far, true, "sequences", {1.0, 1 - 0.524});
  study.remarks = text(
      "The share of sequences that are not sorted as a whole, and of single tokens, all before "
      "them "
      "given; a sequence that is right so is right in decoding too. Trained are lengths up to ",
      longest, ". A hinted model has half of its samples for sorting. ",
      by_scale(
          scale,
          text("Length ", further, " stands where the paper has 50. The paper's width is 1024."),
          std::string("The task is the paper's, and its width is 1024."),
          std::string("All is the paper's.")));
  return study;
}

RegisterRecipe scaling_recipe(const std::string& id, const std::string& summary, MakeStudy study,
                              std::map<Scale, std::string> scales) {
  return RegisterRecipe(grid_recipe(
      {.id = id,
       .summary = summary,
       .scales = std::move(scales),
       .runs = [=](const RecipeOptions& options) { return runs_of(study(options.scale), options); },
       .report = [=](const RecipeOptions& options,
                     RecipeResult& result) { report(study(options.scale), options, result); }}));
}

const RegisterRecipe recipes_of_scaling[] = {
    scaling_recipe(
        "scaling/flip-flop",
        "Flip-Flop at 1, 4 and 16 times the samples and three widths, with fits", flip_flop,
        {{Scale::smoke, "64 instructions, 2 layers: two and a half minutes on one core"},
         {Scale::laptop, "the paper's model and lengths: two and a quarter hours on one core"},
         {Scale::paper, "up to the paper's samples; for a GPU"}}),
    scaling_recipe("scaling/chains",
                   "chains at 1, 4 and 16 times the samples and three widths, with fits", chains,
                   {{Scale::smoke, "one layer of each, 64 tokens: a minute and a half on one core"},
                    {Scale::laptop, "widths 64 to 256, 128 tokens: two hours on one core"},
                    {Scale::paper, "up to the paper's samples and width; for a GPU"}}),
    scaling_recipe(
        "scaling/sorting",
        "sorting with and without a hint at 1, 4, 16 times the samples or more, with fits", sorting,
        {{Scale::smoke, "numbers 1 to 40, up to 6 of them: a minute on one core"},
         {Scale::laptop,
          "the paper's task, widths 32 to 128, 64 times the samples too: two hours on one core"},
         {Scale::paper, "up to the paper's samples and width; for a GPU"}})};

}  // namespace
}  // namespace longhand::app::scaling
