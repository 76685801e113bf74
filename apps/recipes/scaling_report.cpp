#include <algorithm>
#include <cmath>

#include "apps/html/chart.h"
#include "apps/html/svg.h"
#include "apps/recipes/scaling.h"

/// The report of a scaling study: tables, charts, fits.
namespace longhand::app::scaling {
namespace {

/// If a paper prints an accuracy of 1.00 or a loss of 0.00, the error is below this bound.
constexpr double rounds_to_0 = 0.005;

std::vector<double> sizes_in(const std::vector<Scored>& points) {
  std::vector<double> sizes;
  for (const Scored& point : points) sizes.push_back(point.size);
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// The errors of the runs with this size, in the order of their seeds.
std::vector<double> errors_at(const std::vector<Scored>& points, double size) {
  std::vector<double> errors;
  for (const Scored& point : points) {
    if (point.size == size) errors.push_back(point.error);
  }
  return errors;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Printed paper_of(const Measure& measure, std::size_t model) {
  return measure.paper.empty() ? std::nullopt : measure.paper[model];
}

bool bends(const tasks::PowerLaw& law) { return law.straight && *law.straight < 0.05; }

/// Limits a share of errors to at most 1, because the value of a fitted power law may be larger.
double bounded(double error, const Measure& measure) {
  return measure.is_share() ? std::min(error, 1.0) : error;
}

/// The curve of a fitted power law with its 95% band, from `first` samples, the smallest number in
/// the study, to the paper's number of samples.
html::Series line_of(const tasks::PowerLaw& law, double first, const Study& study,
                     std::size_t model) {
  html::Series line{.name = study.models[model].name + ", fit",
                    .points = {},
                    .dashed = true,
                    .in_legend = false,
                    .hue = model};
  const double last = static_cast<double>(study.paper_samples);
  constexpr int pieces = 24;
  for (int k = 0; k <= pieces; ++k) {
    const double n = first * std::pow(last / first, k / static_cast<double>(pieces));
    const tasks::Interval between = law.next(n);
    line.points.push_back({n, law.at(n), between.low, between.high});
  }
  return line;
}

/// Adds the paper's result for a model to the marks of a chart. Models with the same result share
/// one mark.
void add_paper(std::vector<html::Series>& papers, const std::string& model,
               const html::Point& figure, std::size_t hue) {
  for (html::Series& other : papers) {
    if (other.points[0].y != figure.y) continue;
    other.name += ", " + model;
    return;
  }
  papers.push_back({.name = "paper: " + model,
                    .points = {figure},
                    .marks = true,
                    .line = false,
                    .diamonds = true,
                    .hue = hue});
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
      fits.push_back(line_of(*fitted.law, sizes_in(points).front(), study, i));
      for (const auto& point : fits.back().points) lowest_fit = std::min(lowest_fit, point.y);
    }
    const Printed paper = paper_of(measure, i);
    if (!paper) continue;
    const bool rounded = *paper == 0;
    const double error = rounded ? rounds_to_0 : *paper;
    see(error);
    add_paper(papers, text(name, rounded ? ", below" : ""),
              {static_cast<double>(study.paper_samples), error}, i);
  }
  if (!(high > 0)) return chart;
  // The lower end of the y axis is limited, so a steep fit may leave the chart at the bottom.
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

/// Text of a table cell: the exponent b of the fitted law e = a n^-b with remarks on the fit, or
/// the reason why no law was fitted.
std::string exponent_text(const Fit& fitted) {
  if (!fitted.law) return html::escape(fitted.why_none);
  const tasks::PowerLaw& law = *fitted.law;
  std::string said = html::number(law.exponent, 2) + " " +
                     between(law.exponent_between.low, law.exponent_between.high);
  if (bends(law)) {
    said += text("<br><small>bends, p ", html::number(*law.straight, 2), "</small>");
  }
  if (fitted.none_wrong > 0) {
    said += text("<br><small>", fitted.none_wrong, " of ", law.points, " without an error</small>");
  }
  return said;
}

/// A table with one row per measure and model.
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

/// A table of the median errors at every size. If the sizes are widths, the last column contains
/// the exponent b of the fitted law e = a n^-b.
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
                      (errors.size() > 1
                           ? " " + between(std::ranges::min(errors), std::ranges::max(errors))
                           : ""));
    }
    if (by_width) cells.push_back(exponent_text(fit(points(m, i))));
    return cells;
  });
}

