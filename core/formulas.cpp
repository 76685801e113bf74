#include "core/formulas.h"

#include <array>

namespace longhand {
namespace {

template <class... F>
constexpr std::array<std::string_view, sizeof...(F)> names_in(TypeList<F...>) {
  return {F::name...};
}
constexpr auto names = names_in(Formulas{});

}  // namespace

std::string_view name_of(Activation activation) {
  return names[static_cast<std::size_t>(activation)];
}

std::optional<Activation> activation_from_name(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Activation>(i);
  }
  return std::nullopt;
}

}  // namespace longhand
