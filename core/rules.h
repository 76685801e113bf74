#pragma once

#include <cstdint>
#include <string_view>

#include "core/rules/entmax.h"
#include "core/rules/softmax.h"
#include "core/rules/stick_breaking.h"
#include "core/rules/tra.h"

/// The rules by name, for code that chooses one at run time.
namespace longhand {

enum class Rule : std::uint8_t { softmax, stick, tra, entmax };

constexpr std::string_view name_of(Rule rule) {
  constexpr std::string_view names[] = {"softmax", "stick", "tra", "entmax"};
  return names[static_cast<std::size_t>(rule)];
}
/// True if a query sees only the keys before its own position.
constexpr bool strict(Rule rule) { return rule == Rule::stick; }
/// True if the keys of a query are processed from the nearest to the first.
constexpr bool leftward(Rule rule) { return rule == Rule::stick || rule == Rule::tra; }
/// The factor of a score before a rule's formulas.
constexpr float unit_of(Rule rule) {
  return rule == Rule::entmax ? rules::Entmax::unit : rules::per_bit;
}

}  // namespace longhand
