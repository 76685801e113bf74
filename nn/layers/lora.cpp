#include "nn/layers/lora.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/low_rank.h"
#include "core/commas.h"
#include "core/contract/matmul.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {
namespace {

constexpr std::array<std::string_view, 7> names{"query", "key", "value", "output",
                                                "gate",  "up",  "down"};

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& name : list) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

bool LoraOptions::has(std::string_view target) const {
  return rank > 0 && std::ranges::count(targets, target) > 0;
}

std::span<const std::string_view> lora_targets() { return names; }

std::vector<std::string> parse_lora_targets(std::string_view list) {
  std::vector<std::string> found;
  for (const std::string_view name : at_commas(list)) {
    LONGHAND_CHECK(std::ranges::count(names, name) > 0, "lora targets: expected ", listed(names),
                   ", got ", quote(name));
    if (std::ranges::count(found, name) == 0) found.emplace_back(name);
  }
  return found;
}

void LoraOptions::declare(Options& options) {
  options.integer(
      "lora", rank, 0, 1 << 12,
      "rank of the LoRA matrices; by default, only these matrices are trained; 0: no LoRA", "RANK");
  options.number("lora_alpha", alpha, 0, 1e6,
                 "LoRA's alpha; the product of the LoRA matrices is multiplied by alpha / rank; 0: "
                 "alpha = rank");
  options.bind("lora_targets", targets, joined, parse_lora_targets, "LIST",
               "projections to which LoRA is applied, separated by commas: query, key, value, "
               "output, gate, up, down");
}

Lora::Lora(const Scope& scope, std::int64_t in, const Projected& part, const LoraOptions& options)
    : projected(part), scale(options.scale()) {
  const double deviation = 1 / std::sqrt(3.0 * static_cast<double>(in));
  a = scope.add("a", {options.rank, in}, normal(deviation), true, true);
  b = scope.add("b", {part.count, options.rank}, constant(0), true, true);
}

Var Lora::operator()(const Var& y, const Var& x) const {
  return low_rank_in_place(y, x, a, b, {.first_column = projected.first, .scale = scale});
}

void Lora::merge_into(const Parameter& weight) const {
  weight.value().backend()(Matmul{.a = b.value(),
                                  .b = a.value(),
                                  .alpha = scale,
                                  .c = weight.value().slice(projected.first, projected.count),
                                  .beta = 1,
                                  .math = Math::exact});
}

}  // namespace longhand::nn
