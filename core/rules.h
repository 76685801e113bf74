#pragma once

#include <cstdint>
#include <string_view>

#include "core/rules/entmax.h"
#include "core/rules/softmax.h"
#include "core/rules/stick_breaking.h"
#include "core/rules/tra.h"

/// An enumeration of the rules, for code that chooses one at run time.
namespace longhand {

enum class Rule : std::uint8_t { softmax, stick, tra, entmax };

constexpr std::string_view name_of(Rule rule) {
  constexpr std::string_view names[] = {"softmax", "stick", "tra", "entmax"};
  return names[static_cast<std::size_t>(rule)];
}
/// Calls f with the struct of a rule's formulas, such as rules::Softmax.
template <class F>
constexpr auto with_formulas(Rule rule, const F& f) {
  switch (rule) {
    case Rule::stick:
      return f(rules::Stick{});
    case Rule::tra:
      return f(rules::Tra{});
    case Rule::entmax:
      return f(rules::Entmax{});
    case Rule::softmax:
      break;
  }
  return f(rules::Softmax{});
}

// Members of the struct of a rule's formulas (core/rules/rule.h). strict means !own_key.
constexpr bool strict(Rule rule) {
  return with_formulas(rule, [](auto formulas) { return !formulas.own_key; });
}
constexpr bool leftward(Rule rule) {
  return with_formulas(rule, [](auto formulas) { return formulas.leftward; });
}
constexpr float unit_of(Rule rule) {
  return with_formulas(rule, [](auto formulas) { return formulas.unit; });
}

}  // namespace longhand
