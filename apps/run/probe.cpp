#include "apps/run/probe.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "apps/html/page.h"
#include "apps/html/stems.h"
#include "apps/run/batches.h"
#include "apps/run/inspection.h"
#include "autograd/matmul.h"
#include "core/contract/gather.h"
#include "core/error.h"

namespace longhand::app {
namespace {

constexpr std::string_view place_names[] = {"before the MLP", "after the MLP"};

/// The product of x and the transpose of `basis`, in the data type of `basis`.
Tensor products(const Tensor& x, const Tensor& basis) {
  return matmul(Var(x), Var(basis), {.transpose_b = true, .out = basis.dtype()}).value();
}

std::vector<double> lengths_of(const Tensor& rows) {
  const std::vector<double> values = rows.to_doubles();
  const auto width = static_cast<std::size_t>(rows.columns());
  std::vector<double> lengths;
  for (std::size_t begin = 0; begin < values.size(); begin += width) {
    double sum = 0;
    for (std::size_t i = begin; i < begin + width; ++i) sum += values[i] * values[i];
    lengths.push_back(std::sqrt(sum));
  }
  return lengths;
}

Cosines cosines(const Tensor& a, const Tensor& b, bool same) {
  const std::vector<double> dots = products(a, b).to_doubles();
  const std::vector<double> as = lengths_of(a), bs = lengths_of(b);
  Cosines result;
  double count = 0;
  for (std::size_t i = 0; i < as.size(); ++i) {
    for (std::size_t j = same ? i + 1 : 0; j < bs.size(); ++j) {
      if (as[i] == 0 || bs[j] == 0) continue;
      const double cosine = std::abs(dots[i * bs.size() + j]) / (as[i] * bs[j]);
      result.mean += cosine;
      result.root_mean_square += cosine * cosine;
      result.largest = std::max(result.largest, cosine);
      count += 1;
    }
  }
  if (count == 0) return {};
  result.mean /= count;
  result.root_mean_square = std::sqrt(result.root_mean_square / count);
  return result;
}

/// The rows of x with the given indices.
Tensor rows_of(const Tensor& x, std::span<const std::int32_t> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const Tensor y(x.backend(), {count, x.columns()}, x.dtype());
  x.backend()(Embedding{.table = x, .ids = Tensor::from(x.backend(), {count}, rows), .y = y});
  return y;
}

std::string stream_name(std::int64_t layer, StreamPlace place) {
  return text("blocks.", layer, place == StreamPlace::before_mlp ? ".mixing" : ".feed_forward");
}

std::string figure_text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4f", value);
  return buffer;
}

/// Indices of the two largest values.
std::pair<std::size_t, std::size_t> two_largest(std::span<const double> values) {
  std::size_t first = values[0] >= values[1] ? 0 : 1, second = 1 - first;
  for (std::size_t i = 2; i < values.size(); ++i) {
    if (values[i] > values[first]) {
      second = first;
      first = i;
    } else if (values[i] > values[second]) {
      second = i;
    }
  }
  return {first, second};
}

/// Counts how often the two mechanisms of struct Mechanisms, `minimum` and `successor`, are found
/// in samples that are read as one batch.
void count_mechanisms(nn::Decoder& model, const tasks::Task& task, const Tensor& decoder,
                      std::span<const tasks::Sample> samples, Mechanisms& counts) {
  const nn::Batch batch = batch_of(samples, task);
  const auto seen = watched(model, nn::make_input(model.backend(), batch), ".mixing");
  // `marks` lists the rows of the batch at the mark ⊥, which separates input and output of a
  // sample. `numbers` lists the rows at those output numbers for which the input contains a greater
  // number.
  std::vector<std::int32_t> marks, numbers;
  std::vector<std::int32_t> least, own, next;
  std::int32_t begin = 0;
  for (const tasks::Sample& sample : samples) {
    const std::int32_t mark = sample.asked.front();
    const auto tokens = std::span(sample.tokens);
    const auto output = tokens.subspan(static_cast<std::size_t>(mark) + 1);
    marks.push_back(begin + mark);
    least.push_back(output[0]);
    for (std::size_t i = 0; i < output.size(); ++i) {
      const auto greater = std::ranges::find_if(
          output.subspan(i), [&](std::int32_t number) { return number > output[i]; });
      if (greater == output.subspan(i).end()) break;
      numbers.push_back(begin + mark + 1 + static_cast<std::int32_t>(i));
      own.push_back(output[i]);
      next.push_back(*greater);
    }
    begin += static_cast<std::int32_t>(tokens.size());
  }
  const auto classes = static_cast<std::size_t>(decoder.rows());
  const auto at_marks =
      products(rows_of(seen.at(stream_name(0, StreamPlace::before_mlp)), marks), decoder)
          .to_doubles();
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const auto row = std::span(at_marks).subspan(i * classes, classes);
    counts.minimum_hits += std::ranges::max_element(row) - row.begin() == least[i];
  }
  counts.minimum_count += std::ssize(marks);
  if (numbers.empty()) return;
  const auto at_numbers =
      products(rows_of(seen.at(stream_name(1, StreamPlace::before_mlp)), numbers), decoder)
          .to_doubles();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [first, second] = two_largest(std::span(at_numbers).subspan(i * classes, classes));
    const auto a = static_cast<std::size_t>(own[i]), b = static_cast<std::size_t>(next[i]);
    counts.successor_hits += (first == a && second == b) || (first == b && second == a);
  }
  counts.successor_count += std::ssize(numbers);
}

}  // namespace

