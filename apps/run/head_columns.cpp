#include "apps/run/head_columns.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/commas.h"
#include "core/error.h"
#include "core/quote.h"
#include "nn/training/parts.h"

namespace longhand::app {
namespace {

bool makes_scores(const nn::Projected& part) { return part.name == "query" || part.name == "key"; }

bool has_scores(const nn::Mixer& mixer) {
  return std::ranges::any_of(mixer.projected(), makes_scores);
}

/// The rows of a layer's projection that compute some entries of the queries and keys of its heads.
/// `columns` lists the indices of these entries, such as "0,60..63".
std::vector<nn::Rows> rows_of(const nn::Mixing& mixing, std::string_view columns) {
  std::set<std::int64_t> rows;
  for (std::size_t i = 0; i < mixing.mixers().size(); ++i) {
    const nn::Mixer& mixer = *mixing.mixers()[i];
    if (!has_scores(mixer)) continue;
    const std::vector<std::int64_t> entries = parse_head_columns(columns, mixer.width);
    for (const nn::Projected& part : mixer.projected()) {
      if (!makes_scores(part)) continue;
      const std::int64_t first = mixing.places()[i].projection + part.first;
      for (std::int64_t head = 0; head < part.count; head += mixer.width) {
        for (const std::int64_t entry : entries) rows.insert(first + head + entry);
      }
    }
  }
  std::vector<nn::Rows> ranges;
  for (const std::int64_t row : rows) {
    if (!ranges.empty() && ranges.back().first + ranges.back().count == row) {
      ++ranges.back().count;
    } else {
      ranges.push_back({row, 1});
    }
  }
  return ranges;
}

}  // namespace

std::vector<std::int64_t> parse_head_columns(std::string_view text, std::int64_t width) {
  const auto integer = [&](std::string_view digits) {
    std::int64_t number = -1;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    LONGHAND_CHECK(error == std::errc() && stop == end,
                   "columns: expected \"last\" or numbers such as 0,60..63, got ", quote(text));
    LONGHAND_CHECK(number >= 0 && number < width, "columns: expected numbers from 0 to ", width - 1,
                   ", because each head has a width of ", width, ", got ", number);
    return number;
  };
  std::set<std::int64_t> columns;
  for (const std::string_view item : at_commas(text)) {
    const std::size_t dots = item.find("..");
    if (item == "last") {
      columns.insert(width - 1);
    } else {
      const std::int64_t first = integer(item.substr(0, dots));
      const std::int64_t last =
          dots == std::string_view::npos ? first : integer(item.substr(dots + 2));
      LONGHAND_CHECK(first <= last, "columns: expected an ascending range, got ", quote(item));
      for (std::int64_t c = first; c <= last; ++c) columns.insert(c);
    }
  }
  return {columns.begin(), columns.end()};
}

void check_head_columns(const nn::DecoderConfig& model, std::string_view columns) {
  bool any = false;
  for (const nn::MixerList& mixers : model.mixers) {
    for (const nn::AnyMixer& mixer : mixers) {
      if (!has_scores(*mixer)) continue;
      parse_head_columns(columns, mixer->width);
      any = true;
    }
  }
  LONGHAND_CHECK(any && model.layers > 0,
                 "columns: expected a layer with heads that have queries or keys, got ",
                 model.layers, " layers with the heads ", nn::text_of(model.mixers));
}

void train_head_columns(const nn::Decoder& model, std::string_view columns) {
  std::vector<nn::Parameter> learning;
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    const nn::Mixing& mixing = model.block(layer).mixing;
    const std::vector<nn::Rows> rows = rows_of(mixing, columns);
    if (rows.empty()) continue;
    mixing.projection.weight.learn_only(rows);
    learning.push_back(mixing.projection.weight);
  }
  nn::train_only(model.parameters(), learning);
}

}  // namespace longhand::app
