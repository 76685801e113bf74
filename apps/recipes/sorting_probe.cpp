#include "apps/recipes/sorting_probe.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "autograd/matmul.h"
#include "core/error.h"

namespace longhand::app {
namespace {

using States = std::map<std::string, Tensor>;

/// The states that the characteristics speak of, in one pass over the sequence.
States states_of(nn::Decoder& model, const Tokens& tokens) {
  States states;
  struct Restore {
    nn::Decoder& model;
    decltype(model.watch) before;
    ~Restore() { model.watch = before; }
  } restore{model, model.watch};
  model.watch = [&](const std::string& name, const Tensor& x) {
    if (name == "layers.0.attention" || name == "layers.1.attention" || name == "layers.1.mlp") {
      states[name] = x;
    }
  };
  const std::vector<std::int32_t> length{static_cast<std::int32_t>(tokens.size())};
  model.features(nn::make_input(model.backend(), tokens, length));
  return states;
}

/// States against the rows of a table: [tokens, vocabulary]
std::vector<double> project(const nn::Decoder& model, const Tensor& states, const char* table) {
  const nn::Parameter* const basis = model.parameters().find(table);
  LONGHAND_CHECK(basis, "characteristics: expected a model with the parameter ", table,
                 ", got none of that name");
  return matmul(states, *basis, {.transpose_b = true}).value().to_doubles();
}

constexpr const char* encoder = "gpt_neox.embed_in.weight";
constexpr const char* decoder = "embed_out.weight";

/// Of one sequence, what is expected where.
class Sequence {
 public:
  Sequence(nn::Decoder& model, const Tokens& input, std::int32_t delimiter)
      : sorted_(input),
        tokens_(with_answer(input, delimiter)),
        states_(states_of(model, tokens_)),
        model_(model) {
    std::ranges::sort(sorted_);
  }

  void add_to(std::vector<Characteristic>& all) const {
    const std::size_t n = sorted_.size();
    const auto own = [&](std::size_t i) { return Tokens{tokens_[i]}; };
    const auto least = [&](std::size_t) { return Tokens{sorted_.front()}; };
    const auto pair = [&](std::size_t i) {
      const auto above = std::ranges::upper_bound(sorted_, tokens_[i]);
      return above == sorted_.end() ? own(i) : Tokens{tokens_[i], *above};
    };
    const auto next = [&](std::size_t i) { return Tokens{sorted_[i - n]}; };
    measure(all[0], "layers.0.attention", encoder, 0, n, own);
    measure(all[1], "layers.0.attention", decoder, n, n + 1, least);
    measure(all[2], "layers.1.attention", decoder, n + 1, 2 * n, pair);
    measure(all[3], "layers.1.mlp", decoder, n, 2 * n, next);
  }

 private:
  void measure(Characteristic& result, const std::string& state, const char* basis,
               std::size_t begin, std::size_t end,
               const std::function<Tokens(std::size_t)>& expected) const {
    const Tensor& all = states_.at(state);
    const auto first = static_cast<std::int64_t>(begin);
    const auto count = static_cast<std::int64_t>(end) - first;
    if (count == 0) return;
    const std::vector<double> values = project(model_, all.slice(first, count), basis);
    const std::size_t columns = values.size() / static_cast<std::size_t>(count);
    for (std::size_t i = begin; i < end; ++i) {
      const double lead =
          lead_of(std::span(values).subspan((i - begin) * columns, columns), expected(i));
      ++result.positions;
      if (lead > 0) ++result.held;
      result.least_lead = std::min(result.least_lead, lead);
    }
  }

  static double lead_of(std::span<const double> row, const Tokens& expected) {
    const double greatest = *std::ranges::max_element(row);
    double least = greatest, other = row.front();
    bool any = false;
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (std::ranges::count(expected, static_cast<std::int32_t>(k)) > 0) {
        least = std::min(least, row[k]);
      } else {
        other = any ? std::max(other, row[k]) : row[k];
        any = true;
      }
    }
    return greatest > 0 ? (least - other) / greatest : -1;
  }

  Tokens sorted_, tokens_;
  States states_;
  nn::Decoder& model_;
};

}  // namespace

Tokens with_answer(const Tokens& input, std::int32_t delimiter) {
  Tokens tokens = input;
  tokens.push_back(delimiter);
  tokens.insert(tokens.end(), input.begin(), input.end());
  std::sort(tokens.end() - static_cast<std::ptrdiff_t>(input.size()), tokens.end());
  tokens.pop_back();
  return tokens;
}

std::vector<Characteristic> characteristics(nn::Decoder& model, std::span<const Tokens> inputs,
                                            std::int32_t delimiter) {
  std::vector<Characteristic> all{{"copy"}, {"minimum"}, {"successor"}, {"answer"}};
  for (const Tokens& input : inputs) Sequence(model, input, delimiter).add_to(all);
  return all;
}

std::vector<double> identity_and_successor(nn::Decoder& model, const Tokens& tokens) {
  return project(model, states_of(model, tokens).at("layers.1.attention"), decoder);
}

}  // namespace longhand::app