/// A table of the fitted laws e = a n^-b: the exponent b, the error that the law predicts for the
/// paper's number of samples, and the error that the paper reports.
std::string fits_table(const Study& study, const Lines& lines) {
  const auto n = static_cast<double>(study.paper_samples);
  const std::vector<std::string> header{"b", "fit at " + html::mark_label(n) + " samples", "paper"};
  return table_of(study, lines, header, [&](std::size_t m, std::size_t i) {
    const Measure& measure = study.measures[m];
    const Fit fitted = fit(lines[m][i].by_samples);
    std::string ahead;
    if (fitted.law) {
      const tasks::Interval next = fitted.law->next(n);
      const std::string at = html::number(bounded(fitted.law->at(n), measure), 2);
      ahead = (bends(*fitted.law) ? at : "<b>" + at + "</b>") + " " +
              between(bounded(next.low, measure), bounded(next.high, measure));
    }
    return std::vector<std::string>{exponent_text(fitted), ahead, printed(paper_of(measure, i))};
  });
}

/// Adds the rows of a study to the result: the mean error at every size, the exponent b of the
/// fitted law e = a n^-b, and the error that the law predicts for the paper's number of samples.
/// Most rows appear in the JSON only. The table shows the mean errors at the largest number of
/// samples and, if the points follow the law, the prediction.
void add_rows(const Study& study, const Lines& lines, RecipeResult& result) {
  for (std::size_t m = 0; m < study.measures.size(); ++m) {
    const Measure& measure = study.measures[m];
    const std::string wrong = measure.name + (measure.is_share() ? ", wrong" : "");
    for (std::size_t i = 0; i < study.models.size(); ++i) {
      const std::string& name = study.models[i].name;
      const auto add = [&](const std::vector<Scored>& points, const char* unit, bool in_table) {
        const std::vector<double> sizes = sizes_in(points);
        for (const double size : sizes) {
          const std::size_t mean = result.rows.size();
          add_row(result, name, text(wrong, " at ", html::mark_label(size), ' ', unit),
                  errors_at(points, size), {}, points.front().trials);
          result.rows[mean].in_table = in_table && size == sizes.back();
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
      Row ahead{name,
                text(wrong, ", fit at ", html::mark_label(n), " samples"),
                bounded(law.at(n), measure),
                bounded(next.low, measure),
                bounded(next.high, measure),
                paper_of(measure, i)};
      ahead.in_table = !bends(law);
      result.rows.push_back(std::move(ahead));
    }
  }
}

}  // namespace

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
  if (points.empty()) {
    result.why_none = "too few points";
  } else if (left.empty()) {
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

void tell(const Study& study, const Lines& lines, RecipeResult& result) {
  add_rows(study, lines, result);
  result.has_table = true;
  std::string charts = html::paragraph(
      "Dots are runs, lines their medians. Dashed lines are fits; the band contains another run "
      "with a probability of 95%. Diamonds are the paper's figures, marked \"below\" if the paper "
      "prints an error that rounds to 0.");
  for (std::size_t m = 0; m < study.measures.size(); ++m) {
    charts +=
        html::figure(html::line_chart(chart_of(study, m, lines[m], false)), study.measures[m].name);
  }
  result.sections.emplace_back(
      "By samples",
      sizes_table(study, lines, false) +
          html::paragraph(
              "The fit e(n) = a n^-b, and its value at the paper's number of training samples:") +
          fits_table(study, lines) + charts);
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
              "Every run has its own schedule over its steps. More samples are more steps of ",
              study.batch, ". The peak rate is proportional to 1 / width. Errors are measured on ",
              study.test_samples,
              " new samples, the same for all runs. Cells show the median, minimum and maximum "
              "over seeds; lists of figures show means with Student's 95% interval over seeds.")) +
          html::paragraph(
              "e(n) = a n^-b is fitted by least squares in logarithms to the point of every seed, "
              "where n is the number of training samples (or the width). An error is (wrong + 1/2) "
              "/ (counted + 1), so that its logarithm exists even if nothing is wrong; with many "
              "such points b is too small. Points at which everything is wrong are excluded. b has "
              "Student's 95% interval. At the paper's number of samples the table shows the fit "
              "and the range that contains another run with a probability of 95% if the law holds "
              "that far. No number is shown for a fit whose b may be 0 or less, or with points at "
              "fewer than three sizes. \"bends\" marks fits whose medians deviate from the line by "
              "more than seeds explain (an F test with p below 0.05). Then the law does not hold "
              "even within the measured points, and the value at the paper's samples only extends "
              "the slope so far. An error that drops suddenly from high to none also bends."));
}

}  // namespace longhand::app::scaling