Bases bases_of(const nn::Decoder& model, std::int64_t head) {
  return {model.embedding().weight.value(), model.output(head).weight.value()};
}

std::vector<Projection> project(nn::Decoder& model, const nn::Batch& batch, const Bases& bases) {
  const auto seen = watched(model, nn::make_input(model.backend(), batch), "blocks.");
  std::vector<Projection> all;
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    for (const StreamPlace place : {StreamPlace::before_mlp, StreamPlace::after_mlp}) {
      const Tensor& stream = seen.at(stream_name(layer, place));
      all.push_back(
          {layer, place, products(stream, bases.encoder), products(stream, bases.decoder)});
    }
  }
  return all;
}

Cosines cosines_within(const Tensor& rows) { return cosines(rows, rows, true); }

Cosines cosines_between(const Tensor& rows, const Tensor& others) {
  return cosines(rows, others, false);
}

double spread_of_lengths(const Tensor& rows) {
  const std::vector<double> lengths = lengths_of(rows);
  double sum = 0, squares = 0;
  for (const double length : lengths) {
    sum += length;
    squares += length * length;
  }
  const double mean = sum / static_cast<double>(lengths.size());
  const double variance = squares / static_cast<double>(lengths.size()) - mean * mean;
  return mean == 0 ? 0 : std::sqrt(std::max(0.0, variance)) / mean;
}

Mechanisms sorting_mechanisms(nn::Decoder& model, const tasks::Task& task,
                              const EvaluationOptions& options) {
  LONGHAND_CHECK(task.head_name(0) == "sort", "probe: expected a run of the task \"sorting\"");
  LONGHAND_CHECK(model.config().layers >= 2, "probe: expected a model with at least 2 layers, got ",
                 model.config().layers);
  const Bases bases = bases_of(model);
  Mechanisms counts;
  for_samples(task, options, [&](std::span<const tasks::Sample> samples) {
    count_mechanisms(model, task, bases.decoder, samples, counts);
  });
  return counts;
}

std::string projection_pictures(nn::Decoder& model, const tasks::Task& task,
                                std::span<const std::int32_t> tokens, std::int64_t position,
                                std::int64_t named) {
  LONGHAND_CHECK(position >= 0 && position < std::ssize(tokens),
                 "probe: expected a position from 0 to ", std::ssize(tokens) - 1, ", got ",
                 position);
  const nn::Batch batch{.tokens = {tokens.begin(), tokens.end()},
                        .lengths = {static_cast<std::int32_t>(tokens.size())}};
  std::string content;
  for (const Projection& projection : project(model, batch, bases_of(model))) {
    for (const bool encoder : {true, false}) {
      const Tensor& all = encoder ? projection.encoder : projection.decoder;
      const std::vector<double> values = all.to_doubles();
      const auto row = values.begin() + position * all.columns();
      html::Stems stems{.values = {row, row + all.columns()}, .names = {}, .named = named};
      for (std::int64_t i = 0; i < all.columns(); ++i) {
        stems.names.push_back(token_label(task.vocabulary(), static_cast<std::int32_t>(i)));
      }
      content += html::figure(html::stems(stems),
                              text("Layer ", projection.layer, ", ",
                                   place_names[static_cast<std::size_t>(projection.place)],
                                   ", on the ", encoder ? "encoder" : "decoder", " basis"));
    }
  }
  return "<div style=\"display:grid;grid-template-columns:repeat(auto-fill,minmax(20rem,1fr));"
         "gap:0 1rem\">" +
         content + "</div>\n";
}

std::string bases_table(const Bases& bases) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, const Cosines& c, const std::string& spread) {
    rows.push_back({name, figure_text(c.mean), figure_text(c.root_mean_square),
                    figure_text(c.largest), spread});
  };
  add("encoder basis", cosines_within(bases.encoder),
      figure_text(spread_of_lengths(bases.encoder)));
  add("decoder basis", cosines_within(bases.decoder),
      figure_text(spread_of_lengths(bases.decoder)));
  add("encoder with decoder", cosines_between(bases.encoder, bases.decoder), "");
  const double random = 1 / std::sqrt(static_cast<double>(bases.encoder.columns()));
  return html::table({"", "mean |cos|", "root mean square", "largest", "spread of lengths"}, rows) +
         html::paragraph(text("Vectors of width ", bases.encoder.columns(),
                              "; independent random directions have a root mean square of ",
                              figure_text(random), ". Spread: standard deviation over mean."));
}

}  // namespace longhand::app
