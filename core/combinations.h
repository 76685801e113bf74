#pragma once

#include "core/formulas.h"

/// The elementwise formulas with two operands. They are templates on the value type, as in
/// core/formulas.h. A new formula needs a struct in this file, a name in the enum Combination and
/// an entry in the list Combinations.
namespace longhand {

enum class Combination : std::uint8_t {
  sum,
  difference,
  product,
  quotient,
  largest,
  smallest,
  less,
  less_or_equal,
  equal,
  kept,
  dropped,
};

namespace combination {

struct Sum {
  static constexpr auto kind = Combination::sum;
  template <class V>
  static constexpr V value(V a, V b) {
    return a + b;
  }
};

struct Difference {
  static constexpr auto kind = Combination::difference;
  template <class V>
  static constexpr V value(V a, V b) {
    return a - b;
  }
};

struct Product {
  static constexpr auto kind = Combination::product;
  template <class V>
  static constexpr V value(V a, V b) {
    return a * b;
  }
};

struct Quotient {
  static constexpr auto kind = Combination::quotient;
  template <class V>
  static constexpr V value(V a, V b) {
    return a / b;
  }
};

/// The maximum of a and b; NaN if either is NaN.
struct Largest {
  static constexpr auto kind = Combination::largest;
  template <class V>
  static constexpr V value(V a, V b) {
    return select(b <= a, a, select(a < b, b, a + b));
  }
};

/// The minimum of a and b; NaN if either is NaN.
struct Smallest {
  static constexpr auto kind = Combination::smallest;
  template <class V>
  static constexpr V value(V a, V b) {
    return select(a <= b, a, select(b < a, b, a + b));
  }
};

/// 1 if a < b, otherwise 0.
struct Less {
  static constexpr auto kind = Combination::less;
  template <class V>
  static constexpr V value(V a, V b) {
    return select(a < b, V(1.0), V(0.0));
  }
};

/// 1 if a <= b, otherwise 0.
struct LessOrEqual {
  static constexpr auto kind = Combination::less_or_equal;
  template <class V>
  static constexpr V value(V a, V b) {
    return select(a <= b, V(1.0), V(0.0));
  }
};

/// 1 if a = b, otherwise 0.
struct Equal {
  static constexpr auto kind = Combination::equal;
  template <class V>
  static constexpr V value(V a, V b) {
    return select(a == b, V(1.0), V(0.0));
  }
};

/// Keeps a if b is not 0. Otherwise, the result is 0, even if a is NaN.
struct Kept {
  static constexpr auto kind = Combination::kept;
  template <class V>
  static constexpr V value(V a, V b) {
    return select(b == V(0.0), V(0.0), a);
  }
};

/// Keeps a if b is 0. Otherwise, the result is 0, even if a is NaN.
struct Dropped {
  static constexpr auto kind = Combination::dropped;
  template <class V>
  static constexpr V value(V a, V b) {
    return select(b == V(0.0), a, V(0.0));
  }
};

}  // namespace combination

/// The formulas in the order of the enum Combination.
using Combinations =
    TypeList<combination::Sum, combination::Difference, combination::Product, combination::Quotient,
             combination::Largest, combination::Smallest, combination::Less,
             combination::LessOrEqual, combination::Equal, combination::Kept, combination::Dropped>;
static_assert(detail::in_order(Combinations{}),
              "Combinations and Combination name the same formulas in one order");

template <class Body>
constexpr decltype(auto) with_formula(Combination combination, Body&& body) {
  return with_formula(combination, static_cast<Body&&>(body), Combinations{});
}

}  // namespace longhand
