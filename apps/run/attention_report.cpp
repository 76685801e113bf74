#include "apps/run/attention_report.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "apps/html/chart.h"
#include "apps/html/heat_map.h"
#include "apps/html/page.h"
#include "apps/report.h"
#include "apps/run/inspection.h"
#include "apps/run/mixer_views.h"
#include "core/error.h"

namespace longhand::app {
namespace {

constexpr std::size_t heads_printed = 10, heads_listed = 40, heads_drawn = 12;

std::string decimal(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string name_of(const HeadScore& head) {
  return text("layer ", head.layer, ", head ", head.head);
}

using HeadKey = std::pair<std::int64_t, std::int64_t>;
std::map<HeadKey, double> entropies_by_head(const AttentionMeasures& measures) {
  std::map<HeadKey, double> all;
  for (const HeadEntropy& head : measures.entropies) all[{head.layer, head.head}] = head.entropy;
  return all;
}

Json to_json(const tasks::Moments& values) {
  Json json{{"mean", values.count > 0 ? Json(values.mean) : Json()},
            {"deviation", values.deviation()},
            {"count", values.count}};
  const auto interval = tasks::mean_interval(values);
  json["low"] = interval ? Json(interval->low) : Json();
  json["high"] = interval ? Json(interval->high) : Json();
  return json;
}

Json ratio(std::int64_t part, std::int64_t all) {
  return all == 0 ? Json() : Json(static_cast<double>(part) / static_cast<double>(all));
}

/// The functions head_rows(), place_rows() and length_rows() make the rows of the printed tables
/// and of the JSON.
std::vector<Json> head_rows(const AttentionMeasures& measures) {
  const auto entropies = entropies_by_head(measures);
  std::vector<Json> rows;
  for (const HeadScore& head : measures.heads) {
    rows.push_back({{"layer", head.layer},
                    {"head", head.head},
                    {"score", head.score()},
                    {"sum", head.sum()},
                    {"rows", head.rows.count},
                    {"entropy", entropies.at({head.layer, head.head})}});
  }
  return rows;
}

std::vector<Json> place_rows(const AttentionMeasures& measures) {
  std::vector<Json> rows;
  for (const PlaceErrors& place : measures.places) {
    rows.push_back({{"place", place.place},
                    {"count", place.count},
                    {"wrong", place.wrong},
                    {"share", ratio(place.wrong, place.count)}});
  }
  return rows;
}

std::vector<Json> length_rows(const AttentionMeasures& measures) {
  std::vector<Json> rows;
  for (const LengthScores& at : measures.lengths) {
    const tasks::Interval exact =
        tasks::wilson(static_cast<double>(at.exact), static_cast<double>(at.samples));
    const auto& score = at.attention_score;
    rows.push_back({{"shortest", at.shortest},
                    {"longest", at.longest},
                    {"samples", at.samples},
                    {"exact", ratio(at.exact, at.samples)},
                    {"exact_low", exact.low},
                    {"exact_high", exact.high},
                    {"outputs", ratio(at.right, at.asked)},
                    {"attention_score", score.count > 0 ? Json(score.mean) : Json()}});
  }
  return rows;
}

void print(std::ostream& out, const std::string& title, std::vector<Report::Column> columns,
           const std::vector<Json>& rows, std::size_t most) {
  out << '\n' << title << '\n';
  Report report(std::move(columns));
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) report.add(rows[i]);
  report.print(out, false);
}

std::string score_lines(const AttentionMeasures& m) {
  return text("attention score  ", percent_of(m.attention_score), ", of ", m.attention_score.count,
              " samples\n  right tokens   ", percent_of(m.when_right), ", of ", m.when_right.count,
              "\n  wrong tokens   ", percent_of(m.when_wrong), ", of ", m.when_wrong.count,
              "\n  Welch's test   ", text_of(m.test), "\nentropy of heads ",
              decimal(m.entropy.heads.mean, 3), " nats, deviation ",
              decimal(m.entropy.heads.deviation(), 3), ", from ", decimal(m.entropy.least, 3),
              " to ", decimal(m.entropy.greatest, 3), ", of ", m.entropy.heads.count, " heads\n");
}

/// The squares of a heat map to be outlined: the entries (row, column) of a sample's reference
/// attention in the first `tokens` rows.
std::vector<std::pair<std::int64_t, std::int64_t>> outlined(const tasks::Task& task,
                                                            const tasks::Sample& sample,
                                                            std::int64_t tokens) {
  std::vector<std::pair<std::int64_t, std::int64_t>> squares;
  for (const tasks::ReferenceRow& row : task.reference(sample)) {
    for (const std::int32_t column : row.columns) {
      if (row.row < tokens) squares.emplace_back(row.row, column);
    }
  }
  return squares;
}

/// A heat map without values whose rows and columns are the tokens of a sample. The squares of the
/// task's reference attention are outlined.
html::HeatMap empty_map(const tasks::Task& task, const tasks::Sample& sample,
                        std::span<const std::int32_t> tokens) {
  const auto count = std::ssize(tokens);
  return {.rows = labels(task, tokens),
          .columns = labels(task, tokens),
          .height = count,
          .width = count,
          .outlined = outlined(task, sample, count)};
}

/// The attention weights of the heads in the list `wanted`, in one sequence.
std::map<HeadKey, std::vector<double>> matrices_of(nn::Decoder& model,
                                                   std::span<const HeadScore> wanted,
                                                   const nn::Input& sequence) {
  std::map<HeadKey, std::vector<double>> all;
  for_each_mixer(
      model, model.look(sequence),
      [&](std::int64_t layer, std::int64_t first, const nn::Mixer& mixer,
          const nn::MixerView& view) {
        for (std::int64_t h = 0; h < mixer.heads; ++h) {
          const bool shown = std::ranges::any_of(wanted, [&](const HeadScore& head) {
            return head.layer == layer && head.head == first + h;
          });
          if (!shown) continue;
          all[{layer, first + h}] =
              attention_of(model, layer, mixer, view, sequence.segments, 0, h).to_doubles();
        }
      });
  return all;
}

html::Series line(const std::string& name, bool dashed = false) {
  return {.name = name, .points = {}, .dashed = dashed, .marks = true};
}

std::string errors_chart(const AttentionMeasures& measures) {
  html::LineChart chart{
      .x_label = "position in the answer, from 0", .y_label = "share wrong", .series = {}};
  chart.y_low = 0;
  html::Series errors = line("wrong tokens");
  for (const PlaceErrors& place : measures.places) {
    const auto wrong = static_cast<double>(place.wrong), count = static_cast<double>(place.count);
    const tasks::Interval interval = tasks::wilson(wrong, count);
    errors.points.push_back(
        {static_cast<double>(place.place), wrong / count, interval.low, interval.high});
  }
  chart.series.push_back(std::move(errors));
  return html::figure(
      html::line_chart(chart),
      "Share of wrong predictions at each position of the answer under teacher forcing, with "
      "Wilson's 95% interval.");
}

std::string length_chart(const AttentionMeasures& measures) {
  html::LineChart chart{
      .x_label = "length of the sample in tokens", .y_label = "share", .series = {}};
  chart.y_low = 0;
  chart.y_high = 1;
  html::Series exact = line("correct answers"), outputs = line("correct tokens"),
               score = line("attention score", true);
  for (const LengthScores& at : measures.lengths) {
    const double x = static_cast<double>(at.shortest + at.longest) / 2;
    const auto right = static_cast<double>(at.exact), count = static_cast<double>(at.samples);
    const tasks::Interval interval = tasks::wilson(right, count);
    exact.points.push_back({x, right / count, interval.low, interval.high});
    outputs.points.push_back({x, static_cast<double>(at.right) / static_cast<double>(at.asked)});
    if (at.attention_score.count > 0) score.points.push_back({x, at.attention_score.mean});
  }
  chart.series = {std::move(exact), std::move(outputs), std::move(score)};
  return html::figure(html::line_chart(chart), "Shares by length of the sample.");
}

std::string heads_table(const AttentionMeasures& measures) {
  const auto entropies = entropies_by_head(measures);
  std::vector<std::vector<std::string>> rows;
  for (const HeadScore& head : measures.heads) {
    if (rows.size() == heads_listed) break;
    rows.push_back({name_of(head), decimal(head.score(), 4), decimal(head.sum(), 2),
                    decimal(entropies.at({head.layer, head.head}), 3)});
  }
  return html::table({"", "mean attention on the reference", "its sum", "entropy, nats"}, rows) +
         html::paragraph(text(rows.size(), " of ", measures.heads.size(), " heads."));
}

}  // namespace

Json to_json(const AttentionMeasures& m) {
  Json json{{"samples", m.samples},
            {"attention_score", to_json(m.attention_score)},
            {"right", to_json(m.when_right)},
            {"wrong", to_json(m.when_wrong)},
            {"welch", Json()},
            {"entropy", Json{{"mean", m.entropy.heads.mean},
                             {"deviation", m.entropy.heads.deviation()},
                             {"least", m.entropy.least},
                             {"greatest", m.entropy.greatest},
                             {"heads", m.entropy.heads.count}}},
            {"heads", head_rows(m)},
            {"places", place_rows(m)},
            {"lengths", length_rows(m)}};
  if (m.test) {
    json["welch"] = Json{{"t", m.test->t}, {"freedom", m.test->freedom}, {"p", m.test->p}};
  }
  return json;
}

std::string percent_of(const tasks::Moments& values) {
  if (values.count == 0) return "none";
  std::string all = decimal(100 * values.mean, 2);
  if (const auto interval = tasks::mean_interval(values)) {
    all += text(" [", decimal(100 * interval->low, 2), ", ", decimal(100 * interval->high, 2), "]");
  }
  return all + " %";
}

std::string text_of(const std::optional<tasks::Welch>& test) {
  if (!test) return "none: requires at least two right and two wrong tokens with different scores";
  char p[32];
  std::snprintf(p, sizeof p, "%.2g", test->p);
  return text("t = ", decimal(test->t, 2), " with ", decimal(test->freedom, 1),
              " degrees of freedom, p = ", p);
}

std::string to_text(const AttentionMeasures& m) {
  std::ostringstream out;
  constexpr std::size_t all = ~std::size_t{0};
  out << score_lines(m);
  print(out, "heads by their attention on the reference",
        {{"layer", "layer"},
         {"head", "head"},
         {"score", "mean", "%.4f"},
         {"sum", "sum", "%.2f"},
         {"entropy", "entropy", "%.3f"}},
        head_rows(m), heads_printed);
  print(out, "errors by place in the answer",
        {{"place", "place"}, {"count", "of"}, {"wrong", "wrong"}, {"share", "share", "%.4f"}},
        place_rows(m), all);
  print(out, "by tokens of the sample",
        {{"shortest", "from"},
         {"longest", "to"},
         {"samples", "samples"},
         {"exact", "exact", "%.4f"},
         {"exact_low", "95% from", "%.4f"},
         {"exact_high", "to", "%.4f"},
         {"outputs", "tokens", "%.4f"},
         {"attention_score", "attention score", "%.4f"}},
        length_rows(m), all);
  return out.str();
}

std::string head_picture(nn::Decoder& model, const tasks::Task& task, const tasks::Sample& sample,
                         const HeadScore& head, std::size_t most, const std::string& title) {
  const auto tokens = std::span(sample.tokens).first(std::min(most, sample.tokens.size()));
  html::HeatMap map = empty_map(task, sample, tokens);
  const nn::Input sequence = beginning_for(model, task, sample, tokens.size());
  map.values = matrices_of(model, {&head, 1}, sequence).at({head.layer, head.head});
  return html::figure(html::heat_map(map), title);
}

Sections attention_sections(const AttentionMeasures& measures, nn::Decoder& model,
                            const tasks::Task& task, const tasks::Sample& sample,
                            std::size_t most) {
  const auto tokens = std::span(sample.tokens).first(std::min(most, sample.tokens.size()));
  const auto count = std::ssize(tokens);
  const nn::Input sequence = beginning_for(model, task, sample, tokens.size());
  html::HeatMap map = empty_map(task, sample, tokens);
  const auto picture = [&](std::vector<double> values, double full, const std::string& title) {
    map.values = std::move(values);
    map.full = full;
    return html::figure(html::heat_map(map), title);
  };
  std::vector<double> reference(static_cast<std::size_t>(count * count));
  for (const auto& [row, column] : map.outlined) {
    reference[static_cast<std::size_t>(row * count + column)] = 1;
  }
  const std::vector<double> rollout = rollout_of(model, sequence).to_doubles();
  // Maximum of the rollout over the rows of tokens for which the task has a reference attention.
  double largest = 0;
  for (const auto& [row, column] : map.outlined) {
    const auto begin = rollout.begin() + row * count;
    largest = std::max(largest, *std::max_element(begin, begin + count));
  }
  // `largest` is 0 if the task has no reference attention for any of the shown tokens.
  if (largest == 0) largest = 1;

  Sections all;
  all.emplace_back(
      "Attention on the reference",
      html::code(score_lines(measures)) +
          html::paragraph(
              "The attention score of a predicted token is the share of its attention "
              "rollout that lies on the tokens of the task's reference. Brackets contain "
              "95% intervals. The test treats tokens as independent, although tokens of "
              "one sample are correlated."));
  all.emplace_back("Rollout and reference",
                   html::colour_scale(largest, "share in the rollout") +
                       side_by_side(picture(rollout, largest, "Attention rollout") +
                                    picture(std::move(reference), 1, "Reference")));
  const auto drawn = std::span(measures.heads).first(std::min(heads_drawn, measures.heads.size()));
  const auto matrices = matrices_of(model, drawn, sequence);
  std::string maps;
  for (const HeadScore& head : drawn) {
    maps += picture(matrices.at({head.layer, head.head}), 1,
                    text(name_of(head), ": ", decimal(head.score(), 4)));
  }
  all.emplace_back("Heads by their attention on the reference",
                   heads_table(measures) +
                       html::colour_scale(1, "weight of a column's token for a row's") +
                       side_by_side(maps));
  all.emplace_back("Errors", errors_chart(measures));
  all.emplace_back("Accuracy by length", length_chart(measures));
  return all;
}

}  // namespace longhand::app
