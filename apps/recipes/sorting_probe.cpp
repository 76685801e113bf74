#include "apps/recipes/sorting_probe.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "apps/run/probe.h"
#include "core/error.h"

namespace longhand::app {
namespace {

double lead_of(std::span<const double> row, const Tokens& expected) {
  const double greatest = *std::ranges::max_element(row);
  double least = greatest, other = -std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (std::ranges::count(expected, static_cast<std::int32_t>(k)) > 0) {
      least = std::min(least, row[k]);
    } else {
      other = std::max(other, row[k]);
    }
  }
  return greatest > 0 ? (least - other) / greatest : -1;
}

/// Tests a statement of Theorem 5.1 at the positions `begin` to `end` - 1 and adds the results to
/// `result`. Row i of `projection` contains one number per token: the dot product of the residual
/// stream at position i with the token's vector. The statement holds if these products are largest
/// for the tokens that `expected(i)` returns.
void measure(Characteristic& result, const Tensor& projection, std::size_t begin, std::size_t end,
             const std::function<Tokens(std::size_t)>& expected) {
  const std::vector<double> values = projection.to_doubles();
  const auto columns = static_cast<std::size_t>(projection.columns());
  for (std::size_t i = begin; i < end; ++i) {
    const double lead = lead_of(std::span(values).subspan(i * columns, columns), expected(i));
    ++result.positions;
    if (lead > 0) ++result.held;
    result.least_lead = std::min(result.least_lead, lead);
  }
}

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
  LONGHAND_CHECK(model.config().layers == 2,
                 "tests of the sorting model: expected a model with 2 layers, got ",
                 model.config().layers);
  const Bases bases = bases_of(model);
  std::vector<Characteristic> all{{"copy"}, {"minimum"}, {"identity and successor"}, {"answer"}};
  for (const Tokens& input : inputs) {
    const std::size_t n = input.size();
    const Tokens tokens = with_answer(input, delimiter);
    Tokens sorted = input;
    std::ranges::sort(sorted);
    const auto own = [&](std::size_t i) { return Tokens{tokens[i]}; };
    const auto pair = [&](std::size_t i) {
      const auto above = std::ranges::upper_bound(sorted, tokens[i]);
      return above == sorted.end() ? own(i) : Tokens{tokens[i], *above};
    };
    const auto next = [&](std::size_t i) { return Tokens{sorted[i - n]}; };
    const auto at = project(
        model, {.tokens = tokens, .lengths = {static_cast<std::int32_t>(tokens.size())}}, bases);
    measure(all[0], at[0].encoder, 0, n, own);
    measure(all[1], at[0].decoder, n, n + 1, next);
    measure(all[2], at[2].decoder, n + 1, 2 * n, pair);
    measure(all[3], at[3].decoder, n, 2 * n, next);
  }
  return all;
}

}  // namespace longhand::app
